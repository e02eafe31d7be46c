// Launches of every kind; for each a line of JSON that says which kernel and which device addresses
// it was given, in the order of its parameters, written by the program from what it passes.
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace launches {

struct Pair {
  int tag;
  float* to;
  const float* from;
  double factor;
};

// As PyTorch passes lists of tensors: by value.
struct Lists {
  void* addresses[3][20];
  long counts[20];
  unsigned char blocks[64];
};

struct Many {
  float* pointers[1200];
};

__global__ void fill(float* out, float value, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = value;
}
__global__ void pairs(int first, Pair pair, const float* more) {
  pair.to[first] = pair.from[0] + more[0];
}
__global__ void lists(Lists lists) {
  static_cast<float*>(lists.addresses[0][threadIdx.x])[0] = 1;
}
__global__ void many(const float* before, int first, Many many, float* behind) {
  many.pointers[threadIdx.x][first] = before[0];
  behind[0] = 1;
}
__global__ void scalars(long address_like, double value, const void* host, const char* none) {
  if (address_like == 1 && value > 0 && host == none) __trap();
}
__global__ void cooperative(float* out) {
  cooperative_groups::this_grid().sync();
  out[0] = 1;
}
template <class T>
__global__ void scale(T* out, T factor) {
  out[threadIdx.x] *= factor;
}

namespace {

std::mutex g_output;

void must(int result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "%s failed with %d\n", what, result);
  std::exit(1);
}
#define MUST(call) must(static_cast<int>(call), #call)

void say(const char* what, const char* name, const std::vector<const void*>& addresses,
         size_t size = 0) {
  std::string line = std::string("{\"what\":\"") + what + "\",\"name\":\"" + name +
                     "\",\"size\":" + std::to_string(size) + ",\"addresses\":[";
  for (size_t i = 0; i < addresses.size(); ++i)
    line += (i == 0 ? "" : ",") + std::to_string(reinterpret_cast<unsigned long>(addresses[i]));
  const std::lock_guard<std::mutex> lock(g_output);
  std::printf("%s]}\n", line.c_str());
}

float* allocate(size_t bytes) {
  float* pointer = nullptr;
  MUST(cudaMalloc(&pointer, bytes));
  return pointer;
}

// The parameters of pairs(), as the compiler lays them out.
struct PairsBuffer {
  int first;
  Pair pair;
  const float* more;
};

void plain(float* a, float* b, cudaStream_t stream) {
  fill<<<4, 128, 0, stream>>>(a, 1.0f, 512);
  say("launch", "launches::fill", {a});
  fill<<<4, 128>>>(b + 1000, 1.0f, 512);  // a view
  say("launch", "launches::fill", {b + 1000});
  scale<double><<<1, 32>>>(reinterpret_cast<double*>(a), 2.0);
  say("launch", "launches::scale<double>", {a});
  pairs<<<1, 32>>>(7, Pair{1, a, b, 2.0}, b + 16);
  say("launch", "launches::pairs", {a, b, b + 16});
  pairs<<<1, 32>>>(7, Pair{1, a, a, 2.0}, b);  // the same twice
  say("launch", "launches::pairs", {a, b});
}

void without_memory() {
  void* pinned = nullptr;
  MUST(cudaMallocHost(&pinned, 4096));
  int local = 0;
  scalars<<<1, 32>>>(reinterpret_cast<long>(&local), 3.0, pinned, nullptr);
  MUST(cudaFreeHost(pinned));
}

void by_structs(float* a, float* b) {
  Lists all{};
  std::vector<const void*> given;
  for (int list = 0; list < 3; ++list)
    for (int i = 0; i < 20; ++i) {
      all.addresses[list][i] = a + 64 * (20 * list + i);
      given.push_back(all.addresses[list][i]);
    }
  for (long& count : all.counts) count = 64;
  lists<<<1, 20>>>(all);
  say("launch", "launches::lists", given);
  Many more{};
  std::vector<const void*> first = {b};
  for (int i = 0; i < 1200; ++i) {
    more.pointers[i] = a + 8 * i;
    if (first.size() < 1024) first.push_back(more.pointers[i]);  // the documented bound
  }
  many<<<1, 32>>>(b, 1, Many{{a, a + 1}}, b + 1);
  say("launch", "launches::many", {b, a, a + 1, b + 1});
  many<<<1, 32>>>(b, 2, more, b + 1);
  say("launch", "launches::many", first);
}

void by_interfaces(float* a, float* b, cudaStream_t stream) {
  float value = 3;
  int count = 512;
  void* arguments[] = {&a, &value, &count};
  MUST(cudaLaunchKernel((const void*)fill, dim3(8), dim3(128), arguments, 0, stream));
  say("launch", "launches::fill", {a});
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(4);
  config.blockDim = dim3(64);
  config.stream = stream;
  MUST(cudaLaunchKernelEx(&config, fill, b, value, count));
  say("launch", "launches::fill", {b});
  void* one[] = {&b};
  MUST(cudaLaunchCooperativeKernel((const void*)cooperative, dim3(2), dim3(32), one, 0, stream));
  say("launch", "launches::cooperative", {b});

  cudaFunction_t function = nullptr;
  MUST(cudaGetFuncBySymbol(&function, (const void*)pairs));
  PairsBuffer buffer{1, {2, b, a, 1.0}, a + 32};
  size_t size = sizeof buffer;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  MUST(cuLaunchKernel(reinterpret_cast<CUfunction>(function), 1, 1, 1, 32, 1, 1, 0, stream, nullptr,
                      extra));
  say("launch", "launches::pairs", {b, a, a + 32});
}

void copies(float* a, float* b, cudaStream_t stream) {
  std::vector<float> host(4096);
  MUST(cudaMemcpy(a, host.data(), 4096, cudaMemcpyHostToDevice));
  say("copy", "", {a, nullptr}, 4096);
  MUST(cudaMemcpyAsync(b, a, 8192, cudaMemcpyDeviceToDevice, stream));
  say("copy", "", {b, a}, 8192);
  MUST(cudaMemcpyAsync(host.data(), b + 8, 1024, cudaMemcpyDeviceToHost, stream));
  say("copy", "", {nullptr, b + 8}, 1024);
  MUST(cudaMemcpy2D(a, 256, b, 512, 128, 16, cudaMemcpyDeviceToDevice));
  say("copy", "", {a, b}, 128 * 16);
  MUST(cudaMemset(a, 0, 2048));
  say("set", "", {a}, 2048);
  MUST(cudaMemsetAsync(b + 4, 0, 512, stream));
  say("set", "", {b + 4}, 512);
  MUST(cuMemsetD32Async(reinterpret_cast<CUdeviceptr>(a), 1, 100, stream));
  say("set", "", {a}, 400);
}

void graphs(float* a, float* b, cudaStream_t stream) {
  MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  fill<<<4, 128, 0, stream>>>(a, 1.0f, 512);
  pairs<<<1, 32, 0, stream>>>(7, Pair{1, a, b, 2.0}, b + 16);
  MUST(cudaMemsetAsync(b, 0, 4096, stream));
  MUST(cudaMemcpyAsync(b, a, 8192, cudaMemcpyDeviceToDevice, stream));
  cudaGraph_t graph = nullptr;
  MUST(cudaStreamEndCapture(stream, &graph));
  cudaGraph_t outer = nullptr;
  MUST(cudaGraphCreate(&outer, 0));
  cudaGraphNode_t child = nullptr;
  MUST(cudaGraphAddChildGraphNode(&child, outer, nullptr, 0, graph));
  cudaGraphExec_t executable = nullptr;
  MUST(cudaGraphInstantiateWithFlags(&executable, outer, 0));
  say("node", "launches::fill", {a});
  say("node", "launches::pairs", {a, b, b + 16});
  say("node-set", "", {b}, 4096);
  say("node-copy", "", {b, a}, 8192);
  for (int i = 0; i < 3; ++i) {
    MUST(cudaGraphLaunch(executable, stream));
    say("graph-launch", "", {});
  }
  MUST(cudaStreamSynchronize(stream));
  MUST(cudaGraphExecDestroy(executable));
  MUST(cudaGraphDestroy(outer));
  MUST(cudaGraphDestroy(graph));
}

void repeat(float* a) {
  for (int i = 0; i < 100; ++i) {
    fill<<<1, 32>>>(a + 512 * i, 0.0f, 32);
    say("thread-launch", "launches::fill", {a + 512 * i});
    scale<float><<<1, 32>>>(a, 2.0f);
    say("thread-launch", "launches::scale<float>", {a});
  }
}

}  // namespace
}  // namespace launches

int main() {
  using namespace launches;
  float* a = allocate(1 << 20);
  float* b = allocate(1 << 20);
  float* pooled = nullptr;
  cudaStream_t stream = nullptr;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  MUST(cudaMallocAsync(reinterpret_cast<void**>(&pooled), 1 << 16, stream));
  plain(a, b, stream);
  plain(pooled, a, stream);
  without_memory();
  by_structs(a, b);
  by_interfaces(a, b, stream);
  copies(a, b, stream);
  graphs(a, b, stream);
  plain(a, b, stream);  // after the capture
  std::vector<std::thread> threads;
  for (float* pointer : {a, b, a + 1, b + 1}) threads.emplace_back(repeat, pointer);
  for (std::thread& thread : threads) thread.join();
  MUST(cudaFreeAsync(pooled, stream));
  MUST(cudaFree(b));
  MUST(cudaFree(a));
  MUST(cudaStreamDestroy(stream));
  return 0;
}
