// The stand-in CUPTI against what the public headers document. Built once per CUDA version, against
// that version's headers: what is read here is what a program of that version would read.
#include <cuda.h>
#include <cupti.h>
#include <catch2/catch.hpp>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

#if CUPTI_API_VERSION >= 130000
using Kernel = CUpti_ActivityKernel10;
using PoolRecord = CUpti_ActivityMemoryPool3;
#else
using Kernel = CUpti_ActivityKernel9;
using PoolRecord = CUpti_ActivityMemoryPool2;
#endif

std::vector<CUpti_ActivityMemory4> g_memory;
std::vector<PoolRecord> g_pools;
std::vector<Kernel> g_kernels;
std::vector<CUpti_ActivityMemcpy6> g_copies;
std::vector<CUpti_ActivityMemset4> g_sets;
std::vector<CUpti_ActivityExternalCorrelation> g_external;
std::vector<CUpti_ActivityAPI> g_calls;
std::size_t g_buffer_bytes = 64 * 1024;
int g_buffers = 0;

void CUPTIAPI request(uint8_t** buffer, size_t* size, size_t* most) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, g_buffer_bytes));
  *size = g_buffer_bytes;
  *most = 0;
  ++g_buffers;
}

template <class Record>
void keep(std::vector<Record>& records, const CUpti_Activity* record) {
  Record copy;
  std::memcpy(static_cast<void*>(&copy), record, sizeof copy);
  records.push_back(copy);
}

void CUPTIAPI complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_MEMORY2:
        keep(g_memory, record);
        break;
      case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
        keep(g_pools, record);
        break;
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        keep(g_kernels, record);
        break;
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        keep(g_copies, record);
        break;
      case CUPTI_ACTIVITY_KIND_MEMSET:
        keep(g_sets, record);
        break;
      case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        keep(g_external, record);
        break;
      case CUPTI_ACTIVITY_KIND_DRIVER:
        keep(g_calls, record);
        break;
      default:
        FAIL("a record that nobody asked for: " << record->kind);
    }
  }
  std::free(buffer);
}

