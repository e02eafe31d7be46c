// What nvcc compiles: launches of each kind, variables, a captured graph, an exception through its
// host code.
#include <cooperative_groups.h>

#include <stdexcept>
#include <thread>
#include <vector>

#include "subjects.h"
#include "witness.h"

namespace victims {

__global__ void fill(float* out, float value, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = value;
}

template <class T>
__global__ void scale(T* out, T factor) {
  out[threadIdx.x] *= factor;
}

__global__ void cooperative(float* out) {
  cooperative_groups::this_grid().sync();
  out[0] = 1;
}

namespace {

void say_launch(const char* kernel, const char* how, unsigned int grid, unsigned int block) {
  say_raw("launch", "\"kernel\":\"" + std::string(kernel) + "\",\"how\":\"" + how + "\",\"grid\":" +
                        std::to_string(grid) + ",\"block\":" + std::to_string(block) +
                        ",\"result\":" + std::to_string(cudaPeekAtLastError()));
}

}  // namespace

void kernels() {
  VICTIM_FRAME;
  constexpr int kCount = 1 << 20;
  constexpr size_t kBytes = kCount * sizeof(float);
  cudaStream_t stream = nullptr;
  SUCCEEDS(cudaStreamCreate(&stream));
  float* out = nullptr;
  ALLOCATES(cudaMalloc(&out, kBytes), "device", out, kBytes);
  fill<<<kCount / 256, 256, 0, stream>>>(out, 1.0f, kCount);
  say_launch("victims::fill", "<<<>>>", kCount / 256, 256);
  scale<double><<<1, 32>>>(reinterpret_cast<double*>(out), 2.0);
  say_launch("victims::scale<double>", "<<<>>>", 1, 32);
  fill<<<0, 256>>>(out, 1.0f, 0);
  say_launch("", "empty grid", 0, 256);

  float value = 3;
  int count = kCount;
  void* arguments[] = {&out, &value, &count};
  SUCCEEDS(cudaLaunchKernel((const void*)fill, dim3(8), dim3(128), arguments, 0, stream));
  say_launch("victims::fill", "cudaLaunchKernel", 8, 128);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(4);
  config.blockDim = dim3(64);
  config.stream = stream;
  SUCCEEDS(cudaLaunchKernelEx(&config, fill, out, value, count));
  say_launch("victims::fill", "cudaLaunchKernelEx", 4, 64);
  void* one_argument[] = {&out};
  SUCCEEDS(cudaLaunchCooperativeKernel((const void*)cooperative, dim3(2), dim3(32), one_argument, 0,
                                       stream));
  say_launch("victims::cooperative", "cudaLaunchCooperativeKernel", 2, 32);
  SUCCEEDS(cudaStreamSynchronize(stream));

  cudaFuncAttributes attributes{};
  SUCCEEDS(cudaFuncGetAttributes(&attributes, fill));
  int blocks = 0;
  SUCCEEDS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 256, 0));
  const bool versions = attributes.ptxVersion > 0 && attributes.binaryVersion > 0;
  say_raw("versions-set", "\"expected\":1,\"is\":" + std::to_string(versions));
  say_raw("occupancy-at-least-one", "\"expected\":1,\"is\":" + std::to_string(blocks >= 1));
  FREES(cudaFree(out), "device", out, kBytes);
  SUCCEEDS(cudaStreamDestroy(stream));
}

namespace {

void launch_often(int number) {
  VICTIM_FRAME;
  constexpr size_t kBytes = 1 << 16;
  cudaStream_t stream = nullptr;
  SUCCEEDS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  float* out = nullptr;
  ALLOCATES(cudaMallocAsync((void**)&out, kBytes, stream), "pool", out, kBytes);
  for (int i = 0; i < 50; ++i) {
    fill<<<4, 128, 0, stream>>>(out, static_cast<float>(number), 512);
    scale<float><<<1, 32, 0, stream>>>(out, 2.0f);
  }
  SUCCEEDS(cudaGetLastError());
  FREES(cudaFreeAsync(out, stream), "pool", out, kBytes);
  SUCCEEDS(cudaStreamSynchronize(stream));
  SUCCEEDS(cudaStreamDestroy(stream));
}

}  // namespace

// Threads meet at the first launch, which loads the image.
void kernel_threads() {
  VICTIM_FRAME;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(launch_often, i);
  for (std::thread& thread : threads) thread.join();
  cudaMemPool_t pool = nullptr;
  SUCCEEDS(cudaDeviceGetDefaultMemPool(&pool, 0));
  SUCCEEDS(cudaMemPoolTrimTo(pool, 0));
}

__device__ float device_table[1000];
__constant__ int constant_table[16];
__managed__ int managed_counter = 0;

