// What an errno means, in words. strerror() may translate, and then allocates.
#ifndef VRAMTRACK_TRACER_RECORD_ERROR_TEXT_H
#define VRAMTRACK_TRACER_RECORD_ERROR_TEXT_H

#include <cerrno>

namespace vramtrack {

inline const char* error_text(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
      return "permission denied";
    case EROFS:
      return "the file system is read-only";
    case ENOSPC:
      return "no space left on the device";
    case EDQUOT:
      return "the disk quota is used up";
    case EFBIG:
      return "the file size limit is too low";
    case ENOENT:
      return "the folder does not exist";
    case ENOTDIR:
      return "the folder is not a folder";
    case EEXIST:
      return "the file exists";
    case EMFILE:
    case ENFILE:
      return "too many open files";
    case ENOMEM:
      return "out of memory";
    case ENAMETOOLONG:
      return "the name is too long";
    default:
      return "the system refused";
  }
}

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_ERROR_TEXT_H
