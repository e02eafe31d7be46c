#include "support/scratch.h"

#include <unistd.h>

#include <fstream>
#include <string>

namespace vramtrack::test {

Scratch::Scratch() {
  static int number = 0;
  folder_ = std::filesystem::temp_directory_path() /
            ("vramtrack-test." + std::to_string(::getpid()) + "." + std::to_string(number++));
  std::filesystem::create_directories(folder_);
}

Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::filesystem::path Scratch::file(std::string_view name, std::span<const uint8_t> bytes) const {
  std::filesystem::path path = folder_ / name;
  std::filesystem::remove(path);  // overwriting in place waits for the disk on some file systems
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return path;
}

}  // namespace vramtrack::test
