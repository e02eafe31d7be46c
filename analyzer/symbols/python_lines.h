// The source line of a Python instruction, from the line table of its code object. Three formats:
// co_lnotab (3.9), the line table of PEP 626 (3.10), the location table of PEP 657 (3.11 and
// later).
#ifndef VRAMTRACK_ANALYZER_SYMBOLS_PYTHON_LINES_H
#define VRAMTRACK_ANALYZER_SYMBOLS_PYTHON_LINES_H

#include <cstdint>
#include <string_view>

namespace vramtrack {

// `offset` in bytes. 0 where the table gives the instruction no line or does not reach it.
uint32_t python_line(uint32_t python_minor, std::string_view table, uint32_t first_line,
                     uint32_t offset);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_SYMBOLS_PYTHON_LINES_H
