#include "rehearsal/overlay.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

// System calls go past the hooks of this library.
namespace simgpu {
namespace {

int raw_open(const char* path, int flags, unsigned mode = 0) {
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode));
}

bool stat_at(int at, const char* path, struct stat* status) {
  return fstatat(at, path, status, AT_SYMLINK_NOFOLLOW) == 0;
}

// The path from the root, without its last links resolved: scratch copies are found by it.
bool absolute_path(int at, const char* path, Path* out) {
  if (path[0] == '/') return snprintf(out->text, sizeof out->text, "%s", path) < PATH_MAX;
  char folder[PATH_MAX];
  if (at == AT_FDCWD) {
    if (!getcwd(folder, sizeof folder)) return false;
  } else {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    const ssize_t length = readlink(link, folder, sizeof folder - 1);
    if (length <= 0) return false;
    folder[length] = '\0';
  }
  while (path[0] == '.' && path[1] == '/') path += 2;
  const size_t length = strlen(folder);
  if (length + strlen(path) + 2 > sizeof out->text) return false;
  memcpy(out->text, folder, length);
  out->text[length] = '/';
  memcpy(out->text + length + 1, path, strlen(path) + 1);
  return true;
}

unsigned long long hash(const char* text) {
  unsigned long long value = 14695981039346656037ULL;
  for (; *text; ++text) value = (value ^ static_cast<unsigned char>(*text)) * 1099511628211ULL;
  return value;
}

bool starts_with(const char* text, const char* prefix, size_t length) {
  return strncmp(text, prefix, length) == 0 && (text[length] == '/' || text[length] == '\0');
}

// The process that made the scratch folder takes it away again.
bool made_folder;
Path folder_to_remove;

__attribute__((destructor)) void remove_folder() {
  const char* owner = getenv("VRAMTRACK_REHEARSAL_PID");
  if (!made_folder || !owner || atol(owner) != getpid()) return;
  DIR* folder = opendir(folder_to_remove.text);
  if (!folder) return;
  while (const dirent* entry = readdir(folder))
    syscall(SYS_unlinkat, dirfd(folder), entry->d_name, 0);
  closedir(folder);
  syscall(SYS_rmdir, folder_to_remove.text);
}

}  // namespace

// Early, so that every child inherits what the first process fixes.
__attribute__((constructor)) static void start() {
  Overlay::instance();
}

Overlay& Overlay::instance() {
  static Overlay overlay;
  return overlay;
}

// The first process of the rehearsal fixes when it started and where its copies are; its children
// inherit both.
Overlay::Overlay() {
  const char* simulated = getenv("VRAMTRACK_SIMULATED");
  const char* protect = getenv("VRAMTRACK_PROTECT");
  active_ = simulated && strcmp(simulated, "1") == 0 && !(protect && strcmp(protect, "off") == 0);
  if (!active_) return;
  allow_ = getenv("VRAMTRACK_ALLOW_WRITES");
  if (!getenv("VRAMTRACK_REHEARSAL_START")) {
    timespec now;
    // Files are stamped with the kernel's coarse clock.
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    char text[64];
    snprintf(text, sizeof text, "%lld.%09ld", static_cast<long long>(now.tv_sec), now.tv_nsec);
    setenv("VRAMTRACK_REHEARSAL_START", text, 1);
    snprintf(text, sizeof text, "%d", getpid());
    setenv("VRAMTRACK_REHEARSAL_PID", text, 1);
    const char* temporary = getenv("TMPDIR");
    char folder[PATH_MAX / 2];
    snprintf(folder, sizeof folder, "%.1900s/vramtrack-rehearsal.%d.%lld",
             temporary && *temporary ? temporary : "/tmp", getpid(),
             static_cast<long long>(now.tv_sec));
    setenv("VRAMTRACK_REHEARSAL_FOLDER", folder, 1);
  }
  if (sscanf(getenv("VRAMTRACK_REHEARSAL_START"), "%lld.%lld", &start_s_, &start_ns_) != 2)
    active_ = false;
  const char* folder = getenv("VRAMTRACK_REHEARSAL_FOLDER");
  if (!folder || snprintf(folder_.text, sizeof folder_.text, "%s", folder) >= PATH_MAX)
    active_ = false;
  folder_to_remove = folder_;
  made_folder = true;
}

