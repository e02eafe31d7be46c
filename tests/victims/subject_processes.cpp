// Memory that another process opens, a second device, and a device that is reset under its
// allocations.
#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include "subjects.h"
#include "witness.h"

namespace victims {
namespace {

constexpr size_t kShared = 8 << 20;

// The importer maps the owner's bytes: it says "import", because they are not its own.
int import_from(int pipe_end) {
  VICTIM_FRAME;
  cudaIpcMemHandle_t handle{};
  if (read(pipe_end, &handle, sizeof handle) != static_cast<ssize_t>(sizeof handle)) return 1;
  void* block = nullptr;
  SUCCEEDS(cudaIpcOpenMemHandle(&block, handle, cudaIpcMemLazyEnablePeerAccess));
  say({"import", "cudaIpcOpenMemHandle", "device", block, kShared, 0});
  unsigned int read_back = 0;
  SUCCEEDS(cudaMemcpy(&read_back, block, sizeof read_back, cudaMemcpyDeviceToHost));
  // The simulated GPU keeps contents per process: only a real one is expected to give the owner's
  // value.
  say_raw("shared-value", "\"written\":48879,\"is\":" + std::to_string(read_back));
  SUCCEEDS(cudaIpcCloseMemHandle(block));
  return 0;
}

}  // namespace

// Forks before anything of CUDA is touched, as the documentation demands.
void shared_between_processes() {
  VICTIM_FRAME;
  int to_child[2];
  SUCCEEDS(pipe(to_child));
  const pid_t child = fork();
  if (child == 0) {
    close(to_child[1]);
    std::exit(import_from(to_child[0]));
  }
  close(to_child[0]);
  const unsigned int value = 0xbeef;
  void* block = nullptr;
  ALLOCATES(cudaMalloc(&block, kShared), "device", block, kShared);
  SUCCEEDS(cudaMemcpy(block, &value, sizeof value, cudaMemcpyHostToDevice));
  cudaIpcMemHandle_t handle{};
  SUCCEEDS(cudaIpcGetMemHandle(&handle, block));
  if (write(to_child[1], &handle, sizeof handle) != static_cast<ssize_t>(sizeof handle)) _exit(1);
  close(to_child[1]);
  int status = -1;
  SUCCEEDS(waitpid(child, &status, 0) == child ? 0 : 1);
  say_raw("child", "\"expected\":0,\"is\":" + std::to_string(status));
  FREES(cudaFree(block), "device", block, kShared);
}

void two_devices() {
  VICTIM_FRAME;
  int count = 0;
  SUCCEEDS(cudaGetDeviceCount(&count));
  void* blocks[2] = {};
  for (int device = 0; device < 2 && device < count; ++device) {
    SUCCEEDS(cudaSetDevice(device));
    watch_device(device);
    ALLOCATES(cudaMalloc(&blocks[device], 1 << 22), "device", blocks[device], 1 << 22);
    cudaPointerAttributes attributes{};
    SUCCEEDS(cudaPointerGetAttributes(&attributes, blocks[device]));
    say_raw("on-device", "\"expected\":" + std::to_string(device) +
                             ",\"is\":" + std::to_string(attributes.device));
  }
  // Freed while the other device is current: the block's own device counts.
  SUCCEEDS(cudaSetDevice(0));
  for (int device = 0; device < 2 && device < count; ++device) {
    watch_device(device);
    FREES(cudaFree(blocks[device]), "device", blocks[device], 1 << 22);
  }
  watch_device(0);
}

void device_reset() {
  VICTIM_FRAME;
  void* block = nullptr;
  ALLOCATES(cudaMalloc(&block, 9 << 20), "device", block, 9 << 20);
  SUCCEEDS(cudaDeviceReset());
  say_raw("reset", "\"bytes\":" + std::to_string(9 << 20));
  GIVES(cudaErrorInvalidValue, cudaFree(block));
  void* fresh = nullptr;
  ALLOCATES(cudaMalloc(&fresh, 1 << 20), "device", fresh, 1 << 20);
  FREES(cudaFree(fresh), "device", fresh, 1 << 20);
}

}  // namespace victims
