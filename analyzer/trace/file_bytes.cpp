#include "trace/file_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "trace/input_error.h"

namespace vramtrack {

FileBytes::FileBytes(const std::filesystem::path& path) : path_(path.string()) {
  // O_NONBLOCK: a FIFO must not hang us, it is refused below.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) {
    throw InputError(fmt::format("cannot open {}: {}", path_, std::strerror(errno)));
  }
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    const bool directory = S_ISDIR(status.st_mode);
    ::close(descriptor_);
    throw InputError(directory ? fmt::format("{} is a directory; name a trace in it", path_)
                               : fmt::format("{} is not a regular file", path_));
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

FileBytes::~FileBytes() {
  ::close(descriptor_);
}

size_t FileBytes::read(uint64_t offset, std::span<uint8_t> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::pread(descriptor_, out.data() + done, out.size() - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

}  // namespace vramtrack
