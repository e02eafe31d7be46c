#include "stack/merge.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace vramtrack;

namespace {

constexpr LoopRange kLoop{0x5000, 0x6000};

// n: native, L: the loop's native frame, p: Python.
std::string merged(const std::vector<NativeFrame>& native, const std::vector<PythonEntry>& python,
                   size_t max = 64) {
  MergedFrame out[64];
  bool cut = false;
  const size_t count = merge_frames(native.data(), native.size(), python.data(), python.size(),
                                    kLoop, out, max, cut);
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    if (!text.empty()) text += " ";
    text += (out[i].python ? "p" : "n") + std::to_string(out[i].value & 0xff);
  }
  return text + (cut ? " ..." : "");
}

PythonEntry frame(uintptr_t code) {
  return {code, 0, false};
}
PythonEntry boundary(uintptr_t address) {
  return {address, 0, true};
}

}  // namespace

TEST_CASE("Python frames take the place of the loop that runs them") {
  const std::vector<NativeFrame> native = {
      {1, 100}, {0x5101, 200}, {3, 300}, {0x5102, 400}, {5, 500}};
  // By address.
  CHECK(merged(native, {frame(11), frame(12), boundary(150), frame(13), boundary(350)}) ==
        "n1 p11 p12 n3 p13 n5");
  // The loop's frame need not look like it: parts of the function may lie elsewhere.
  std::vector<NativeFrame> cold = native;
  cold[1].pc = 0x9902;
  CHECK(merged(cold, {frame(11), boundary(150), frame(13), boundary(350)}) == "n1 p11 n3 p13 n5");
  // By order, where neither walk knows addresses.
  std::vector<NativeFrame> bare = native;
  for (NativeFrame& f : bare) f.cfa = 0;
  CHECK(merged(bare, {frame(11), boundary(0), frame(12), frame(13), boundary(0)}) ==
        "n1 p11 n3 p12 p13 n5");
}

TEST_CASE("what does not match is still shown, native frames first") {
  const std::vector<NativeFrame> native = {{1, 0}, {0x5101, 0}, {3, 0}};
  CHECK(merged(native, {frame(11), boundary(0), frame(12), boundary(0)}) == "n1 p11 p12");
  CHECK(merged({}, {frame(11), boundary(0), frame(12), boundary(0)}) == "p11 p12");
  CHECK(merged(native, {}) == "n1 n1 n3");
  // Addresses that do not grow outwards belong to another stack.
  const std::vector<NativeFrame> addressed = {{1, 100}, {0x5101, 200}, {3, 300}};
  CHECK(merged(addressed, {frame(11), boundary(250), frame(12), boundary(150)}) == "n1 p11 p12");
}

TEST_CASE("a native walk that ends early loses no Python frames") {
  CHECK(merged({{1, 100}, {0x5101, 200}}, {frame(11), boundary(150), frame(12), boundary(350),
                                           frame(13), boundary(450)}) == "n1 p11 p12 p13");
}

TEST_CASE("a stack that is too deep is cut at its outer end") {
  CHECK(merged({{1, 100}, {2, 200}, {3, 300}}, {}, 2) == "n1 n2 ...");
  CHECK(merged({{1, 100}, {0x5101, 200}}, {frame(11), frame(12), boundary(150)}, 2) ==
        "n1 p11 ...");
}
