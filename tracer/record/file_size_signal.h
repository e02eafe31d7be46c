// Writing beyond RLIMIT_FSIZE raises SIGXFSZ, which ends a program that does not expect it. While
// such an object lives the signal is blocked in this thread, and one that our own write raised is
// taken back, so that the host sees neither.
#ifndef VRAMTRACK_TRACER_RECORD_FILE_SIZE_SIGNAL_H
#define VRAMTRACK_TRACER_RECORD_FILE_SIZE_SIGNAL_H

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <cerrno>

namespace vramtrack {

class FileSizeSignalBlocked {
 public:
  FileSizeSignalBlocked() {
    sigset_t pending;
    was_pending_ = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    sigemptyset(&only_);
    sigaddset(&only_, SIGXFSZ);
    blocked_ = pthread_sigmask(SIG_BLOCK, &only_, &before_) == 0;
  }
  ~FileSizeSignalBlocked() {
    const int error = errno;  // of what was done meanwhile
    if (blocked_) {
      const timespec no_wait{};
      if (!was_pending_) sigtimedwait(&only_, nullptr, &no_wait);
      pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    errno = error;
  }
  FileSizeSignalBlocked(const FileSizeSignalBlocked&) = delete;
  FileSizeSignalBlocked& operator=(const FileSizeSignalBlocked&) = delete;

 private:
  sigset_t only_{};
  sigset_t before_{};
  bool was_pending_ = false;
  bool blocked_ = false;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_FILE_SIZE_SIGNAL_H
