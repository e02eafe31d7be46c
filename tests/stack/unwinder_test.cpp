// Our own walk by call frame information against libunwind's, in code of many shapes, compiled with
// -O2 and without frame pointers. Each shape also states how many frames it made itself, so that
// two unwinders that are wrong in the same way would be noticed.
#include <alloca.h>
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include "stack/cfi_rule.h"
#include "stack/modules.h"
#include "stack/native_unwinder.h"

using namespace vramtrack;

namespace {

constexpr size_t kMost = 256;

struct Pair {
  std::vector<uintptr_t> own;
  std::vector<uintptr_t> reference;
  bool ordered = true;  // frames end further and further out
};

Pair g_seen;

__attribute__((noinline)) void look() {
  NativeFrame own[kMost];
  NativeFrame reference[kMost];
  const size_t own_count = cfi_backtrace(own, kMost);
  const size_t reference_count = libunwind_backtrace(reference, kMost);
  g_seen = {};
  // The first frame is our own, at two different calls; libunwind's starts inside its wrapper.
  const size_t skip = reference_count > 0 && own_count > 1
                          ? static_cast<size_t>(std::find_if(reference, reference + reference_count,
                                                             [&](const NativeFrame& f) {
                                                               return f.pc == own[1].pc;
                                                             }) -
                                                reference)
                          : 0;
  for (size_t i = 1; i < own_count; ++i) {
    g_seen.own.push_back(own[i].pc);
    if (own[i].cfa <= own[i - 1].cfa) g_seen.ordered = false;
  }
  for (size_t i = skip; i < reference_count; ++i) g_seen.reference.push_back(reference[i].pc);
}

__attribute__((noinline)) int recurse(int depth) {
  if (depth == 0) {
    look();
    return 1;
  }
  const int deeper = recurse(depth - 1);
  asm volatile("" ::: "memory");  // or the compiler makes it a loop
  return deeper + 1;
}

__attribute__((noinline)) int with_alloca(size_t bytes) {
  auto* memory = static_cast<volatile char*>(alloca(bytes));
  memory[bytes - 1] = 1;
  look();
  return memory[bytes - 1];
}

__attribute__((noinline)) int large_frame() {
  volatile char memory[200000];
  memory[199999] = 1;
  look();
  return memory[199999];
}

// The frame is realigned: gcc describes it with an expression through rbp.
__attribute__((noinline)) int realigned(size_t bytes) {
  alignas(64) volatile char memory[256];
  auto* more = static_cast<volatile char*>(alloca(bytes));
  memory[0] = 1;
  more[0] = 1;
  look();
  return memory[0] + more[0];
}

__attribute__((noinline)) int many_arguments(int a, int b, int c, int d, int e, int f, int g, int h,
                                             int i, int j) {
  look();
  return a + b + c + d + e + f + g + h + i + j;
}

struct LooksWhenDestroyed {
  ~LooksWhenDestroyed() { look(); }
};

__attribute__((noinline)) void throws() {
  const LooksWhenDestroyed guard;
  throw std::runtime_error("expected");
}

void check(size_t least) {
  CHECK(g_seen.own.size() >= least);
  CHECK(g_seen.own == g_seen.reference);
  CHECK(g_seen.ordered);
}

bool ready() {
  modules_refresh();
  return open_libunwind();
}

}  // namespace

TEST_CASE("walks agree in plain, recursive and large frames") {
  REQUIRE(ready());
  look();
  check(3);
  recurse(100);
  check(103);
  with_alloca(12345);
  check(3);
  large_frame();
  check(3);
  realigned(300);
  check(3);
  many_arguments(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
  check(3);
}

TEST_CASE("walks agree through callbacks of libraries") {
  REQUIRE(ready());
  std::vector<int> numbers = {3, 1, 2};
  std::sort(numbers.begin(), numbers.end(), [](int a, int b) {
    look();
    return a < b;
  });
  check(3);
  qsort(numbers.data(), 3, sizeof(int), [](const void*, const void*) {
    look();
    return 0;
  });
  check(4);
  const std::function<void()> function = [] { look(); };
  function();
  check(4);
}

TEST_CASE("walks agree on threads, down to where they began") {
  REQUIRE(ready());
  std::thread([] { recurse(10); }).join();
  check(13);
}

TEST_CASE("walks agree while an exception is on its way, and it arrives") {
  REQUIRE(ready());
  bool caught = false;
  try {
    throws();
  } catch (const std::runtime_error& error) {
    caught = std::string(error.what()) == "expected";
    const Pair during = g_seen;
    CHECK(during.own == during.reference);
    CHECK(during.own.size() >= 4);
    look();
  }
  CHECK(caught);
  check(3);
}

TEST_CASE("a signal handler's stack is left to libunwind") {
  REQUIRE(ready());
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) { look(); };
  sigaction(SIGUSR1, &action, &before);
  raise(SIGUSR1);
  sigaction(SIGUSR1, &before, nullptr);
  CHECK(g_seen.own.empty());
}

TEST_CASE("a rule survives being packed") {
  const CfiRule rules[] = {{CfiRule::Cfa::from_sp, CfiRule::Bp::same, 8, 0},
                           {CfiRule::Cfa::from_bp, CfiRule::Bp::at_cfa, 16, -16},
                           {CfiRule::Cfa::through_bp, CfiRule::Bp::at_bp, -8, 0},
                           {CfiRule::Cfa::from_sp, CfiRule::Bp::at_cfa, 1 << 28, -(1 << 26)},
                           {CfiRule::Cfa::outermost, CfiRule::Bp::same, 0, 0}};
  for (const CfiRule& rule : rules) {
    const CfiRule back = CfiRule::unpack(rule.pack());
    CHECK(rule.pack() != 0);
    CHECK(back.cfa == rule.cfa);
    CHECK(back.bp == rule.bp);
    CHECK(back.cfa_offset == rule.cfa_offset);
    CHECK(back.bp_offset == rule.bp_offset);
  }
  CHECK(CfiRule::unpack(CfiRule{CfiRule::Cfa::from_sp, CfiRule::Bp::same, 1 << 29, 0}.pack()).cfa ==
        CfiRule::Cfa::unknown);
}
