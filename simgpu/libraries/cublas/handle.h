// What a cuBLAS handle holds. PyTorch hands cuBLAS handles to cublasLt as they are, which cuBLAS
// documents to be allowed; the stand-in cublasLt therefore never looks into a handle.
#pragma once

#include <cstddef>

namespace simgpu {

enum CublasStatus : int {
  kCublasSuccess = 0,
  kCublasNotInitialized = 1,
  kCublasAllocFailed = 3,
  kCublasInvalidValue = 7,
  kCublasNotSupported = 15,
};

enum CublasPointerMode : int { kPointerHost = 0, kPointerDevice = 1 };

struct CublasHandle {
  int device;  // what it holds there is given back with it
  void* stream;
  void* workspace;
  std::size_t workspace_bytes;
  int pointer_mode;
  int math_mode;
  int atomics_mode;
  int sm_count_target;
  int emulation_strategy;
  int emulation_special_values;
  int emulation_mantissa_control;
  int emulation_mantissa_bits;
  int emulation_mantissa_offset;
};

}  // namespace simgpu
