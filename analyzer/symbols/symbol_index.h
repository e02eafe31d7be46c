// The functions of an ELF file by address, from .symtab and .dynsym.
#ifndef VRAMTRACK_ANALYZER_SYMBOLS_SYMBOL_INDEX_H
#define VRAMTRACK_ANALYZER_SYMBOLS_SYMBOL_INDEX_H

#include <libelf.h>

#include <cstdint>
#include <string>
#include <vector>

namespace vramtrack {

class SymbolIndex {
 public:
  void add(Elf* elf);  // the file itself, then its separate debug file
  void finish();       // before the first find()

  // The mangled name of the function that holds the address; nullptr where none does.
  [[nodiscard]] const std::string* find(uint64_t address) const;

 private:
  struct Function {
    uint64_t begin;
    uint64_t end;
    int rank;  // of several names of one function the better one is kept
    std::string name;
  };
  std::vector<Function> functions_;
};

// Demangled where it is a C++ name.
std::string demangle(const std::string& name);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_SYMBOLS_SYMBOL_INDEX_H