__global__ void use_tables(float* out) {
  out[threadIdx.x] = device_table[threadIdx.x] + constant_table[threadIdx.x % 16] + managed_counter;
}

void device_variables() {
  VICTIM_FRAME;
  size_t size = 0;
  void* address = nullptr;
  SUCCEEDS(cudaGetSymbolSize(&size, device_table));
  SUCCEEDS(cudaGetSymbolAddress(&address, device_table));
  say_raw("variable", "\"name\":\"device_table\",\"expected\":4000,\"is\":" + std::to_string(size));
  const float written = 2.5f;
  float read = 0;
  SUCCEEDS(cudaMemcpyToSymbol(device_table, &written, sizeof written, 40));
  SUCCEEDS(cudaMemcpyFromSymbol(&read, device_table, sizeof read, 40));
  say_raw("variable-value", "\"expected\":1,\"equal\":" + std::to_string(read == written));
  const int constants[16] = {1, 2, 3};
  SUCCEEDS(cudaMemcpyToSymbol(constant_table, constants, sizeof constants));
  GIVES(cudaErrorInvalidValue, cudaMemcpyToSymbol(device_table, &written, sizeof written, 3998));
  cudaGetLastError();
  managed_counter = 41;  // on the host, through the pointer that the runtime put in place
  ++managed_counter;
  say_raw("managed-variable", "\"expected\":42,\"is\":" + std::to_string(managed_counter));
}

void captured_graph() {
  VICTIM_FRAME;
  constexpr size_t kBytes = 1 << 16;
  cudaStream_t stream = nullptr;
  SUCCEEDS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  float* out = nullptr;
  ALLOCATES(cudaMalloc(&out, kBytes), "device", out, kBytes);
  SUCCEEDS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  fill<<<4, 128, 0, stream>>>(out, 1.0f, 512);
  say_launch("victims::fill", "captured", 4, 128);
  SUCCEEDS(cudaMemsetAsync(out, 0, kBytes, stream));
  cudaStreamCaptureStatus status{};
  SUCCEEDS(cudaStreamIsCapturing(stream, &status));
  cudaGraph_t graph = nullptr;
  SUCCEEDS(cudaStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  SUCCEEDS(cudaGraphGetNodes(graph, nullptr, &nodes));
  say_raw("graph-nodes", "\"expected\":2,\"is\":" + std::to_string(nodes));
  cudaGraphNode_t first = nullptr;
  size_t roots = 1;
  SUCCEEDS(cudaGraphGetRootNodes(graph, &first, &roots));
  cudaKernelNodeParams launch{};
  SUCCEEDS(cudaGraphKernelNodeGetParams(first, &launch));
  const bool same = launch.func == (void*)fill && launch.gridDim.x == 4 && launch.blockDim.x == 128;
  say_raw("kernel-node", "\"expected\":1,\"is\":" + std::to_string(same));
  cudaGraphNode_t added = nullptr;
  SUCCEEDS(cudaGraphAddKernelNode(&added, graph, &first, 1, &launch));
  cudaGraphExec_t executable = nullptr;
  SUCCEEDS(cudaGraphInstantiateWithFlags(&executable, graph, 0));
  SUCCEEDS(cudaGraphLaunch(executable, stream));
  SUCCEEDS(cudaStreamSynchronize(stream));
  SUCCEEDS(cudaGraphExecDestroy(executable));
  SUCCEEDS(cudaGraphDestroy(graph));
  FREES(cudaFree(out), "device", out, kBytes);
  SUCCEEDS(cudaStreamDestroy(stream));
}

namespace {

// Owns a block, so that unwinding has something to do between two hooked calls.
struct Block {
  Frame victim_frame{__FILE__, __LINE__, "Block"};
  float* pointer = nullptr;
  explicit Block(size_t bytes) {
    ALLOCATES(cudaMalloc(&pointer, bytes), "device", pointer, bytes);
    size = bytes;
  }
  ~Block() { FREES(cudaFree(pointer), "device", pointer, size); }
  size_t size;
};

__attribute__((noinline)) void allocate_and_throw(int depth) {
  Block block(4096u << depth);
  fill<<<1, 32>>>(block.pointer, 0.0f, 32);
  if (depth == 0) throw std::runtime_error("thrown on purpose");
  allocate_and_throw(depth - 1);
}

}  // namespace

void exception_through_nvcc_code() {
  VICTIM_FRAME;
  bool caught = false;
  try {
    allocate_and_throw(3);
  } catch (const std::runtime_error&) {
    caught = true;
  }
  say_raw("exception", "\"expected\":1,\"caught\":" + std::to_string(caught));
}

}  // namespace victims
