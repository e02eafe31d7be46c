// The C library's ways to open, replace and remove files by name, in front of the real ones.
//
// The danger: every program that the rehearsal starts comes through here. Where nothing is kept,
// each function does exactly what the system call does.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rehearsal/overlay.h"

#define HOOK extern "C" __attribute__((visibility("default")))

namespace {

using simgpu::Overlay;
using simgpu::Path;

Overlay& overlay() {
  return Overlay::instance();
}

int system_open(int at, const char* path, int flags, unsigned mode) {
  return static_cast<int>(syscall(SYS_openat, at, path, flags, mode));
}

int open_at(int at, const char* path, int flags, unsigned mode) {
  if (!overlay().active() || !path || (flags & O_PATH) || (flags & O_TMPFILE) == O_TMPFILE) {
    return system_open(at, path, flags, mode);
  }
  Path copy;
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);
  if (!writes) {
    return overlay().find_scratch(at, path, &copy) ? system_open(AT_FDCWD, copy.text, flags, mode)
                                                   : system_open(at, path, flags, mode);
  }
  if (!overlay().keeps(at, path)) return system_open(at, path, flags, mode);
  if ((flags & O_CREAT) && (flags & O_EXCL)) {
    errno = EEXIST;
    return -1;
  }
  if (!overlay().scratch(at, path, !(flags & O_TRUNC), &copy)) {
    errno = EROFS;
    return -1;
  }
  return system_open(AT_FDCWD, copy.text, flags | O_CREAT, 0600);
}

// The name that fopen(path, mode) should open instead, in `copy`; `path` where it is the same.
const char* name_for_stream(const char* path, const char* mode, Path* copy) {
  if (!overlay().active() || !path || !mode) return path;
  const bool reads = mode[0] == 'r' && !strchr(mode, '+');
  if (reads) return overlay().find_scratch(AT_FDCWD, path, copy) ? copy->text : path;
  if (!overlay().keeps(AT_FDCWD, path)) return path;
  if (!overlay().scratch(AT_FDCWD, path, mode[0] != 'w', copy)) return path;
  return copy->text;
}

using Fopen = FILE* (*)(const char*, const char*);

FILE* open_stream(const char* name, const char* path, const char* mode) {
  static Fopen real;
  if (!real) real = reinterpret_cast<Fopen>(dlsym(RTLD_NEXT, name));
  Path copy;
  return real(name_for_stream(path, mode, &copy), mode);
}

int fail(int error) {
  errno = error;
  return -1;
}

// A file that is kept, moved away: its copy appears under the new name, and it stays.
int rename_at(int from_at, const char* from, int to_at, const char* to, unsigned flags) {
  const auto rename_now = [&](int a, const char* one, int b, const char* other) {
    return static_cast<int>(syscall(SYS_renameat2, a, one, b, other, flags));
  };
  if (!overlay().active() || !from || !to) return rename_now(from_at, from, to_at, to);
  Path source, target;
  const bool source_copied = overlay().find_scratch(from_at, from, &source);
  const bool source_kept = overlay().keeps(from_at, from), target_kept = overlay().keeps(to_at, to);
  if (!source_copied && !source_kept && !target_kept) return rename_now(from_at, from, to_at, to);
  if (target_kept && !overlay().scratch(to_at, to, false, &target)) return fail(EROFS);
  const int read_at = source_copied ? AT_FDCWD : from_at, write_at = target_kept ? AT_FDCWD : to_at;
  const char* read_name = source_copied ? source.text : from;
  const char* write_name = target_kept ? target.text : to;
  if (!source_kept || source_copied) {
    if (rename_now(read_at, read_name, write_at, write_name) == 0) return 0;
    if (errno != EXDEV) return -1;
  }
  // Between file systems, or where the source stays: by copy.
  char from_link[64], absolute[PATH_MAX + 64];
  const int file = system_open(read_at, read_name, O_RDONLY | O_CLOEXEC, 0);
  if (file < 0) return -1;
  snprintf(from_link, sizeof from_link, "/proc/self/fd/%d", file);
  if (write_at == AT_FDCWD || write_name[0] == '/') {
    snprintf(absolute, sizeof absolute, "%s", write_name);
  } else {
    snprintf(absolute, sizeof absolute, "/proc/self/fd/%d/%s", write_at, write_name);
  }
  const int error = Overlay::copy_file(from_link, absolute);
  close(file);
  if (error) return fail(error);
  if (!source_kept) syscall(SYS_unlinkat, read_at, read_name, 0);
  return 0;
}

