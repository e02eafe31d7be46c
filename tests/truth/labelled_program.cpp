// A CUDA C++ program, an inference server in small, that says by the API what its memory is. It
// knows what each allocation is for and writes that down at its marks: labelled_program OUT.json.
//
// Some pieces are labelled by pointer, some only made in a phase that is named like a category, and
// two are never explained.
#include <cuda_runtime_api.h>
#include <vramtrack/annotate.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace {

constexpr size_t kMiB = 1 << 20;

struct Piece {
  size_t bytes;
  std::string category;
};

std::map<void*, Piece> g_live;
std::string g_marks;

void must(cudaError_t result) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(result));
  std::exit(1);
}

void* take(size_t bytes, const char* category) {
  void* pointer = nullptr;
  must(cudaMalloc(&pointer, bytes));
  g_live[pointer] = {bytes, category};
  return pointer;
}

void give(void* pointer) {
  g_live.erase(pointer);
  must(cudaFree(pointer));
}

void mark(const char* name) {
  vramtrack::mark(name);
  g_marks += (g_marks.empty() ? "\"" : ",\n\"") + std::string(name) + "\": {";
  bool first = true;
  for (const auto& [pointer, piece] : g_live) {
    g_marks += (first ? "\"" : ", \"") + std::to_string(reinterpret_cast<uintptr_t>(pointer)) +
               "\": [" + std::to_string(piece.bytes) + ", \"" + piece.category + "\"]";
    first = false;
  }
  g_marks += "}";
}

void load_weights() {
  const vramtrack::Scope phase("parameters");
  for (int layer = 0; layer < 4; ++layer) take(12 * kMiB, "parameters");
}

void serve(int requests) {
  for (int request = 0; request < requests; ++request) {
    vramtrack::step(static_cast<uint64_t>(request));
    void* prompt = take(kMiB, "inputs");
    vramtrack::label(prompt, kMiB, "inputs:prompt");
    void* scores = take(16 * kMiB, "attention");
    vramtrack::label(scores, 16 * kMiB, "attention");
    void* hidden = nullptr;
    {
      const vramtrack::Scope outer("activations");
      hidden = take(8 * kMiB, "activations");
      const vramtrack::Scope inner("workspace");
      void* scratch = take(2 * kMiB, "workspace");
      if (request == 1) mark("busy");
      give(scratch);
    }
    give(hidden);
    give(scores);
    give(prompt);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  load_weights();
  void* cache = take(64 * kMiB, "kv_cache");
  vramtrack::label(cache, 64 * kMiB, "kv_cache:pool");
  void* collective = take(4 * kMiB, "communication");
  vramtrack::label(collective, 4 * kMiB, "communication/ring");
  take(3 * kMiB, "other");  // nothing says what it is
  void* renamed = take(5 * kMiB, "other");
  vramtrack::label(renamed, 5 * kMiB, "tables of my own");  // names no category
  mark("loaded");
  serve(3);
  mark("idle");
  FILE* out = std::fopen(argv[1], "w");
  if (out == nullptr) return 1;
  std::fprintf(out, "{%s}\n", g_marks.c_str());
  std::fclose(out);
  return 0;
}
