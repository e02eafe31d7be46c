// Managed, pinned and registered memory.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>

#include "subjects.h"
#include "witness.h"

namespace victims {
namespace {

// What kind of memory the runtime says that an address is.
int type_of(const void* pointer) {
  cudaPointerAttributes attributes{};
  SUCCEEDS(cudaPointerGetAttributes(&attributes, pointer));
  return attributes.type;
}

}  // namespace

void managed_memory() {
  VICTIM_FRAME;
  constexpr size_t kBytes = 2 << 20;
  constexpr unsigned int kGlobal = cudaMemAttachGlobal;
  char* block = nullptr;
  ALLOCATES(cudaMallocManaged((void**)&block, kBytes, kGlobal), "managed", block, kBytes);
  block[0] = 1;  // the host may write it
  block[kBytes - 1] = 2;
  say_raw("type", "\"expected\":3,\"is\":" + std::to_string(type_of(block)));
  FREES(cudaFree(block), "managed", block, kBytes);
}

void pinned_memory() {
  VICTIM_FRAME;
  constexpr size_t kBytes = 3 << 20;
  char* pinned = nullptr;
  ALLOCATES(cudaMallocHost((void**)&pinned, kBytes), "pinned", pinned, kBytes);
  std::memset(pinned, 1, kBytes);
  say_raw("type", "\"expected\":1,\"is\":" + std::to_string(type_of(pinned)));
  FREES(cudaFreeHost(pinned), "pinned", pinned, kBytes);

  char* mapped = nullptr;
  ALLOCATES(cudaHostAlloc((void**)&mapped, 4096, cudaHostAllocMapped), "pinned", mapped, 4096);
  void* seen_by_device = nullptr;
  SUCCEEDS(cudaHostGetDevicePointer(&seen_by_device, mapped, 0));
  FREES(cudaFreeHost(mapped), "pinned", mapped, 4096);

  void* plain = aligned_alloc(4096, 65536);
  say_raw("type", "\"expected\":0,\"is\":" + std::to_string(type_of(plain)));
  ALLOCATES(cudaHostRegister(plain, 65536, cudaHostRegisterDefault), "registered", plain, 65536);
  say_raw("type", "\"expected\":1,\"is\":" + std::to_string(type_of(plain)));
  FREES(cudaHostUnregister(plain), "registered", plain, 65536);
  std::free(plain);
}

}  // namespace victims
