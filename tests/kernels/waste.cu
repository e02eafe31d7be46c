// Twenty rounds of work, and memory that is held without use: `waste none`, `waste all`, or any of
// `unused early late idle`, with `steps` to say when a round begins. What is not named does the
// same work with the memory there only while it is used. Prints the most that the program held.
#include <cuda_runtime.h>
#include <vramtrack/annotate.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace {

constexpr size_t kMiB = 1 << 20;
constexpr int kRounds = 20;
constexpr int kFirstUse = 12;  // of what is taken early
constexpr int kReturn = 17;    // of what is idle
constexpr int kLastUse = 2;    // of what is kept late

size_t g_held = 0;
size_t g_most = 0;
std::map<void*, size_t> g_sizes;

__global__ void use(float* memory) {
  memory[threadIdx.x] += 1;
}
__global__ void combine(float* to, const float* from) {
  to[threadIdx.x] += from[threadIdx.x];
}

float* taken(void* pointer, size_t bytes) {
  g_sizes[pointer] = bytes;
  g_held += bytes;
  g_most = std::max(g_most, g_held);
  return static_cast<float*>(pointer);
}

#define TAKE(pointer, bytes)                               \
  do {                                                     \
    void* new_memory = nullptr;                            \
    if (cudaMalloc(&new_memory, bytes) != 0) std::exit(1); \
    (pointer) = taken(new_memory, bytes);                  \
  } while (0)

void give_back(float*& pointer) {
  g_held -= g_sizes[pointer];
  if (cudaFree(pointer) != 0) std::exit(1);
  pointer = nullptr;
}

// One place in the code for each, so that a finding can be told by its call site.
__attribute__((noinline)) float* take_unused() {
  float* memory;
  TAKE(memory, 8 * kMiB);
  return memory;
}
__attribute__((noinline)) float* take_early() {
  float* memory;
  TAKE(memory, 16 * kMiB);
  return memory;
}
__attribute__((noinline)) float* take_late() {
  float* memory;
  TAKE(memory, 4 * kMiB);
  return memory;
}
__attribute__((noinline)) float* take_idle() {
  float* memory;
  TAKE(memory, 32 * kMiB);
  return memory;
}
__attribute__((noinline)) float* take_working_set() {
  float* memory;
  TAKE(memory, 10 * kMiB);
  return memory;
}
__attribute__((noinline)) float* take_temporary() {
  float* memory;
  TAKE(memory, 24 * kMiB);
  return memory;
}

}  // namespace

int main(int argc, char** argv) {
  const auto asked = [&](const char* what) {
    for (int i = 1; i < argc; ++i)
      if (std::strcmp(argv[i], what) == 0 || std::strcmp(argv[i], "all") == 0) return true;
    return false;
  };
  bool steps = false;
  for (int i = 1; i < argc; ++i) steps = steps || std::strcmp(argv[i], "steps") == 0;

  float* working_set = take_working_set();
  float* unused = asked("unused") ? take_unused() : nullptr;
  float* early = asked("early") ? take_early() : nullptr;
  float* late = take_late();
  float* idle = take_idle();
  for (int round = 0; round < kRounds; ++round) {
    if (steps) vramtrack::step(round);
    float* temporary = take_temporary();
    use<<<1, 32>>>(working_set);
    combine<<<1, 32>>>(temporary, working_set);
    if (round <= kLastUse) combine<<<1, 32>>>(late, working_set);
    if (round == kLastUse && !asked("late")) give_back(late);
    if (round == kFirstUse && early == nullptr) early = take_early();
    if (round >= kFirstUse) combine<<<1, 32>>>(early, working_set);
    if (round == kReturn && idle == nullptr) idle = take_idle();
    if (round == 0 || round >= kReturn) use<<<1, 32>>>(idle);
    if (round == 0 && !asked("idle")) give_back(idle);
    for (int i = 0; i < 8; ++i) combine<<<1, 32>>>(working_set, temporary);
    give_back(temporary);
  }
  if (unused != nullptr) give_back(unused);
  if (late != nullptr) give_back(late);
  give_back(idle);
  give_back(early);
  give_back(working_set);
  std::printf("%zu\n", g_most);
  return 0;
}
