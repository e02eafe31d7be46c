// The names in one ELF file: functions by address, source lines and inlined calls where there is
// debug information.
//
// The symbols are indexed once and searched by bisection (libdw's own look-up scans them all for
// each address: seconds instead of milliseconds for PyTorch's libraries), and an address beyond the
// end of the nearest symbol has no name: the nearest name alone is wrong for most addresses of a
// stripped library.
#ifndef VRAMTRACK_ANALYZER_SYMBOLS_ELF_FILE_H
#define VRAMTRACK_ANALYZER_SYMBOLS_ELF_FILE_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trace/recording.h"

namespace vramtrack {

class ElfFile {
 public:
  // nullptr where the file is missing, is no ELF file, or is not the one that `build_id` (raw
  // bytes, may be empty) names.
  static std::unique_ptr<ElfFile> open(const std::string& path, const std::string& build_id);
  ~ElfFile();
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  // The frames of a return address (as the file counts addresses), innermost first. Empty where
  // nothing is known.
  [[nodiscard]] std::vector<Frame> frames(uint64_t return_address) const;

 private:
  struct Parts;
  explicit ElfFile(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_SYMBOLS_ELF_FILE_H
