// Questions whose answers must agree with each other: properties and attributes, priorities,
// limits, callbacks, entry points.
#include <cuda_runtime_api.h>

#include <cstring>

#include "subjects.h"
#include "witness.h"

namespace victims {
namespace {

void say_is(const char* what, long long expected, long long is) {
  say_raw("query", "\"what\":\"" + std::string(what) + "\",\"expected\":" +
                       std::to_string(expected) + ",\"is\":" + std::to_string(is));
}

int attribute(cudaDeviceAttr name) {
  int value = -1;
  SUCCEEDS(cudaDeviceGetAttribute(&value, name, 0));
  return value;
}

void device_properties() {
  cudaDeviceProp properties{};
  SUCCEEDS(cudaGetDeviceProperties(&properties, 0));
  size_t free_bytes = 0;
  size_t total = 0;
  SUCCEEDS(cudaMemGetInfo(&free_bytes, &total));
  say_is("named", 1, properties.name[0] != '\0');
  say_is("total", static_cast<long long>(total), static_cast<long long>(properties.totalGlobalMem));
  say_is("multiprocessors", attribute(cudaDevAttrMultiProcessorCount),
         properties.multiProcessorCount);
  say_is("major", attribute(cudaDevAttrComputeCapabilityMajor), properties.major);
  say_is("minor", attribute(cudaDevAttrComputeCapabilityMinor), properties.minor);
  say_is("warp", 32, properties.warpSize);
  say_is("threads", attribute(cudaDevAttrMaxThreadsPerBlock), properties.maxThreadsPerBlock);
  say_is("shared-optin", attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin),
         static_cast<long long>(properties.sharedMemPerBlockOptin));
  say_is("l2", attribute(cudaDevAttrL2CacheSize), properties.l2CacheSize);
  say_is("pools", 1, properties.memoryPoolsSupported);
  char bus_id[64] = {};
  int device = -1;
  SUCCEEDS(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, 0));
  SUCCEEDS(cudaDeviceGetByPCIBusId(&device, bus_id));
  say_is("bus-id", 0, device);
}

void limits_and_peers() {
  size_t before = 0;
  size_t after = 0;
  SUCCEEDS(cudaDeviceGetLimit(&before, cudaLimitMallocHeapSize));
  SUCCEEDS(cudaDeviceSetLimit(cudaLimitMallocHeapSize, before * 2));
  SUCCEEDS(cudaDeviceGetLimit(&after, cudaLimitMallocHeapSize));
  say_is("limit", static_cast<long long>(before) * 2, static_cast<long long>(after));
  SUCCEEDS(cudaDeviceSetLimit(cudaLimitMallocHeapSize, before));
  int can = -1;
  SUCCEEDS(cudaDeviceCanAccessPeer(&can, 0, 0));
  say_is("own-peer", 0, can);
}

struct Calls {
  int callback = 0;
  int host_function = 0;
  int order = 0;
  cudaStream_t stream = nullptr;
};

void streams() {
  int least = 0;
  int greatest = 0;
  int priority = 7;
  unsigned int flags = 0;
  unsigned long long ids[2] = {};
  SUCCEEDS(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  say_is("priorities", 1, greatest <= least);
  Calls calls;
  cudaStream_t other = nullptr;
  SUCCEEDS(cudaStreamCreateWithPriority(&calls.stream, cudaStreamNonBlocking, greatest));
  SUCCEEDS(cudaStreamCreate(&other));
  SUCCEEDS(cudaStreamGetPriority(calls.stream, &priority));
  SUCCEEDS(cudaStreamGetFlags(calls.stream, &flags));
  SUCCEEDS(cudaStreamGetId(calls.stream, &ids[0]));
  SUCCEEDS(cudaStreamGetId(other, &ids[1]));
  say_is("priority", greatest, priority);
  say_is("flags", cudaStreamNonBlocking, flags);
  say_is("ids-differ", 1, ids[0] != ids[1]);

  SUCCEEDS(cudaStreamAddCallback(
      calls.stream,
      [](cudaStream_t stream, cudaError_t status, void* data) {
        auto* const all = static_cast<Calls*>(data);
        all->callback = stream == all->stream && status == cudaSuccess ? ++all->order : -1;
      },
      &calls, 0));
  SUCCEEDS(cudaLaunchHostFunc(
      calls.stream,
      [](void* data) {
        auto* const all = static_cast<Calls*>(data);
        all->host_function = ++all->order;
      },
      &calls));
  SUCCEEDS(cudaStreamSynchronize(calls.stream));
  say_is("callback-first", 1, calls.callback);
  say_is("host-function-second", 2, calls.host_function);
  SUCCEEDS(cudaStreamQuery(calls.stream));
  SUCCEEDS(cudaStreamDestroy(calls.stream));
  SUCCEEDS(cudaStreamDestroy(other));
}

void entry_points() {
  void* address = &address;
  cudaDriverEntryPointQueryResult found{};
  SUCCEEDS(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &address, 12000, 0, &found));
  say_is("unknown-name", cudaDriverEntryPointSymbolNotFound, found);
  say_is("unknown-address", 1, address == nullptr);
  SUCCEEDS(cudaGetDriverEntryPointByVersion("cuMemAlloc", &address, 12000, 0, &found));
  say_is("known-name", cudaDriverEntryPointSuccess, found);
  say_is("known-address", 1, address != nullptr);
}

void managed_advice() {
  VICTIM_FRAME;
  constexpr size_t kBytes = 1 << 20;
  void* block = nullptr;
  ALLOCATES(cudaMallocManaged(&block, kBytes, cudaMemAttachGlobal), "managed", block, kBytes);
#if CUDART_VERSION >= 13000
  cudaMemLocation here{};
  here.type = cudaMemLocationTypeDevice;
  here.id = 0;
  SUCCEEDS(cudaMemAdvise(block, kBytes, cudaMemAdviseSetPreferredLocation, here));
  SUCCEEDS(cudaMemPrefetchAsync(block, kBytes, here, 0, nullptr));
#else
  SUCCEEDS(cudaMemAdvise(block, kBytes, cudaMemAdviseSetPreferredLocation, 0));
  SUCCEEDS(cudaMemPrefetchAsync(block, kBytes, 0, nullptr));
#endif
  SUCCEEDS(cudaDeviceSynchronize());
  FREES(cudaFree(block), "managed", block, kBytes);
}

void texture() {
  VICTIM_FRAME;
  const cudaChannelFormatDesc format = {8, 8, 8, 8, cudaChannelFormatKindUnsigned};
  cudaArray_t array = nullptr;
  ALLOCATES(cudaMallocArray(&array, &format, 64, 64, 0), "array", array, 64 * 64 * 4);
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc description{};
  description.readMode = cudaReadModeNormalizedFloat;
  cudaTextureObject_t object = 0;
  SUCCEEDS(cudaCreateTextureObject(&object, &resource, &description, nullptr));
  say_is("texture-object", 1, object != 0);
  SUCCEEDS(cudaDestroyTextureObject(object));
  FREES(cudaFreeArray(array), "array", array, 64 * 64 * 4);
}

}  // namespace

void queries() {
  VICTIM_FRAME;
  SUCCEEDS(cudaFree(nullptr));
  device_properties();
  limits_and_peers();
  streams();
  entry_points();
  HERE(managed_advice());
  HERE(texture());
}

}  // namespace victims
