// Addresses are taken from a run: the victim calls back, and its return address is what a stack
// holds. What they mean is known from the victim's source.
#include "symbols/elf_file.h"

#include <dlfcn.h>
#include <link.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "symbols/symbol_index.h"

using vramtrack::ElfFile;
using vramtrack::Frame;

namespace {

uint64_t g_return_address = 0;

__attribute__((noinline)) int note_caller() {
  g_return_address = reinterpret_cast<uint64_t>(__builtin_return_address(0));
  return 1;
}

// The return address into the victim, as the file counts addresses.
uint64_t address_in_victim(const char* function) {
  void* library = dlopen(SYMBOLS_VICTIM, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  auto* call = reinterpret_cast<int (*)(int (*)())>(dlsym(library, function));
  REQUIRE(call != nullptr);
  call(note_caller);
  link_map* map = nullptr;
  REQUIRE(dlinfo(library, RTLD_DI_LINKMAP, &map) == 0);
  return g_return_address - map->l_addr;
}

uint32_t line_with(const std::string& text) {
  std::ifstream source(VRAMTRACK_SOURCE_DIR "/tests/symbols/victim.cpp");
  std::string line;
  for (uint32_t number = 1; std::getline(source, line); ++number)
    if (line.find("// " + text) != std::string::npos && line.find(':') == std::string::npos)
      return number;
  return 0;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

TEST_CASE("inlined calls and their lines come from DWARF") {
  const auto file = ElfFile::open(SYMBOLS_VICTIM, "");
  REQUIRE(file != nullptr);
  const std::vector<Frame> frames = file->frames(address_in_victim("call_inlined"));
  REQUIRE(frames.size() == 2);
  CHECK(frames[0].inlined);
  CHECK(frames[0].function.find("captured_inlined") != std::string::npos);
  CHECK(frames[0].line == line_with("LINE_OF_CALL"));
  CHECK(ends_with(frames[0].file, "tests/symbols/victim.cpp"));
  CHECK_FALSE(frames[1].inlined);
  CHECK(frames[1].function == "shapes::Square::exported_caller(int (*)(), int)");
  CHECK(frames[1].line == line_with("LINE_OF_INLINED_CALL"));
  CHECK(ends_with(frames[1].file, "tests/symbols/victim.cpp"));
}

TEST_CASE("functions that are not exported have names where .symtab is there") {
  const auto file = ElfFile::open(SYMBOLS_VICTIM, "");
  REQUIRE(file != nullptr);
  const std::vector<Frame> frames = file->frames(address_in_victim("call_hidden"));
  REQUIRE(frames.size() == 1);
  CHECK(frames[0].function == "shapes::hidden_caller(int (*)(), int)");
  CHECK(frames[0].line == line_with("LINE_OF_HIDDEN_CALL"));
}

TEST_CASE("a stripped library names what it exports and nothing else") {
  const auto file = ElfFile::open(SYMBOLS_STRIPPED, "");
  REQUIRE(file != nullptr);
  const std::vector<Frame> exported = file->frames(address_in_victim("call_inlined"));
  REQUIRE(exported.size() == 1);
  CHECK(exported[0].function == "shapes::Square::exported_caller(int (*)(), int)");
  CHECK(exported[0].line == 0);
  // The nearest exported name would be wrong; there is none for it.
  CHECK(file->frames(address_in_victim("call_hidden")).empty());
}

TEST_CASE("a file that is not the one that was mapped is not asked") {
  CHECK(ElfFile::open(SYMBOLS_VICTIM, std::string(20, 'x')) == nullptr);
  CHECK(ElfFile::open("/nonexistent/library.so", "") == nullptr);
  CHECK(ElfFile::open(VRAMTRACK_SOURCE_DIR "/CMakeLists.txt", "") == nullptr);
}

TEST_CASE("names are demangled where they are mangled") {
  CHECK(vramtrack::demangle("_ZN2at6detail13empty_genericEv") == "at::detail::empty_generic()");
  CHECK(vramtrack::demangle("cudaMalloc") == "cudaMalloc");
  CHECK(vramtrack::demangle("_Znot_a_name") == "_Znot_a_name");
}
