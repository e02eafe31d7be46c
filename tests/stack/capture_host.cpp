// capture_host <capture library> constructor <victim> | threads <definitions file> | exceptions -
// Takes stacks where that is hard. The capture library is loaded, not linked: its own frames are
// left out of stacks, and ours are to be in them.
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

uint32_t (*g_capture)() = nullptr;

__attribute__((noinline)) uint32_t at_depth(int depth) {
  const uint32_t id = depth == 0 ? g_capture() : at_depth(depth - 1);
  asm volatile("" ::: "memory");
  return id;
}

int in_constructor(const char* victim) {
  void* library = dlopen(victim, RTLD_NOW);
  if (library == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 1;
  const auto* id = static_cast<uint32_t*>(dlsym(library, "id_from_constructor"));
  std::printf("id %u\n", *id);
  return *id != 0 ? 0 : 1;
}

struct Captures {
  ~Captures() { g_capture(); }
};

__attribute__((noinline)) void throw_through(int depth) {
  const Captures while_unwinding;
  if (depth == 0) throw std::runtime_error("expected");
  throw_through(depth - 1);
}

// libunwind is in the process and has unwinding functions of its own: exceptions stay with the
// compiler's.
int with_exceptions() {
  for (const char* name : {"_Unwind_RaiseException", "_Unwind_Resume", "backtrace"}) {
    Dl_info info{};
    void* function = dlsym(RTLD_DEFAULT, name);
    if (function == nullptr || dladdr(function, &info) == 0) return 1;
    std::printf("%s %s\n", name, info.dli_fname);
    if (std::strstr(info.dli_fname, "libunwind") != nullptr) return 1;
  }
  int caught = 0;
  for (int i = 0; i < 100; ++i) {
    try {
      throw_through(i % 10);
    } catch (const std::runtime_error& error) {
      if (std::strcmp(error.what(), "expected") == 0 && at_depth(3) != 0) ++caught;
    }
  }
  std::printf("caught %d\n", caught);
  return caught == 100 ? 0 : 1;
}

// Many threads that take the same 64 stacks at once: each stack has one id, but for the rare pair
// of threads that met it at the same moment.
int on_threads(const char* path, int (*save)(const char*)) {
  constexpr int kThreads = 8;
  constexpr int kDepths = 64;
  std::vector<std::set<uint32_t>> ids(kDepths);
  std::vector<std::vector<uint32_t>> seen(kThreads, std::vector<uint32_t>(kDepths * 20));
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&seen, t] {
      for (int i = 0; i < kDepths * 20; ++i)
        seen[static_cast<size_t>(t)][static_cast<size_t>(i)] = at_depth(i % kDepths);
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<uint32_t>& of_thread : seen)
    for (size_t i = 0; i < of_thread.size(); ++i) ids[i % kDepths].insert(of_thread[i]);
  size_t most = 0;
  std::set<uint32_t> all;
  for (const std::set<uint32_t>& of_depth : ids) {
    most = std::max(most, of_depth.size());
    for (const uint32_t id : of_depth)
      if (id == 0 || !all.insert(id).second) return std::fprintf(stderr, "id %u twice\n", id), 1;
  }
  std::printf("stacks %d ids %zu most %zu\n", kDepths, all.size(), most);
  return most <= kThreads && save(path) == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 1;
  g_capture = reinterpret_cast<uint32_t (*)()>(dlsym(library, "capture"));
  if (std::strcmp(argv[2], "constructor") == 0) return in_constructor(argv[3]);
  if (std::strcmp(argv[2], "exceptions") == 0) return with_exceptions();
  return on_threads(argv[3], reinterpret_cast<int (*)(const char*)>(dlsym(library, "save")));
}
