// The handles of cuSPARSE, which other libraries make without using them.
#include <cstdlib>

#include "common/entry.h"

namespace {

enum Status : int { kSuccess = 0, kNotInitialized = 1, kAllocationFailed = 2, kInvalidValue = 3 };

struct Handle {
  void* stream;
};

}  // namespace

ENTRY(cusparseCreate)(Handle** handle) {
  if (!handle) return kInvalidValue;
  *handle = static_cast<Handle*>(std::calloc(1, sizeof(Handle)));
  return *handle ? kSuccess : kAllocationFailed;
}
ENTRY(cusparseDestroy)(Handle* handle) {
  std::free(handle);
  return kSuccess;
}
ENTRY(cusparseSetStream)(Handle* handle, void* stream) {
  if (!handle) return kNotInitialized;
  handle->stream = stream;
  return kSuccess;
}
ENTRY(cusparseGetStream)(const Handle* handle, void** stream) {
  if (!handle || !stream) return kInvalidValue;
  *stream = handle->stream;
  return kSuccess;
}