bool Overlay::allowed(const char* absolute) const {
  for (const char* system : {"/dev", "/proc", "/sys"}) {
    if (starts_with(absolute, system, strlen(system))) return true;
  }
  if (starts_with(absolute, folder_.text, strlen(folder_.text))) return true;
  // The recording itself is real.
  const size_t length = strlen(absolute);
  if (length > 4 && strcmp(absolute + length - 4, ".vrt") == 0) return true;
  for (const char* name : {"VRAMTRACK_OUTPUT", "VRAMTRACK_JOB"}) {
    const char* path = getenv(name);
    if (path && *path && starts_with(absolute, path, strlen(path))) return true;
  }
  for (const char* part = allow_; part && *part;) {
    const char* end = strchrnul(part, ':');
    size_t size = static_cast<size_t>(end - part);
    while (size > 1 && part[size - 1] == '/') --size;
    if (size > 0 && starts_with(absolute, part, size)) return true;
    part = *end ? end + 1 : end;
  }
  return false;
}

bool Overlay::keeps(int at, const char* path) const {
  struct stat status;
  Path absolute;
  if (!active_ || !path || fstatat(at, path, &status, 0) != 0 || !S_ISREG(status.st_mode))
    return false;
  // A change of the inode's own time is what a file cannot hide.
  const bool old = status.st_ctim.tv_sec < start_s_ ||
                   (status.st_ctim.tv_sec == start_s_ && status.st_ctim.tv_nsec < start_ns_);
  return old && absolute_path(at, path, &absolute) && !allowed(absolute.text);
}

bool Overlay::is_folder(int at, const char* path) const {
  struct stat status;
  return active_ && path && stat_at(at, path, &status) && S_ISDIR(status.st_mode);
}

bool Overlay::name_of(int at, const char* path, Path* copy) const {
  Path absolute;
  if (!absolute_path(at, path, &absolute)) return false;
  const char* slash = strrchr(absolute.text, '/');
  return snprintf(copy->text, sizeof copy->text, "%.3000s/%016llx-%.200s", folder_.text,
                  hash(absolute.text), slash ? slash + 1 : absolute.text) < PATH_MAX;
}

bool Overlay::find_scratch(int at, const char* path, Path* copy) const {
  struct stat status;
  return active_ && path && stat(folder_.text, &status) == 0 && name_of(at, path, copy) &&
         stat(copy->text, &status) == 0;
}

bool Overlay::scratch(int at, const char* path, bool contents, Path* copy) {
  if (find_scratch(at, path, copy)) return true;
  Path absolute;
  if (!name_of(at, path, copy) || !absolute_path(at, path, &absolute)) return false;
  if (mkdir(folder_.text, 0700) != 0 && errno != EEXIST) return false;
  say(absolute.text);
  return !contents || copy_file(absolute.text, copy->text) == 0;
}

int Overlay::copy_file(const char* from, const char* to) {
  const int source = raw_open(from, O_RDONLY);
  if (source < 0) return errno;
  const int target = raw_open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  int error = target < 0 ? errno : 0;
  char buffer[1 << 16];
  for (ssize_t size = 0; error == 0 && (size = read(source, buffer, sizeof buffer)) != 0;) {
    if (size < 0) error = errno;
    for (ssize_t done = 0; error == 0 && done < size;) {
      const ssize_t part = write(target, buffer + done, static_cast<size_t>(size - done));
      if (part < 0) error = errno;
      done += part > 0 ? part : 0;
    }
  }
  close(source);
  if (target >= 0) close(target);
  return error;
}

void Overlay::say(const char* path) {
  static int count;
  if (__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED) > 4) return;
  fprintf(stderr,
          "vramtrack: rehearsal: %s stays as it is; what this run writes to it is thrown away "
          "(--allow-writes opens "
          "a folder)\n",
          path);
}

}  // namespace simgpu
