// Device, managed, pinned and registered memory: what is handed out is what is booked.
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "context.h"

using namespace vramtrack::test;

TEST_CASE("device memory is booked as it was asked for, and given back") {
  SimulatedContext gpu;
  const std::size_t before = gpu.free_bytes();
  const std::size_t sizes[] = {1, 511, 512, 513, 3 * kMiB + 7, 100 * kMiB};
  std::vector<CUdeviceptr> pointers;
  std::size_t sum = 0;
  for (std::size_t size : sizes) {
    CUdeviceptr pointer = 0;
    OK(cuMemAlloc(&pointer, size));
    CHECK(pointer % 512 == 0);
    pointers.push_back(pointer);
    sum += size;
    CHECK(gpu.usage().device == sum);
    CHECK(gpu.free_bytes() == before - sum);
  }
  for (CUdeviceptr pointer : pointers) OK(cuMemFree(pointer));
  CHECK(gpu.usage().device == 0);
  CHECK(gpu.free_bytes() == before);
  CHECK(gpu.usage().peak >= gpu.usage().used + sum);
}

TEST_CASE("allocations do not overlap") {
  SimulatedContext gpu;
  CUdeviceptr first = 0, second = 0;
  OK(cuMemAlloc(&first, 1000));
  OK(cuMemAlloc(&second, 1000));
  CHECK((first + 1000 <= second || second + 1000 <= first));
  CUdeviceptr base = 0;
  std::size_t size = 0;
  OK(cuMemGetAddressRange(&base, &size, second + 999));
  CHECK(base == second);
  CHECK(size == 1000);
  OK(cuMemFree(first));
  OK(cuMemFree(second));
}

