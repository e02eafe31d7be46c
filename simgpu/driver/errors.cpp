// Names and descriptions of errors.
#include "api.h"

namespace {

struct Error {
  CUresult code;
  const char* name;
  const char* description;
};

constexpr Error kErrors[] = {
#define SIMGPU_ERROR(name, description) {name, #name, description},
#include "errors.def"
#undef SIMGPU_ERROR
};

const Error* find(CUresult code) {
  for (const Error& error : kErrors)
    if (error.code == code) return &error;
  return nullptr;
}

}  // namespace

CUresult cuGetErrorName(CUresult code, const char** name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Error* error = find(code);
  *name = error == nullptr ? nullptr : error->name;
  return error == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult code, const char** description) {
  if (description == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Error* error = find(code);
  *description = error == nullptr ? nullptr : error->description;
  return error == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
