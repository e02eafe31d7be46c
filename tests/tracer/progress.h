// How far the threads of a writer have come, in a file that both processes have mapped.
#ifndef VRAMTRACK_TESTS_TRACER_PROGRESS_H
#define VRAMTRACK_TESTS_TRACER_PROGRESS_H

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>

class Progress {
 public:
  explicit Progress(const std::filesystem::path& path) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
    REQUIRE(ftruncate(fd, 4096) == 0);
    memory_ = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(memory_ != MAP_FAILED);
    close(fd);
  }
  ~Progress() { munmap(memory_, 4096); }

  [[nodiscard]] uint64_t of(size_t thread) const {
    return static_cast<std::atomic<uint64_t>*>(memory_)[thread].load();
  }

 private:
  void* memory_ = nullptr;
};

#endif  // VRAMTRACK_TESTS_TRACER_PROGRESS_H
