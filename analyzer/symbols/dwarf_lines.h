// Source lines and inlined calls out of the DWARF of one file.
#ifndef VRAMTRACK_ANALYZER_SYMBOLS_DWARF_LINES_H
#define VRAMTRACK_ANALYZER_SYMBOLS_DWARF_LINES_H

#include <elfutils/libdw.h>

#include <cstdint>
#include <vector>

#include "trace/recording.h"

namespace vramtrack {

class DwarfLines {
 public:
  explicit DwarfLines(Elf* elf);
  ~DwarfLines();
  DwarfLines(const DwarfLines&) = delete;
  DwarfLines& operator=(const DwarfLines&) = delete;

  [[nodiscard]] bool empty() const { return units_.empty(); }

  // Innermost first: the inlined calls at `address`, then the function. Empty where no unit covers
  // the address. A function name may be empty: the symbol table knows better then.
  [[nodiscard]] std::vector<Frame> frames(uint64_t address) const;

 private:
  struct Unit {
    uint64_t begin;
    uint64_t end;
    Dwarf_Off die;
  };
  void index_units();

  Dwarf* dwarf_ = nullptr;
  std::vector<Unit> units_;  // by begin
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_SYMBOLS_DWARF_LINES_H
