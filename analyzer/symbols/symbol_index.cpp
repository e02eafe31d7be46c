#include "symbols/symbol_index.h"

#include <cxxabi.h>
#include <gelf.h>

#include <algorithm>
#include <cstdlib>

namespace vramtrack {
namespace {

int rank_of(unsigned char info) {
  switch (GELF_ST_BIND(info)) {
    case STB_GLOBAL:
      return 0;
    case STB_WEAK:
      return 1;
    default:
      return 2;
  }
}

}  // namespace

void SymbolIndex::add(Elf* elf) {
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) continue;
    Elf_Data* data = elf_getdata(section, nullptr);
    if (data == nullptr || header.sh_entsize == 0) continue;
    const auto count = static_cast<int>(data->d_size / header.sh_entsize);
    for (int i = 0; i < count; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, i, &symbol) == nullptr) break;
      const int type = GELF_ST_TYPE(symbol.st_info);
      if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF ||
          symbol.st_size == 0)
        continue;
      const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
      if (name == nullptr || name[0] == '\0') continue;
      functions_.push_back(
          {symbol.st_value, symbol.st_value + symbol.st_size, rank_of(symbol.st_info), name});
    }
  }
}

void SymbolIndex::finish() {
  std::stable_sort(functions_.begin(), functions_.end(), [](const Function& a, const Function& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.rank < b.rank;
  });
  const auto last = std::unique(
      functions_.begin(), functions_.end(),
      [](const Function& a, const Function& b) { return a.begin == b.begin && a.end == b.end; });
  functions_.erase(last, functions_.end());
}

const std::string* SymbolIndex::find(uint64_t address) const {
  auto at = std::upper_bound(
      functions_.begin(), functions_.end(), address,
      [](uint64_t value, const Function& function) { return value < function.begin; });
  // Functions may nest (parts split off, aliases with other sizes), but not deeply.
  for (int tries = 0; tries < 8 && at != functions_.begin(); ++tries) {
    --at;
    if (address < at->end) return &at->name;
  }
  return nullptr;
}

std::string demangle(const std::string& name) {
  if (name.compare(0, 2, "_Z") != 0) return name;
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  if (text == nullptr) return name;
  std::string result = status == 0 ? text : name;
  std::free(text);
  return result;
}

}  // namespace vramtrack