// A current context, and records of `kinds` while it lives.
struct Recorded {
  explicit Recorded(std::vector<CUpti_ActivityKind> wanted) : kinds(std::move(wanted)) {
    REQUIRE(cuInit(0) == CUDA_SUCCESS);
    REQUIRE(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    REQUIRE(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    REQUIRE(cuptiActivityRegisterCallbacks(request, complete) == CUPTI_SUCCESS);
    for (CUpti_ActivityKind kind : kinds) REQUIRE(cuptiActivityEnable(kind) == CUPTI_SUCCESS);
    g_memory.clear();
    g_pools.clear();
    g_kernels.clear();
    g_copies.clear();
    g_sets.clear();
    g_external.clear();
    g_calls.clear();
    g_buffers = 0;
  }
  ~Recorded() {
    for (CUpti_ActivityKind kind : kinds) cuptiActivityDisable(kind);
    cuptiActivityFlushAll(0);
  }
  static void flush() { REQUIRE(cuptiActivityFlushAll(0) == CUPTI_SUCCESS); }

  std::vector<CUpti_ActivityKind> kinds;
  CUcontext context = nullptr;
};

uint64_t now() {
  uint64_t time = 0;
  REQUIRE(cuptiGetTimestamp(&time) == CUPTI_SUCCESS);
  return time;
}

}  // namespace

TEST_CASE("memory records tell address, bytes, kind and order of each allocation and release") {
  const Recorded recorded({CUPTI_ACTIVITY_KIND_MEMORY2});
  const uint64_t before = now();
  CUdeviceptr device = 0, managed = 0, pitched = 0;
  size_t pitch = 0;
  void* pinned = nullptr;
  REQUIRE(cuMemAlloc(&device, 12345) == CUDA_SUCCESS);
  REQUIRE(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  REQUIRE(cuMemAllocPitch(&pitched, &pitch, 100, 10, 4) == CUDA_SUCCESS);
  REQUIRE(cuMemHostAlloc(&pinned, 777, 0) == CUDA_SUCCESS);
  REQUIRE(cuMemFree(device) == CUDA_SUCCESS);
  REQUIRE(cuMemFree(managed) == CUDA_SUCCESS);
  REQUIRE(cuMemFree(pitched) == CUDA_SUCCESS);
  REQUIRE(cuMemFreeHost(pinned) == CUDA_SUCCESS);
  const uint64_t after = now();
  CHECK(g_memory.empty());  // nothing before the flush
  Recorded::flush();

  const struct {
    uint64_t address, bytes;
    CUpti_ActivityMemoryKind kind;
  } expected[] = {
      {device, 12345, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE},
      {managed, 4096, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED},
      {pitched, pitch * 10, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE},
      {reinterpret_cast<uint64_t>(pinned), 777, CUPTI_ACTIVITY_MEMORY_KIND_PINNED},
  };
  REQUIRE(g_memory.size() == 8);
  std::map<uint32_t, int> correlations;
  for (size_t i = 0; i < 8; ++i) {
    const auto& record = g_memory[i];
    INFO("record " << i);
    CHECK(record.memoryOperationType == (i < 4 ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION
                                               : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE));
    CHECK(record.address == expected[i % 4].address);
    CHECK(record.bytes == expected[i % 4].bytes);
    CHECK(record.memoryKind == expected[i % 4].kind);
    CHECK(record.deviceId == 0);
    CHECK(record.isAsync == 0);
    CHECK(record.streamId == CUPTI_INVALID_STREAM_ID);
    CHECK(record.timestamp >= before);
    CHECK(record.timestamp <= after);
    CHECK(++correlations[record.correlationId] == 1);
  }
}

TEST_CASE("stream-ordered memory names its pool, and pools have records of their own") {
  const Recorded recorded({CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY_POOL});
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  CUdeviceptr pointer = 0;
  REQUIRE(cuMemPoolCreate(&pool, &properties) == CUDA_SUCCESS);
  REQUIRE(cuMemAllocFromPoolAsync(&pointer, 1 << 20, pool, nullptr) == CUDA_SUCCESS);
  cuuint64_t reserved = 0;
  REQUIRE(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) ==
          CUDA_SUCCESS);
  REQUIRE(cuMemFreeAsync(pointer, nullptr) == CUDA_SUCCESS);
  REQUIRE(cuMemPoolTrimTo(pool, 0) == CUDA_SUCCESS);
  REQUIRE(cuMemPoolDestroy(pool) == CUDA_SUCCESS);
  Recorded::flush();

  REQUIRE(g_memory.size() == 2);
  CHECK(g_memory[0].isAsync == 1);
  CHECK(g_memory[0].bytes == 1 << 20);
  CHECK(g_memory[0].memoryPoolConfig.address == reinterpret_cast<uint64_t>(pool));
  CHECK(g_memory[0].memoryPoolConfig.pool.size == reserved);
  CHECK(g_memory[0].memoryPoolConfig.utilizedSize == 1 << 20);
  REQUIRE(g_pools.size() == 3);
  CHECK(g_pools[0].memoryPoolOperationType == CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED);
  CHECK(g_pools[1].memoryPoolOperationType == CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED);
  CHECK(g_pools[2].memoryPoolOperationType == CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED);
  for (const auto& record : g_pools) CHECK(record.address == reinterpret_cast<uint64_t>(pool));
}

TEST_CASE("a launch gives its kernel, its call and the caller's own id under one correlation") {
  const Recorded recorded({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_DRIVER,
                           CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION});
  const char* image =
      ".version 8.0\n.target sm_50\n.address_size 64\n.visible .entry planted() { ret; }\n";
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  REQUIRE(cuModuleLoadData(&module, image) == CUDA_SUCCESS);
  REQUIRE(cuModuleGetFunction(&function, module, "planted") == CUDA_SUCCESS);
  REQUIRE(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 4711) ==
          CUPTI_SUCCESS);
  REQUIRE(cuLaunchKernel(function, 3, 2, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr) ==
          CUDA_SUCCESS);
  uint64_t last = 0;
  REQUIRE(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last) ==
          CUPTI_SUCCESS);
  CHECK(last == 4711);
  CHECK(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last) ==
        CUPTI_ERROR_QUEUE_EMPTY);
  REQUIRE(cuModuleUnload(module) == CUDA_SUCCESS);
  Recorded::flush();

  REQUIRE(g_kernels.size() == 1);
  const Kernel& kernel = g_kernels[0];
  CHECK(std::string(kernel.name) == "planted");  // although its module is gone
  CHECK(kernel.gridX == 3);
  CHECK(kernel.gridY == 2);
  CHECK(kernel.blockX == 64);
  CHECK(kernel.start < kernel.end);
  REQUIRE(g_external.size() == 1);
  CHECK(g_external[0].externalId == 4711);
  CHECK(g_external[0].correlationId == kernel.correlationId);
  REQUIRE(g_calls.size() == 1);
  CHECK(g_calls[0].cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
  CHECK(g_calls[0].correlationId == kernel.correlationId);
  CHECK(g_calls[0].start <= kernel.start);
}

