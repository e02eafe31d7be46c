// cuBLAS for the simulated GPU: handles and their settings are real, routines compute nothing.
//
// A routine that would return a scalar to the host has no value to give; it is refused by name
// rather than answered with an invented number.
#include "cublas/handle.h"

#include <cstdlib>
#include <cstring>

#include "common/data_type.h"
#include "common/driver.h"
#include "common/entry.h"

namespace {

using simgpu::CublasHandle;

constexpr char kName[] = "cuBLAS";

int set_field(CublasHandle* handle, int CublasHandle::*field, int value) {
  if (!handle) return simgpu::kCublasNotInitialized;
  handle->*field = value;
  return simgpu::kCublasSuccess;
}

int get_field(const CublasHandle* handle, int CublasHandle::*field, int* value) {
  if (!handle) return simgpu::kCublasNotInitialized;
  if (!value) return simgpu::kCublasInvalidValue;
  *value = handle->*field;
  return simgpu::kCublasSuccess;
}

void forget_matrix(void* matrix, int type, int rows, int columns, int leading) {
  if (!matrix || rows < 1 || columns < 1 || leading < rows) return;
  const auto elements = static_cast<std::size_t>(leading) * static_cast<std::size_t>(columns - 1) +
                        static_cast<std::size_t>(rows);
  simgpu::forget(matrix, elements * simgpu::data_type_bytes(type));
}

}  // namespace

ENTRY(cublasCreate_v2)(CublasHandle** handle) {
  if (!handle) return simgpu::kCublasInvalidValue;
  *handle = static_cast<CublasHandle*>(std::calloc(1, sizeof(CublasHandle)));
  if (!*handle) return simgpu::kCublasAllocFailed;
  (*handle)->device = simgpu::current_device();
  if (simgpu::open_library((*handle)->device, kName)) return simgpu::kCublasSuccess;
  std::free(*handle);
  *handle = nullptr;
  return simgpu::kCublasAllocFailed;
}

ENTRY(cublasDestroy_v2)(CublasHandle* handle) {
  if (!handle) return simgpu::kCublasNotInitialized;
  simgpu::close_library(handle->device, kName);
  std::free(handle);
  return simgpu::kCublasSuccess;
}

ENTRY(cublasSetStream_v2)(CublasHandle* handle, void* stream) {
  if (!handle) return simgpu::kCublasNotInitialized;
  handle->stream = stream;
  handle->workspace =
      nullptr;  // documented: setting a stream resets the workspace to the default one
  handle->workspace_bytes = 0;
  return simgpu::kCublasSuccess;
}

ENTRY(cublasGetStream_v2)(CublasHandle* handle, void** stream) {
  if (!handle) return simgpu::kCublasNotInitialized;
  if (!stream) return simgpu::kCublasInvalidValue;
  *stream = handle->stream;
  return simgpu::kCublasSuccess;
}

ENTRY(cublasSetWorkspace_v2)(CublasHandle* handle, void* workspace, std::size_t bytes) {
  if (!handle) return simgpu::kCublasNotInitialized;
  handle->workspace = workspace;
  handle->workspace_bytes = bytes;
  return simgpu::kCublasSuccess;
}

// clang-format off
#define FIELD_ENTRIES(setter, getter, field)                                                               \
  ENTRY(setter)(CublasHandle* handle, int value) { return set_field(handle, &CublasHandle::field, value); } \
  ENTRY(getter)(CublasHandle* handle, int* value) { return get_field(handle, &CublasHandle::field, value); }
// clang-format on
FIELD_ENTRIES(cublasSetPointerMode_v2, cublasGetPointerMode_v2, pointer_mode)
FIELD_ENTRIES(cublasSetMathMode, cublasGetMathMode, math_mode)
FIELD_ENTRIES(cublasSetAtomicsMode, cublasGetAtomicsMode, atomics_mode)
FIELD_ENTRIES(cublasSetSmCountTarget, cublasGetSmCountTarget, sm_count_target)
FIELD_ENTRIES(cublasSetEmulationStrategy, cublasGetEmulationStrategy, emulation_strategy)
FIELD_ENTRIES(cublasSetEmulationSpecialValuesSupport, cublasGetEmulationSpecialValuesSupport,
              emulation_special_values)
FIELD_ENTRIES(cublasSetFixedPointEmulationMantissaControl,
              cublasGetFixedPointEmulationMantissaControl, emulation_mantissa_control)
FIELD_ENTRIES(cublasSetFixedPointEmulationMaxMantissaBitCount,
              cublasGetFixedPointEmulationMaxMantissaBitCount, emulation_mantissa_bits)
FIELD_ENTRIES(cublasSetFixedPointEmulationMantissaBitOffset,
              cublasGetFixedPointEmulationMantissaBitOffset, emulation_mantissa_offset)
#undef FIELD_ENTRIES

ENTRY(cublasGetVersion_v2)(CublasHandle*, int* version) {
  if (!version) return simgpu::kCublasInvalidValue;
  *version = SIMGPU_CUBLAS_VERSION;
  return simgpu::kCublasSuccess;
}

ENTRY(cublasGetProperty)(int property, int* value) {
  if (!value || property < 0 || property > 2) return simgpu::kCublasInvalidValue;
  const int parts[] = {SIMGPU_CUBLAS_VERSION / 10000, SIMGPU_CUBLAS_VERSION / 100 % 100,
                       SIMGPU_CUBLAS_VERSION % 100};
  *value = parts[property];
  return simgpu::kCublasSuccess;
}

TEXT_ENTRY(cublasGetStatusName)(int status) {
  switch (status) {
    case simgpu::kCublasSuccess:
      return "CUBLAS_STATUS_SUCCESS";
    case simgpu::kCublasNotInitialized:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case simgpu::kCublasAllocFailed:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case simgpu::kCublasInvalidValue:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case simgpu::kCublasNotSupported:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_UNKNOWN";
  }
}

TEXT_ENTRY(cublasGetStatusString)(int status) {
  return status == simgpu::kCublasNotSupported ? "not simulated" : cublasGetStatusName(status);
}

ENTRY(cublasGemmEx)
(CublasHandle* handle, int, int, int rows, int columns, int, const void*, const void* a, int, int,
 const void* b, int, int, const void*, void* result, int type, int leading) {
  if (!handle) return simgpu::kCublasNotInitialized;
  static simgpu::LibraryKernel kernel("cublasGemmEx", 4);
  kernel.launch(handle->stream, {a, b, result, handle->workspace});
  forget_matrix(result, type, rows, columns, leading);
  return simgpu::kCublasSuccess;
}

ENTRY(cublasGemmStridedBatchedEx)
(CublasHandle* handle, int, int, int rows, int columns, int, const void*, const void* a, int, int,
 long long, const void* b, int, int, long long, const void*, void* result, int type, int leading,
 long long stride, int count) {
  if (!handle) return simgpu::kCublasNotInitialized;
  static simgpu::LibraryKernel kernel("cublasGemmStridedBatchedEx", 4);
  kernel.launch(handle->stream, {a, b, result, handle->workspace});
  for (int i = 0; i < count; ++i) {
    const auto offset = static_cast<std::size_t>(stride) * static_cast<std::size_t>(i) *
                        simgpu::data_type_bytes(type);
    forget_matrix(static_cast<char*>(result) + offset, type, rows, columns, leading);
  }
  return simgpu::kCublasSuccess;
}