TEST_CASE("bad frees are refused") {
  SimulatedContext gpu;
  CUdeviceptr pointer = 0;
  OK(cuMemAlloc(&pointer, 4096));
  CHECK(cuMemFree(pointer + 512) == CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree(pointer));
  CHECK(cuMemFree(pointer) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(0) == CUDA_SUCCESS);
  int on_the_stack = 0;
  CHECK(cuMemFree(reinterpret_cast<CUdeviceptr>(&on_the_stack)) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAlloc(&pointer, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAlloc(nullptr, 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("the size of the card is enforced to the byte") {
  SimulatedContext gpu;
  const std::size_t free = gpu.free_bytes();
  CUdeviceptr pointer = 0;
  CHECK(cuMemAlloc(&pointer, free + 1) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(gpu.usage().device == 0);
  OK(cuMemAlloc(&pointer, free));
  CHECK(gpu.free_bytes() == 0);
  CUdeviceptr another = 0;
  CHECK(cuMemAlloc(&another, 1) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(another == 0);
  OK(cuMemFree(pointer));
}

TEST_CASE("pitched memory is pitch times height") {
  SimulatedContext gpu;
  CUdeviceptr pointer = 0;
  std::size_t pitch = 0;
  OK(cuMemAllocPitch(&pointer, &pitch, 1000, 37, 4));
  CHECK(pitch >= 1000);
  CHECK(pitch % 512 == 0);
  CHECK(gpu.usage().device == pitch * 37);
  OK(cuMemFree(pointer));
  CHECK(cuMemAllocPitch(&pointer, &pitch, 1000, 37, 3) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("managed memory is real and outside the card's size") {
  SimulatedContext gpu;
  const std::size_t free = gpu.free_bytes();
  CUdeviceptr pointer = 0;
  OK(cuMemAllocManaged(&pointer, 64 * kMiB, CU_MEM_ATTACH_GLOBAL));
  CHECK(gpu.free_bytes() == free);
  CHECK(gpu.usage().managed == 64 * kMiB);
  auto* bytes = reinterpret_cast<unsigned char*>(pointer);
  bytes[5] = 17;
  unsigned char back = 0;
  OK(cuMemcpyDtoH(&back, pointer + 5, 1));
  CHECK(back == 17);
  OK(cuMemsetD8(pointer, 9, 64 * kMiB));
  CHECK(bytes[64 * kMiB - 1] == 9);
  unsigned managed = 0;
  OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer));
  CHECK(managed == 1);
  OK(cuMemFree(pointer));
  CHECK(gpu.usage().managed == 0);
}

TEST_CASE("pinned and registered memory are host memory") {
  SimulatedContext gpu;
  void* pinned = nullptr;
  OK(cuMemHostAlloc(&pinned, 3 * kMiB, CU_MEMHOSTALLOC_PORTABLE));
  static_cast<char*>(pinned)[3 * kMiB - 1] = 1;
  CHECK(gpu.usage().pinned == 3 * kMiB);
  CUdeviceptr mapped = 0;
  OK(cuMemHostGetDevicePointer(&mapped, pinned, 0));
  CHECK(mapped == reinterpret_cast<CUdeviceptr>(pinned));
  unsigned flags = 0;
  OK(cuMemHostGetFlags(&flags, pinned));
  CHECK((flags & CU_MEMHOSTALLOC_PORTABLE) != 0);
  CHECK(cuMemFree(mapped) == CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFreeHost(pinned));
  CHECK(cuMemFreeHost(pinned) == CUDA_ERROR_INVALID_VALUE);

  std::vector<char> own(1 << 20);
  OK(cuMemHostRegister(own.data(), own.size(), 0));
  CHECK(gpu.usage().registered == own.size());
  CHECK(cuMemHostRegister(own.data(), own.size(), 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  OK(cuMemHostUnregister(own.data()));
  CHECK(cuMemHostUnregister(own.data()) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  CHECK(gpu.usage().registered == 0);
}

TEST_CASE("pointers say what they are") {
  SimulatedContext gpu;
  CUdeviceptr pointer = 0;
  OK(cuMemAlloc(&pointer, 1024));
  unsigned type = 0;
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer + 100));
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  void* host = nullptr;
  CHECK(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer) ==
        CUDA_ERROR_INVALID_VALUE);
  int local = 0;
  CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                              reinterpret_cast<CUdeviceptr>(&local)) == CUDA_ERROR_INVALID_VALUE);
  // The plural form knows no error for an address that is not CUDA's.
  CUpointer_attribute asked = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  void* answer = &type;
  type = 99;
  OK(cuPointerGetAttributes(1, &asked, &answer, reinterpret_cast<CUdeviceptr>(&local)));
  CHECK(type == 0);
  OK(cuMemFree(pointer));
}

TEST_CASE("device addresses have no memory of the host behind them") {
  SimulatedContext gpu;
  CUdeviceptr pointer = 0;
  OK(cuMemAlloc(&pointer, kMiB));
  // The kernel says so without a signal: a write() from there is a bad address.
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  CHECK(write(pipe_ends[1], reinterpret_cast<void*>(pointer), 1) == -1);
  CHECK(errno == EFAULT);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  OK(cuMemFree(pointer));
}

TEST_CASE("the end of a context releases what it allocated") {
  SimulatedContext gpu;
  CUcontext own = nullptr;
  OK(cuCtxCreate(&own, nullptr, 0, 1));
  CUdeviceptr pointer = 0;
  OK(cuMemAlloc(&pointer, 5 * kMiB));
  void* pinned = nullptr;
  OK(cuMemAllocHost(&pinned, kMiB));
  simgpu_usage usage{};
  REQUIRE(simgpu_get_usage(1, &usage) == 0);
  CHECK(usage.device == 5 * kMiB);
  CHECK(usage.context > 0);
  OK(cuCtxDestroy(own));
  REQUIRE(simgpu_get_usage(1, &usage) == 0);
  CHECK(usage.used == 0);
  CHECK(usage.pinned == 0);
  CHECK(cuMemFree(pointer) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuCtxDestroy(own) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

TEST_CASE("arrays are booked by their shape") {
  SimulatedContext gpu;
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.Width = 100;
  shape.Height = 50;
  shape.Depth = 4;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 2;
  CUarray array = nullptr;
  OK(cuArray3DCreate(&array, &shape));
  CHECK(gpu.usage().array == 100 * 50 * 4 * 4 * 2);
  CUDA_ARRAY3D_DESCRIPTOR back{};
  OK(cuArray3DGetDescriptor(&back, array));
  CHECK(back.Depth == 4);
  OK(cuArrayDestroy(array));
  CHECK(cuArrayDestroy(array) == CUDA_ERROR_INVALID_HANDLE);
  // 8x8, 4x4, 2x2, 1x1 elements of 4 bytes.
  shape = {};
  shape.Width = shape.Height = 8;
  shape.Format = CU_AD_FORMAT_UNSIGNED_INT32;
  shape.NumChannels = 1;
  CUmipmappedArray mipmap = nullptr;
  OK(cuMipmappedArrayCreate(&mipmap, &shape, 10));
  CHECK(gpu.usage().array == (64 + 16 + 4 + 1) * 4);
  CUarray level = nullptr;
  OK(cuMipmappedArrayGetLevel(&level, mipmap, 3));
  CHECK(cuMipmappedArrayGetLevel(&level, mipmap, 4) == CUDA_ERROR_INVALID_VALUE);
  OK(cuMipmappedArrayDestroy(mipmap));
  CHECK(gpu.usage().array == 0);
}
