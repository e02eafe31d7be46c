// What CPython publishes from 3.13 on. The layouts of 3.9 to 3.13 are tested inside each version;
// for 3.14, which few machines have, the table is made here as its header lays it out.
#include "stack/python_layout.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

using namespace vramtrack;

namespace {

std::vector<uint64_t> published_by_3_14() {
  std::vector<uint64_t> words = {0, 0x030e00f0, 0};
  std::memcpy(words.data(), "xdebugpy", 8);
  const auto section = [&words](std::initializer_list<uint64_t> values) {
    words.insert(words.end(), values);
  };
  section({256000, 800, 816});  // runtime
  section({190000, 7248, 7240, 7264, 7272, 7352, 7656, 7672, 7680, 7688, 7696, 0, 7704, 7712, 7720,
           0});                                                 // interpreter: 16
  section({904, 0, 8, 16, 72, 152, 160, 280, 36});              // thread state
  section({88, 8, 0, 56, 80, 74, 64, 0});                       // interpreter frame
  section({216, 112, 120, 128, 136, 68, 52, 96, 104, 208, 0});  // code object
  section({16, 8});                                             // object
  words.resize(160);
  return words;
}

}  // namespace

TEST_CASE("the offsets that CPython 3.14 publishes are read") {
  const std::vector<uint64_t> words = published_by_3_14();
  PythonLayout layout;
  REQUIRE(find_python_layout(14, words.data(), layout));
  CHECK(layout.thread_frame == 72);
  CHECK(layout.frame_previous == 8);
  CHECK(layout.frame_code == 0);
  CHECK(layout.frame_instruction == 56);
  CHECK(layout.frame_locals == 80);
  CHECK(layout.frame_owner == 74);
  CHECK(layout.code_file == 112);
  CHECK(layout.code_name == 128);
  CHECK(layout.code_line_table == 136);
  CHECK(layout.code_first_line == 68);
  CHECK(layout.code_instructions == 208);
}

TEST_CASE("an interpreter that is unknown or publishes nonsense is not read") {
  PythonLayout layout;
  std::vector<uint64_t> words = published_by_3_14();
  CHECK_FALSE(find_python_layout(15, words.data(), layout));
  CHECK_FALSE(find_python_layout(13, words.data(), layout));
  CHECK_FALSE(find_python_layout(8, nullptr, layout));
  CHECK_FALSE(find_python_layout(14, nullptr, layout));
  words[2] = 1;  // free-threaded
  CHECK_FALSE(find_python_layout(14, words.data(), layout));
  words = published_by_3_14();
  words[0] = 0;
  CHECK_FALSE(find_python_layout(14, words.data(), layout));
  for (const size_t at : {22U, 26U, 31U, 33U, 36U, 39U, 43U, 48U}) {
    words = published_by_3_14();
    words[at] = 1U << 20;
    CHECK_FALSE(find_python_layout(14, words.data(), layout));
  }
}
