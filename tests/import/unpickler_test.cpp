// The unpickler reads data and refuses programs, whatever the file claims.
#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "pickle_program.h"

namespace vramtrack {
namespace {

using Catch::Matchers::Contains;

PickleProgram pickle(int protocol = 4) {
  return PickleProgram(protocol);
}

uint64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace

TEST_CASE("numbers of every width keep their value") {
  const Unpickled read(pickle()
                           .raw("(")
                           .raw("K\xff")
                           .raw("M\xff\xff")
                           .raw("J\xff\xff\xff\xff")
                           .raw("\x8a")
                           .byte(0)
                           .number(0xffff'ffff'ffff'ffff)
                           .raw("\x8a\x08")
                           .little(static_cast<uint64_t>(-5'000'000'000LL), 8)
                           .raw("\x8b")
                           .little(12, 4)
                           .little(7, 8)
                           .little(0, 4)
                           .raw("I01\n")
                           .raw("I-77\n")
                           .raw("L140737488355328L\n")
                           .raw("F1.5\n")
                           .raw("G\x3f\xf8")
                           .little(0, 6)
                           .raw("l.")
                           .bytes());
  std::vector<std::string> texts;
  read.value.each([&](Value v) { texts.push_back(v.text()); });
  REQUIRE(texts == std::vector<std::string>{"255", "65535", "-1", "0", "18446744073709551615",
                                            "-5000000000", "7", "True", "-77", "140737488355328",
                                            "1.5", "1.5"});
}

TEST_CASE("an empty string is a string") {
  const Unpickled read(pickle().text("").raw(".").bytes());
  REQUIRE(read.value.is_string());
  REQUIRE(read.value.string().empty());
}

TEST_CASE("a list may grow in many steps, and a later key wins") {
  PickleProgram program = pickle().raw("]");
  for (int i = 0; i < 3000; ++i) program.raw("M").little(static_cast<uint64_t>(i), 2).raw("a");
  const Unpickled read(program.raw(".").bytes());
  uint64_t sum = 0;
  read.value.each([&](Value v) { sum += *v.natural(); });
  REQUIRE(sum == 2999 * 3000 / 2);

  const Unpickled dict(
      pickle().raw("}").text("a").raw("K\x01s").text("a").raw("K\x02s").raw(".").bytes());
  REQUIRE(dict.value.find("a").natural() == 2);
}

TEST_CASE("shared objects stay shared, and a cycle is harmless") {
  const Unpickled shared(pickle().raw("(]\x94h").byte(0).raw("l.").bytes());
  std::vector<uint32_t> ids;
  shared.value.each([&](Value v) { ids.push_back(v.identity()); });
  REQUIRE(ids.size() == 2);
  REQUIRE(ids[0] == ids[1]);

  const Unpickled cycle(pickle().raw("]\x94h").byte(0).raw("a.").bytes());
  REQUIRE(cycle.value.text() == "list of 1");
}

TEST_CASE("whatever names, calls or builds an object is refused by name") {
  REQUIRE_THAT(refusal(pickle(0).raw("cposix\nsystem\n(S'id'\ntR.").bytes()),
               Contains("the global posix.system"));
  REQUIRE_THAT(refusal(pickle(0).raw("(S'id'\nios\nsystem\n.").bytes()),
               Contains("the global os.system"));
  REQUIRE_THAT(refusal(pickle().text("builtins").text("eval").raw("\x93.").bytes()),
               Contains("the global builtins.eval"));
  REQUIRE_THAT(refusal(pickle().raw("]]R.").bytes()), Contains("a call of an object"));
  REQUIRE_THAT(refusal(pickle().raw("]]\x81.").bytes()), Contains("a call of an object"));
  REQUIRE_THAT(refusal(pickle().raw("]]]\x92.").bytes()), Contains("a call of an object"));
  REQUIRE_THAT(refusal(pickle().raw("(]o.").bytes()), Contains("a call of an object"));
  REQUIRE_THAT(refusal(pickle().raw("]}b.").bytes()), Contains("the state of an object"));
  REQUIRE_THAT(refusal(pickle(0).raw("P1\n.").bytes()), Contains("a persistent id"));
  REQUIRE_THAT(refusal(pickle().raw("K\x01Q.").bytes()), Contains("a persistent id"));
  REQUIRE_THAT(refusal(pickle().raw("\x82\x01.").bytes()), Contains("an extension code"));
  REQUIRE_THAT(refusal(pickle(5).raw("\x97.").bytes()), Contains("a buffer outside the file"));
}

TEST_CASE("a false length costs nothing") {
  const uint64_t before = peak_memory();
  for (const char* op : {"X", "T", "B", "\x8b"})
    REQUIRE_FALSE(refusal(pickle().raw(op).little(0x7fff'ffff, 4).raw("abc").bytes()).empty());
  for (const char* op : {"\x8d", "\x8e", "\x96", "\x95"})
    REQUIRE_FALSE(refusal(pickle().raw(op).little(0x7fff'ffff, 8).raw("abc").bytes()).empty());
  REQUIRE_THAT(refusal(pickle().raw("Nr").little(0x7fff'ffff, 4).raw(".").bytes()),
               Contains("memo index 2147483647"));
  REQUIRE(peak_memory() - before < 32ULL << 20);
}

TEST_CASE("a truncated pickle is refused at every length") {
  const std::string whole = pickle()
                                .raw("}\x94(")
                                .text("segments")
                                .raw("](}(")
                                .text("device")
                                .raw("K\x01")
                                .text("address")
                                .number(uint64_t{1} << 63)
                                .raw("uJ")
                                .little(77, 4)
                                .raw("X")
                                .little(3, 4)
                                .raw("abceu.")
                                .bytes();
  REQUIRE(refusal(whole).empty());
  for (size_t length = 0; length < whole.size(); ++length) {
    INFO(length);
    REQUIRE_FALSE(refusal(whole.substr(0, length)).empty());
  }
}

TEST_CASE("deep nesting is refused without recursion") {
  REQUIRE_THAT(refusal(pickle().times(1'000'000, "(").raw(".").bytes()), Contains("too deeply"));
  REQUIRE_THAT(refusal(pickle().times(100'000, "]").times(99'999, "a").raw(".").bytes()),
               Contains("too deeply"));
  REQUIRE_THAT(refusal(pickle().times(20'000, "}N").times(19'999, "s").raw(".").bytes()),
               Contains("too deeply"));
  // Nested from inside out there is no stack to exhaust, and nobody descends into the result.
  REQUIRE(refusal(pickle().raw(")").times(100'000, "\x85").raw(".").bytes()).empty());
}

TEST_CASE("a bomb is refused before it fills memory") {
  const uint64_t before = peak_memory();
  // 40 MB of one-byte values that would take 160, and lists that would take twelve times as much.
  REQUIRE_THAT(refusal(pickle().raw("(").times(40'000'000, "N").raw("l.").bytes()),
               Contains("MiB of memory"));
  REQUIRE_THAT(refusal(pickle().raw("(").times(40'000'000, "]").raw("l.").bytes()),
               Contains("MiB of memory"));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep what was freed
  // The input itself and its copies in this test are 3 x 40 MB.
  REQUIRE(peak_memory() - before < 3 * 40'000'000ULL + 3 * 40'000'000ULL);
#else
  static_cast<void>(before);
#endif
}

TEST_CASE("a malformed program is refused, not followed") {
  for (const char* program :
       {".",     "0.",    "1.",    "2.",     "a.",       "e.",      "s.",    "u.",
        "t.",    "d.",    "l.",    "(K\1d.", "\x85.",    "\x86.",   "\x94.", "h\x05.",
        "g7\n.", "gx\n.", "NNa.",  "]NNs.",  "}NNN(u.",  "(NNNd.",  "N(Ne.", "(a.",
        "(e.",   "](a.",  "Ix\n.", "I\n.",   "Fnope\n.", "Sabc\n.", "\xff.", "\x80\x06."}) {
    INFO(program);
    REQUIRE_FALSE(refusal(pickle().raw(program).bytes()).empty());
  }
}

}  // namespace vramtrack
