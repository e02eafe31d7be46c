// A folder for one test's files, gone when the test is.
#ifndef VRAMTRACK_TESTS_SUPPORT_SCRATCH_H
#define VRAMTRACK_TESTS_SUPPORT_SCRATCH_H

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace vramtrack::test {

class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  // Writes a file and returns its path.
  [[nodiscard]] std::filesystem::path file(std::string_view name,
                                           std::span<const uint8_t> bytes) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace vramtrack::test

#endif  // VRAMTRACK_TESTS_SUPPORT_SCRATCH_H
