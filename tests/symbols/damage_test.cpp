// Bytes that nobody vouches for: the sanitizers look on.
#include <catch2/catch.hpp>
#include <random>

#include "symbols/python_lines.h"
#include "symbols/symbol_store.h"
#include "trace/input_error.h"

using namespace vramtrack;

TEST_CASE("any bytes may pose as a line table") {
  std::mt19937 random(7);
  uint64_t sum = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string table(random() % 40, '\0');
    for (char& byte : table) byte = static_cast<char>(random());
    const uint32_t minor = 9 + random() % 6;
    sum += python_line(minor, table, random(), random() % 200);
  }
  CHECK(sum != 0);
}

TEST_CASE("symbols with a damaged byte are read or refused") {
  SymbolStore store;
  store.add(7, "/lib/a.so", 0x1234,
            {Frame{.function = "f()", .file = "a.cpp", .line = 3, .inlined = true},
             Frame{.function = "g()", .file = "/lib/a.so"}});
  const std::string good = store.to_json();
  unsigned refused = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char byte : {'\0', '9', '"', '}', '\xff'}) {
      std::string bad = good;
      bad[at] = byte;
      try {
        const SymbolStore read = SymbolStore::parse(bad);
        CHECK(read.size() <= 1);
      } catch (const InputError&) {
        ++refused;
      }
    }
  }
  CHECK(refused > good.size());
}
