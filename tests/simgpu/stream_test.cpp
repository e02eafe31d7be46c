// Contexts, streams, events, host functions.
#include <atomic>
#include <thread>

#include "context.h"

using namespace vramtrack::test;

TEST_CASE("a thread without a context is told so") {
  SimulatedContext gpu;
  CUresult result = CUDA_SUCCESS;
  std::thread([&] {
    CUdeviceptr pointer = 0;
    result = cuMemAlloc(&pointer, 1);
  }).join();
  CHECK(result == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("contexts are a stack") {
  SimulatedContext gpu;
  CUcontext own = nullptr, now = nullptr;
  OK(cuCtxCreate(&own, nullptr, 0, 1));
  OK(cuCtxGetCurrent(&now));
  CHECK(now == own);
  CUdevice device = -1;
  OK(cuCtxGetDevice(&device));
  CHECK(device == 1);
  OK(cuCtxPopCurrent(&now));
  CHECK(now == own);
  OK(cuCtxGetCurrent(&now));
  CHECK(now == gpu.context);
  OK(cuCtxPushCurrent(own));
  OK(cuCtxDestroy(own));
  OK(cuCtxGetCurrent(&now));
  CHECK(now == gpu.context);
}

TEST_CASE("the primary context lives while it is retained") {
  SimulatedContext gpu;
  unsigned flags = 0;
  int active = -1;
  OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
  CHECK(active == 0);
  CUcontext other = nullptr;
  OK(cuDevicePrimaryCtxRetain(&other, 1));
  OK(cuDevicePrimaryCtxRetain(&other, 1));
  OK(cuDevicePrimaryCtxRelease(1));
  OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
  CHECK(active == 1);
  OK(cuDevicePrimaryCtxRelease(1));
  OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
  CHECK(active == 0);
  CHECK(cuDevicePrimaryCtxRelease(1) == CUDA_ERROR_INVALID_CONTEXT);
  simgpu_usage usage{};
  REQUIRE(simgpu_get_usage(1, &usage) == 0);
  CHECK(usage.used == 0);
}

TEST_CASE("devices that are not there") {
  SimulatedContext gpu;
  CUdevice device = 0;
  CHECK(cuDeviceGet(&device, 2) == CUDA_ERROR_INVALID_DEVICE);
  int value = 0;
  CHECK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 7) ==
        CUDA_ERROR_INVALID_DEVICE);
  CHECK(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(10000), 0) ==
        CUDA_ERROR_INVALID_VALUE);
  int can = 0;
  OK(cuDeviceCanAccessPeer(&can, 0, 1));
  CHECK(can == 1);
  OK(cuDeviceCanAccessPeer(&can, 0, 0));
  CHECK(can == 0);
}

TEST_CASE("streams know what they were made with, and their handles die with them") {
  SimulatedContext gpu;
  CUstream stream = nullptr;
  OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -3));
  int priority = 0, least = -1, greatest = 0;
  unsigned flags = 0;
  OK(cuStreamGetPriority(stream, &priority));
  OK(cuStreamGetFlags(stream, &flags));
  OK(cuCtxGetStreamPriorityRange(&least, &greatest));
  CHECK(priority == -3);
  CHECK(flags == CU_STREAM_NON_BLOCKING);
  CHECK(least == 0);
  CHECK(greatest < 0);
  CUcontext context = nullptr;
  OK(cuStreamGetCtx(stream, &context));
  CHECK(context == gpu.context);
  CHECK(cuStreamQuery(stream) == CUDA_SUCCESS);
  OK(cuStreamDestroy(stream));
  CHECK(cuStreamQuery(stream) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuStreamDestroy(stream) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
  CHECK(cuStreamSynchronize(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
  unsigned long long legacy = 0, own = 0, others = 0;
  OK(cuStreamGetId(CU_STREAM_LEGACY, &legacy));
  OK(cuStreamGetId(CU_STREAM_PER_THREAD, &own));
  std::thread([&] {
    cuCtxSetCurrent(gpu.context);
    cuStreamGetId(CU_STREAM_PER_THREAD, &others);
  }).join();
  CHECK(legacy != own);
  CHECK(own != others);
}

TEST_CASE("time only rises") {
  SimulatedContext gpu;
  CUevent before = nullptr, after = nullptr;
  OK(cuEventCreate(&before, CU_EVENT_DEFAULT));
  OK(cuEventCreate(&after, CU_EVENT_DEFAULT));
  float milliseconds = 0;
  CHECK(cuEventElapsedTime(&milliseconds, before, after) == CUDA_ERROR_INVALID_HANDLE);
  for (int i = 0; i < 1000; ++i) {
    OK(cuEventRecord(before, nullptr));
    OK(cuEventRecord(after, nullptr));
    OK(cuEventElapsedTime(&milliseconds, before, after));
    REQUIRE(milliseconds > 0);
  }
  CUevent untimed = nullptr;
  OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
  OK(cuEventRecord(untimed, nullptr));
  CHECK(cuEventElapsedTime(&milliseconds, before, untimed) == CUDA_ERROR_INVALID_HANDLE);
  OK(cuEventDestroy(before));
  CHECK(cuEventQuery(before) == CUDA_ERROR_INVALID_HANDLE);
  OK(cuEventDestroy(after));
  OK(cuEventDestroy(untimed));
  CHECK(cuEventCreate(&before, 64) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("host functions run in order, beside the caller, and are waited for") {
  SimulatedContext gpu;
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  struct Shared {
    std::atomic<bool> go{false};
    std::atomic<int> ran{0};
    std::thread::id thread;
  } shared;
  OK(cuLaunchHostFunc(
      stream,
      [](void* data) {
        auto* mine = static_cast<Shared*>(data);
        while (!mine->go.load()) std::this_thread::yield();
        mine->thread = std::this_thread::get_id();
        mine->ran = mine->ran == 0 ? 1 : -1;
      },
      &shared));
  OK(cuLaunchHostFunc(
      stream,
      [](void* data) {
        auto* mine = static_cast<Shared*>(data);
        mine->ran = mine->ran == 1 ? 2 : -1;
      },
      &shared));
  CUevent event = nullptr;
  OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  OK(cuEventRecord(event, stream));
  CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
  CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  shared.go = true;
  OK(cuStreamSynchronize(stream));
  CHECK(shared.ran == 2);
  CHECK(shared.thread != std::this_thread::get_id());
  CHECK(cuEventQuery(event) == CUDA_SUCCESS);
  OK(cuEventDestroy(event));
  OK(cuStreamDestroy(stream));
}

TEST_CASE("peer access is enabled once") {
  SimulatedContext gpu;
  CUcontext other = nullptr;
  OK(cuDevicePrimaryCtxRetain(&other, 1));
  OK(cuCtxEnablePeerAccess(other, 0));
  CHECK(cuCtxEnablePeerAccess(other, 0) == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  OK(cuCtxDisablePeerAccess(other));
  CHECK(cuCtxDisablePeerAccess(other) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  CHECK(cuCtxEnablePeerAccess(gpu.context, 0) == CUDA_ERROR_INVALID_DEVICE);
  OK(cuDevicePrimaryCtxRelease(1));
}
