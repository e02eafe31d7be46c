// Launches: checked as the documentation says, then nothing runs.
#include <cstring>

#include "activity.h"
#include "kernels/effects.h"
#include "module.h"
#include "tables.h"

using namespace simgpu;

namespace {

CUresult check_launch(const Function* function, const Device* device,
                      const CUDA_KERNEL_NODE_PARAMS& launch) {
  auto beyond = [](unsigned value, unsigned most) { return value - 1 >= most; };  // zero is beyond
  // A card refuses an empty grid. Here it comes from a count that was read back as zero, so it is
  // let through, and counted.
  if (launch.gridDimX == 0 || launch.gridDimY == 0 || launch.gridDimZ == 0)
    assume("launch with an empty grid, let through");
  if (launch.gridDimX > 2147483647U || launch.gridDimY > 65535 || launch.gridDimZ > 65535 ||
      beyond(launch.blockDimX, 1024) || beyond(launch.blockDimY, 1024) ||
      beyond(launch.blockDimZ, 64))
    return CUDA_ERROR_INVALID_VALUE;
  if (launch.blockDimX * launch.blockDimY * launch.blockDimZ >
      static_cast<unsigned>(max_threads_per_block(function)))
    return CUDA_ERROR_INVALID_VALUE;
  if (launch.sharedMemBytes > static_cast<unsigned>(device->model.shared_per_block_optin) ||
      static_cast<int>(launch.sharedMemBytes) > max_dynamic_shared_bytes(function))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult launch_kernel(const CUDA_KERNEL_NODE_PARAMS& launch, CUstream handle) {
  Context* context;
  SIMGPU_TRY(enter(context));
  Function* function = driver().tables->functions.find(launch.func);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Stream* stream;
  SIMGPU_TRY(stream_for_work(handle, context, stream));
  if (stream->context != context) return CUDA_ERROR_INVALID_HANDLE;
  SIMGPU_TRY(check_launch(function, context->device, launch));
  if (stream->capture.load(std::memory_order_acquire) != nullptr)
    return capture_kernel(stream, launch);
  tell_kernel(stream, function->name.c_str(), launch, registers_per_thread(function), 0);
  driver().contents.launched();
  if (launch.kernelParams != nullptr)
    apply_launch_effects(function->name.c_str(), launch.kernelParams);
  return CUDA_SUCCESS;
}

CUDA_KERNEL_NODE_PARAMS launch_of(CUfunction function, unsigned grid_x, unsigned grid_y,
                                  unsigned grid_z, unsigned block_x, unsigned block_y,
                                  unsigned block_z, unsigned shared, void** parameters,
                                  void** extra) {
  return {.func = function,
          .gridDimX = grid_x,
          .gridDimY = grid_y,
          .gridDimZ = grid_z,
          .blockDimX = block_x,
          .blockDimY = block_y,
          .blockDimZ = block_z,
          .sharedMemBytes = shared,
          .kernelParams = parameters,
          .extra = extra,
          .kern = nullptr,
          .ctx = nullptr};
}

}  // namespace

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared, CUstream stream,
                        void** parameters, void** extra) {
  return told("cuLaunchKernel", [&]() -> CUresult {
    return launch_kernel(launch_of(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                   shared, parameters, extra),
                         stream);
  });
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared, CUstream stream,
                                   void** parameters) {
  return told("cuLaunchCooperativeKernel", [&]() -> CUresult {
    return launch_kernel(launch_of(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                   shared, parameters, nullptr),
                         stream);
  });
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
  return told("cuLaunchKernelEx", [&]() -> CUresult {
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(launch_kernel(
        launch_of(function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                  config->blockDimY, config->blockDimZ, config->sharedMemBytes, parameters, extra),
        config->hStream));
    // The event that programmatic or completion attributes ask for is recorded with the launch.
    for (unsigned i = 0; i < config->numAttrs && config->attrs != nullptr; ++i) {
      const CUlaunchAttribute& attribute = config->attrs[i];
      CUevent event = attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT
                          ? attribute.value.programmaticEvent.event
                      : attribute.id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT
                          ? attribute.value.launchCompletionEvent.event
                          : nullptr;
      if (event != nullptr) SIMGPU_TRY(cuEventRecord(event, config->hStream));
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launches, unsigned int count,
                                              unsigned int) {
  if (launches == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    const CUDA_LAUNCH_PARAMS& one = launches[i];
    SIMGPU_TRY(launch_kernel(
        launch_of(one.function, one.gridDimX, one.gridDimY, one.gridDimZ, one.blockDimX,
                  one.blockDimY, one.blockDimZ, one.sharedMemBytes, one.kernelParams, nullptr),
        one.hStream));
  }
  return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  Context* context;
  SIMGPU_TRY(enter(context));
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream;
  SIMGPU_TRY(stream_for_work(handle, context, stream));
  if (stream->capture.load(std::memory_order_acquire) != nullptr)
    return capture_host(stream, function, data);
  enqueue_host_function(stream, [function, data] { function(data); });
  return CUDA_SUCCESS;
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* data,
                             unsigned int flags) {
  Context* context;
  SIMGPU_TRY(enter(context));
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream;
  SIMGPU_TRY(stream_for_work(handle, context, stream));
  if (stream->capture.load(std::memory_order_acquire) != nullptr)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  enqueue_host_function(stream, [=] { callback(handle, CUDA_SUCCESS, data); });
  return CUDA_SUCCESS;
}