TEST_CASE("copies and sets") {
  const Recorded recorded({CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET});
  CUdeviceptr device = 0;
  char host[256] = {};
  REQUIRE(cuMemAlloc(&device, 256) == CUDA_SUCCESS);
  REQUIRE(cuMemsetD8(device, 7, 256) == CUDA_SUCCESS);
  REQUIRE(cuMemcpyHtoD(device, host, 100) == CUDA_SUCCESS);
  REQUIRE(cuMemcpyDtoH(host, device, 50) == CUDA_SUCCESS);
  REQUIRE(cuMemFree(device) == CUDA_SUCCESS);
  Recorded::flush();
  REQUIRE(g_sets.size() == 1);
  CHECK(g_sets[0].bytes == 256);
  CHECK(g_sets[0].value == 7);
  REQUIRE(g_copies.size() == 2);
  CHECK(g_copies[0].copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
  CHECK(g_copies[0].bytes == 100);
  CHECK(g_copies[1].copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
  CHECK(g_copies[1].bytes == 50);
}

TEST_CASE("a full buffer is given back, and nothing is lost between two") {
  const Recorded recorded({CUPTI_ACTIVITY_KIND_MEMORY2});
  g_buffer_bytes = 3 * sizeof(CUpti_ActivityMemory4) + 8;
  for (int i = 0; i < 10; ++i) {
    CUdeviceptr pointer = 0;
    REQUIRE(cuMemAlloc(&pointer, 512 + i) == CUDA_SUCCESS);
    REQUIRE(cuMemFree(pointer) == CUDA_SUCCESS);
  }
  Recorded::flush();
  g_buffer_bytes = 64 * 1024;
  CHECK(g_buffers == 7);
  REQUIRE(g_memory.size() == 20);
  for (size_t i = 0; i < 20; ++i) CHECK(g_memory[i].bytes == 512 + i / 2);
  size_t dropped = 1;
  REQUIRE(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS);
  CHECK(dropped == 0);
}

TEST_CASE("one subscriber, who is told of both ends of the functions that it asked for") {
  const Recorded recorded({});
  struct Told {
    std::vector<std::pair<std::string, CUpti_ApiCallbackSite>> calls;
    CUresult result = CUDA_SUCCESS;
  } told;
  const CUpti_CallbackFunc callback = [](void* user, CUpti_CallbackDomain domain,
                                         CUpti_CallbackId id, const void* data) {
    auto& told_here = *static_cast<Told*>(user);
    const auto& call = *static_cast<const CUpti_CallbackData*>(data);
    CHECK(domain == CUPTI_CB_DOMAIN_DRIVER_API);
    const char* name = nullptr;
    CHECK(cuptiGetCallbackName(domain, id, &name) == CUPTI_SUCCESS);
    CHECK(std::string(name) == call.functionName);
    told_here.calls.emplace_back(call.functionName, call.callbackSite);
    if (call.callbackSite == CUPTI_API_EXIT)
      told_here.result = *static_cast<CUresult*>(call.functionReturnValue);
  };
  CUpti_SubscriberHandle subscriber = nullptr, second = nullptr;
  REQUIRE(cuptiSubscribe(&subscriber, callback, &told) == CUPTI_SUCCESS);
  CHECK(cuptiSubscribe(&second, callback, &told) == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  REQUIRE(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                              CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2) == CUPTI_SUCCESS);
  CUdeviceptr pointer = 0;
  CHECK(cuMemAlloc(&pointer, size_t{1} << 50) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(told.result == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuMemAlloc(&pointer, 512) == CUDA_SUCCESS);
  CHECK(told.result == CUDA_SUCCESS);
  CHECK(cuMemFree(pointer) == CUDA_SUCCESS);  // not asked for
  REQUIRE(told.calls.size() == 4);
  CHECK(told.calls[0] == std::make_pair(std::string("cuMemAlloc_v2"), CUPTI_API_ENTER));
  CHECK(told.calls[1] == std::make_pair(std::string("cuMemAlloc_v2"), CUPTI_API_EXIT));
  REQUIRE(cuptiUnsubscribe(subscriber) == CUPTI_SUCCESS);
  CHECK(cuptiSubscribe(&second, callback, &told) == CUPTI_SUCCESS);
  CHECK(cuptiUnsubscribe(second) == CUPTI_SUCCESS);
}
