#include "symbols/symbol_store.h"

#include <catch2/catch.hpp>

#include "symbols/module_index.h"
#include "symbols/resolver.h"
#include "trace/input_error.h"

using namespace vramtrack;

TEST_CASE("symbols survive being written and read") {
  SymbolStore store;
  Frame inner{.function = "inner<\"x\">()", .file = "/a.h", .line = 3, .inlined = true};
  Frame outer{.function = "outer()", .file = "/lib/a.so", .line = 0};
  store.add(7, "/lib/a.so", 0x1234, {inner, outer});
  store.add(9, "/lib/b.so", 0x1234, {outer});

  const SymbolStore read = SymbolStore::parse(store.to_json());
  CHECK(read.size() == 2);
  const std::vector<Frame>* frames = read.find(7, 0x1234);
  REQUIRE(frames != nullptr);
  REQUIRE(frames->size() == 2);
  CHECK((*frames)[0].function == inner.function);
  CHECK((*frames)[0].line == 3);
  CHECK((*frames)[0].inlined);
  CHECK((*frames)[1].file == "/lib/a.so");
  CHECK((*frames)[1].module == "/lib/a.so");
  CHECK(read.find(7, 0x1235) == nullptr);
}

TEST_CASE("damaged symbols are refused in one sentence") {
  CHECK_THROWS_AS(SymbolStore::parse("{"), InputError);
  CHECK_THROWS_AS(SymbolStore::parse("[]"), InputError);
  CHECK_THROWS_AS(SymbolStore::parse(R"({"schema":"vramtrack.symbols/9","modules":[]})"),
                  InputError);
  CHECK_THROWS_AS(SymbolStore::parse(R"({"schema":"vramtrack.symbols/1","modules":[{"id":"x"}]})"),
                  InputError);
}

TEST_CASE("an address belongs to the module that was mapped at the time of its stack") {
  RawDefinitions raw;
  raw.modules[5] =
      RawModule{.id = 5, .base = 0x1000, .begin = 0x1000, .end = 0x3000, .path = "old"};
  raw.modules[20] =
      RawModule{.id = 20, .base = 0x2000, .begin = 0x2000, .end = 0x2800, .path = "new"};
  const ModuleIndex modules(raw);
  REQUIRE(modules.find(10, 0x2400) != nullptr);
  CHECK(modules.find(10, 0x2400)->path == "old");
  CHECK(modules.find(30, 0x2400)->path == "new");
  CHECK(modules.find(30, 0x2900)->path == "old");
  CHECK(modules.find(30, 0x3000)->path == "old");  // a call may be a module's last instruction
  CHECK(modules.find(30, 0x3001) == nullptr);
  CHECK(modules.find(30, 0x1000) == nullptr);
}

TEST_CASE("frames without symbols still say where they are, and the reader is told") {
  RawDefinitions raw;
  raw.modules[1] =
      RawModule{.id = 1, .base = 0x400000, .begin = 0x400000, .end = 0x500000, .path = "/bin/x"};
  raw.stacks.push_back({.id = 2, .frames = {RawFrame{.value = 0x400010}}});
  std::vector<std::string> notes;
  const auto resolver = make_frame_resolver(raw, notes);
  CHECK(notes.size() == 1);
  const std::vector<Frame> frames = resolver->resolve(2, raw.stacks[0].frames[0]);
  REQUIRE(frames.size() == 1);
  CHECK(frames[0].function == "?? at 0x10");
  CHECK(frames[0].module == "/bin/x");
  CHECK(resolver->resolve(2, RawFrame{.value = 0})[0].function == "[deeper frames were cut]");
  CHECK(resolver->resolve(2, RawFrame{.value = 99, .python = true})[0].function == "??");
}