int unlink_at(int at, const char* path, int flags) {
  if (overlay().active() && path) {
    Path copy;
    if (overlay().find_scratch(at, path, &copy)) syscall(SYS_unlinkat, AT_FDCWD, copy.text, 0);
    if (!(flags & AT_REMOVEDIR) && overlay().keeps(at, path))
      return 0;  // it stays, whatever the script thinks
  }
  const int result = static_cast<int>(syscall(SYS_unlinkat, at, path, flags));
  // A folder that is not empty because its files stayed.
  if (result != 0 && (flags & AT_REMOVEDIR) && errno == ENOTEMPTY && overlay().is_folder(at, path))
    return 0;
  return result;
}

unsigned mode_of(int flags, va_list list) {
  return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(list, unsigned) : 0;
}

}  // namespace

// clang-format off
#define OPEN_HOOK(name)                                        \
  HOOK int name(const char* path, int flags, ...) {            \
    va_list list;                                              \
    va_start(list, flags);                                     \
    const unsigned mode = mode_of(flags, list);                \
    va_end(list);                                              \
    return open_at(AT_FDCWD, path, flags, mode);               \
  }
#define OPENAT_HOOK(name)                                      \
  HOOK int name(int at, const char* path, int flags, ...) {    \
    va_list list;                                              \
    va_start(list, flags);                                     \
    const unsigned mode = mode_of(flags, list);                \
    va_end(list);                                              \
    return open_at(at, path, flags, mode);                     \
  }
// clang-format on
OPEN_HOOK(open)
OPEN_HOOK(open64)
OPENAT_HOOK(openat)
OPENAT_HOOK(openat64)
HOOK int creat(const char* path, mode_t mode) {
  return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
HOOK int creat64(const char* path, mode_t mode) {
  return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

HOOK FILE* fopen(const char* path, const char* mode) {
  return open_stream("fopen", path, mode);
}
HOOK FILE* fopen64(const char* path, const char* mode) {
  return open_stream("fopen64", path, mode);
}

HOOK int rename(const char* from, const char* to) {
  return rename_at(AT_FDCWD, from, AT_FDCWD, to, 0);
}
HOOK int renameat(int from_at, const char* from, int to_at, const char* to) {
  return rename_at(from_at, from, to_at, to, 0);
}
HOOK int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) {
  return rename_at(from_at, from, to_at, to, flags);
}

HOOK int unlink(const char* path) {
  return unlink_at(AT_FDCWD, path, 0);
}
HOOK int unlinkat(int at, const char* path, int flags) {
  return unlink_at(at, path, flags);
}
HOOK int rmdir(const char* path) {
  return unlink_at(AT_FDCWD, path, AT_REMOVEDIR);
}
HOOK int remove(const char* path) {
  struct stat status;
  const bool folder = path && lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
  return unlink_at(AT_FDCWD, path, folder ? AT_REMOVEDIR : 0);
}

HOOK int truncate(const char* path, off_t size) {
  Path copy;
  const bool kept = path && overlay().keeps(AT_FDCWD, path);
  if (kept && !overlay().scratch(AT_FDCWD, path, true, &copy)) return fail(EROFS);
  return static_cast<int>(syscall(SYS_truncate, kept ? copy.text : path, size));
}
HOOK int truncate64(const char* path, off64_t size) {
  return truncate(path, size);
}
