// A progress bar on stderr, for work that takes long enough to wonder, and only where stderr is a
// terminal.
#ifndef VRAMTRACK_ANALYZER_REPLAY_PROGRESS_H
#define VRAMTRACK_ANALYZER_REPLAY_PROGRESS_H

#include <chrono>
#include <cstdint>
#include <string>

namespace vramtrack {

class Progress {
 public:
  // `total` 0: unknown, counts are shown instead of a bar.
  Progress(std::string what, uint64_t total);
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance() {
    if ((++done_ & 0xffff) == 0 && visible_) draw();
  }

 private:
  void draw();

  std::string what_;
  uint64_t total_;
  uint64_t done_ = 0;
  bool visible_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPLAY_PROGRESS_H
