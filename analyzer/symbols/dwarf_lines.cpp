#include "symbols/dwarf_lines.h"

#include <dwarf.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "symbols/symbol_index.h"

namespace vramtrack {
namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Dies = std::unique_ptr<Dwarf_Die, Free>;

std::string function_name(Dwarf_Die* die) {
  for (const unsigned kind : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    Dwarf_Attribute attribute;
    if (dwarf_attr_integrate(die, kind, &attribute) == nullptr) continue;
    if (const char* name = dwarf_formstring(&attribute); name != nullptr) return demangle(name);
  }
  const char* name = dwarf_diename(die);
  return name == nullptr ? std::string() : std::string(name);
}

uint32_t number(Dwarf_Die* die, unsigned kind) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_attr(die, kind, &attribute) == nullptr || dwarf_formudata(&attribute, &value) != 0)
    return 0;
  return static_cast<uint32_t>(value);
}

bool is_function(Dwarf_Die* die) {
  const int tag = dwarf_tag(die);
  return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
}

}  // namespace

DwarfLines::DwarfLines(Elf* elf) : dwarf_(dwarf_begin_elf(elf, DWARF_C_READ, nullptr)) {
  if (dwarf_ != nullptr) index_units();
}

DwarfLines::~DwarfLines() {
  if (dwarf_ != nullptr) dwarf_end(dwarf_);
}

// Not .debug_aranges: clang does not write it.
void DwarfLines::index_units() {
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die;
  uint8_t unit_type = 0;
  while (dwarf_get_units(dwarf_, unit, &unit, nullptr, &unit_type, &die, nullptr) == 0) {
    if (unit_type != DW_UT_compile) continue;
    Dwarf_Addr base = 0;
    Dwarf_Addr begin = 0;
    Dwarf_Addr end = 0;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &begin, &end)) > 0;)
      if (begin < end) units_.push_back({begin, end, dwarf_dieoffset(&die)});
  }
  std::sort(units_.begin(), units_.end(),
            [](const Unit& a, const Unit& b) { return a.begin < b.begin; });
}

std::vector<Frame> DwarfLines::frames(uint64_t address) const {
  auto at = std::upper_bound(units_.begin(), units_.end(), address,
                             [](uint64_t value, const Unit& unit) { return value < unit.begin; });
  if (at == units_.begin() || address >= (--at)->end) return {};
  Dwarf_Die unit;
  if (dwarf_offdie(dwarf_, at->die, &unit) == nullptr) return {};

  Frame place;  // where the innermost code of the frame at hand stands
  if (Dwarf_Line* line = dwarf_getsrc_die(&unit, address); line != nullptr) {
    int number = 0;
    if (const char* file = dwarf_linesrc(line, nullptr, nullptr); file != nullptr)
      place.file = file;
    if (dwarf_lineno(line, &number) == 0 && number > 0) place.line = static_cast<uint32_t>(number);
  }

  Dwarf_Die* found = nullptr;
  const int scopes = dwarf_getscopes(&unit, address, &found);
  const Dies owned(found);
  if (scopes <= 0) return {place};
  // From the innermost scope outwards through what physically encloses it.
  Dwarf_Die* parents = nullptr;
  const int count = dwarf_getscopes_die(&found[0], &parents);
  const Dies owned_parents(parents);
  Dwarf_Files* files = nullptr;
  dwarf_getsrcfiles(&unit, &files, nullptr);

  std::vector<Frame> frames;
  for (int i = 0; i < count; ++i) {
    Dwarf_Die* die = &parents[i];
    if (!is_function(die)) continue;
    Frame frame = place;
    frame.function = function_name(die);
    frame.inlined = dwarf_tag(die) == DW_TAG_inlined_subroutine;
    frames.push_back(frame);
    if (!frame.inlined) return frames;
    const uint32_t file = number(die, DW_AT_call_file);
    const char* name = files == nullptr ? nullptr : dwarf_filesrc(files, file, nullptr, nullptr);
    place.file = name == nullptr ? std::string() : std::string(name);
    place.line = number(die, DW_AT_call_line);
  }
  if (frames.empty()) frames.push_back(place);
  return frames;
}

}  // namespace vramtrack
