#include "replay/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace vramtrack {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(500);
constexpr size_t kBarWidth = 40;

}  // namespace

Progress::Progress(std::string what, uint64_t total)
    : what_(std::move(what)), total_(total), visible_(::isatty(STDERR_FILENO) == 1) {
}

Progress::~Progress() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
}

void Progress::draw() {
  if (!drawn_ && std::chrono::steady_clock::now() - start_ < kPatience) return;
  drawn_ = true;
  if (total_ == 0) {
    fmt::print(stderr, "\r{}: {:.1f} million events", what_, static_cast<double>(done_) * 1e-6);
  } else {
    const uint64_t done = std::min(done_, total_);
    const auto filled = static_cast<size_t>(kBarWidth * done / total_);
    fmt::print(stderr, "\r{} [{:<{}}] {:3d} %", what_, std::string(filled, '='), kBarWidth,
               100 * done / total_);
  }
  std::fflush(stderr);
}

}  // namespace vramtrack
