// Symbols go into the trace file and are found there, also where the library is gone.
#include "symbols/symbolize_trace.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "support/scratch.h"
#include "support/trace_writer.h"
#include "symbols/resolver.h"
#include "trace/input_error.h"
#include "trace/trace_file.h"

using namespace vramtrack;

namespace {

uint64_t g_return_address = 0;

__attribute__((noinline)) int note_caller() {
  g_return_address = reinterpret_cast<uint64_t>(__builtin_return_address(0));
  return 1;
}

// A return address into the victim library, relative to its load bias.
uint64_t offset_in_victim() {
  void* library = dlopen(SYMBOLS_VICTIM, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  reinterpret_cast<int (*)(int (*)())>(dlsym(library, "call_inlined"))(note_caller);
  link_map* map = nullptr;
  REQUIRE(dlinfo(library, RTLD_DI_LINKMAP, &map) == 0);
  return g_return_address - map->l_addr;
}

std::vector<std::string> names(const std::filesystem::path& trace, StackId stack) {
  const auto recording = open_trace(trace, make_frame_resolver);
  std::vector<std::string> result;
  for (const FrameId frame : recording->definitions().stack(stack))
    result.push_back(recording->definitions().frame(frame).function);
  return result;
}

constexpr uint64_t kBase = 0x7f0000000000;

}  // namespace

TEST_CASE("names are stored once and outlive the library") {
  const test::Scratch scratch;
  const auto library = scratch.folder() / "libcopy.so";
  std::filesystem::copy_file(SYMBOLS_VICTIM, library);
  const auto trace = scratch.folder() / "a.vrt";
  const uint64_t offset = offset_in_victim();

  test::TraceWriter writer;
  writer.module(kBase, 0x100000, library.string());
  const uint32_t stack = writer.native_stack({kBase + offset, 0x1234});
  writer.alloc(0x1000, 512, stack);
  writer.save(trace);

  CHECK(names(trace, stack)[0].substr(0, 3) == "?? ");
  const TraceSymbols first = symbolize_trace(trace);
  CHECK(first.addresses == 2);
  CHECK(first.named == 1);
  CHECK(first.added == 1);
  CHECK(first.missing_modules.empty());
  const auto size = std::filesystem::file_size(trace);

  std::filesystem::remove(library);
  const TraceSymbols second = symbolize_trace(trace);
  CHECK(second.added == 0);
  CHECK(second.named == 1);
  CHECK(second.missing_modules == std::vector<std::string>{library.string()});
  CHECK(std::filesystem::file_size(trace) == size);

  const std::vector<std::string> known = names(trace, stack);
  REQUIRE(known.size() == 3);
  CHECK(known[0].find("captured_inlined") != std::string::npos);
  CHECK(known[1] == "shapes::Square::exported_caller(int (*)(), int)");
  CHECK(known[2] == "?? at 0x1234");
}

TEST_CASE("a trace that its process still writes is left alone") {
  const test::Scratch scratch;
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  test::TraceOptions options;
  options.finished = false;
  options.metadata = R"({"command": ["x"], "host": ")" + std::string(host) + R"(", "pid": )" +
                     std::to_string(getpid()) + "}";
  test::TraceWriter writer(options);
  writer.alloc(0x1000, 512, writer.native_stack({0x1234}));
  const auto trace = scratch.folder() / "a.vrt";
  writer.save(trace);
  CHECK_THROWS_AS(symbolize_trace(trace), InputError);
  CHECK_THROWS_AS(symbolize_trace(scratch.folder()), InputError);
  CHECK_THROWS_AS(symbolize_trace(scratch.folder() / "none.vrt"), InputError);
}
