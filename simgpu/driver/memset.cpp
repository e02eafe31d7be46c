// cuMemset of every width, in one and two dimensions.
#include "activity.h"
#include "copy.h"
#include "tables.h"

namespace simgpu {

CUresult set_box(const CUDA_MEMSET_NODE_PARAMS& box) {
  std::size_t row = box.width * box.elementSize;
  std::size_t pitch = box.height > 1 ? box.pitch : row;
  if (row == 0 || box.height == 0) return CUDA_SUCCESS;
  if (pitch < row) return CUDA_ERROR_INVALID_VALUE;
  SIMGPU_TRY(check_range(box.dst, (box.height - 1) * pitch + row, Side::kDevice));
  bool keep = row * box.height <= Contents::kKeptBytes;
  for (std::size_t y = 0; y < box.height; ++y)
    set_bytes(box.dst + y * pitch, &box.value, box.elementSize, row, keep);
  return CUDA_SUCCESS;
}

namespace {

CUDA_MEMSET_NODE_PARAMS box(CUdeviceptr to, std::size_t pitch, unsigned value, unsigned element,
                            std::size_t width, std::size_t height) {
  return {.dst = to,
          .pitch = pitch,
          .value = value,
          .elementSize = element,
          .width = width,
          .height = height};
}

CUresult set_box_told(const Stream* stream, const CUDA_MEMSET_NODE_PARAMS& set) {
  SIMGPU_TRY(set_box(set));
  tell_set(stream, set.dst, set.elementSize * set.width * set.height, set.value, 0);
  return CUDA_SUCCESS;
}

CUresult set_now(const CUDA_MEMSET_NODE_PARAMS& set) {
  Context* context;
  SIMGPU_TRY(enter(context));
  SIMGPU_TRY(refuse_in_capture());
  if (set.dst % set.elementSize != 0) return CUDA_ERROR_INVALID_VALUE;
  return set_box_told(context->legacy_stream, set);
}

CUresult set_on(CUstream handle, const CUDA_MEMSET_NODE_PARAMS& set) {
  Context* context;
  SIMGPU_TRY(enter(context));
  Stream* stream;
  SIMGPU_TRY(stream_for_work(handle, context, stream));
  if (set.dst % set.elementSize != 0) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture.load(std::memory_order_acquire) != nullptr) return capture_set(stream, set);
  return set_box_told(stream, set);
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return told("cuMemsetD8_v2",
              [&]() -> CUresult { return set_now(box(to, 0, value, 1, count, 1)); });
}
CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
  return told("cuMemsetD16_v2",
              [&]() -> CUresult { return set_now(box(to, 0, value, 2, count, 1)); });
}
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count) {
  return told("cuMemsetD32_v2",
              [&]() -> CUresult { return set_now(box(to, 0, value, 4, count, 1)); });
}
CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                         size_t height) {
  return told("cuMemsetD2D8_v2",
              [&]() -> CUresult { return set_now(box(to, pitch, value, 1, width, height)); });
}
CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                          size_t height) {
  return told("cuMemsetD2D16_v2",
              [&]() -> CUresult { return set_now(box(to, pitch, value, 2, width, height)); });
}
CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                          size_t height) {
  return told("cuMemsetD2D32_v2",
              [&]() -> CUresult { return set_now(box(to, pitch, value, 4, width, height)); });
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return told("cuMemsetD8Async",
              [&]() -> CUresult { return set_on(stream, box(to, 0, value, 1, count, 1)); });
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return told("cuMemsetD16Async",
              [&]() -> CUresult { return set_on(stream, box(to, 0, value, 2, count, 1)); });
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  return told("cuMemsetD32Async",
              [&]() -> CUresult { return set_on(stream, box(to, 0, value, 4, count, 1)); });
}
CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream stream) {
  return told("cuMemsetD2D8Async", [&]() -> CUresult {
    return set_on(stream, box(to, pitch, value, 1, width, height));
  });
}
CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                            size_t height, CUstream stream) {
  return told("cuMemsetD2D16Async", [&]() -> CUresult {
    return set_on(stream, box(to, pitch, value, 2, width, height));
  });
}
CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                            size_t height, CUstream stream) {
  return told("cuMemsetD2D32Async", [&]() -> CUresult {
    return set_on(stream, box(to, pitch, value, 4, width, height));
  });
}
