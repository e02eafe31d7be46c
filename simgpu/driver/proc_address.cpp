// cuGetProcAddress: by un-suffixed name, version and kind of default stream.
#include "proc_address.h"

#include <algorithm>
#include <cstdlib>

#include "driver.h"

using namespace simgpu;

namespace {

struct Found {
  const EntryPoint* entry = nullptr;
  bool name_known = false;
};

// The newest variant that is not newer than the version; per-thread ones only where wanted, and
// then before the plain ones.
Found find(std::string_view name, int version, bool per_thread) {
  auto [begin, end] = entry_points();
  auto at = std::lower_bound(
      begin, end, name,
      [](const EntryPoint& entry, std::string_view wanted) { return entry.name < wanted; });
  Found found;
  for (; at != end && at->name == name; ++at) {
    found.name_known = true;
    if (at->version > version || (at->per_thread && !per_thread)) continue;
    bool better =
        found.entry == nullptr || (at->per_thread && !found.entry->per_thread) ||
        (at->per_thread == found.entry->per_thread && at->version >= found.entry->version);
    if (better) found.entry = at;
  }
  return found;
}

CUresult look_up(const char* symbol, void** function, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult* status) {
  constexpr cuuint64_t kKnown =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  int driver_version = 0;
  cuDriverGetVersion(&driver_version);
  // Asked before cuInit, too: the runtime collects its entry points first.
  if (symbol == nullptr || function == nullptr || (flags & ~kKnown) != 0 || flags == kKnown ||
      version > driver_version)
    return CUDA_ERROR_INVALID_VALUE;
  Found found = find(symbol, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  *function = found.entry == nullptr ? nullptr : reinterpret_cast<void*>(found.entry->address);
  if (status != nullptr)
    *status = found.entry != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
              : found.name_known     ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                     : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  return look_up(symbol, function, version, flags, status);
}

// The form of CUDA 11.3 has four arguments and says by its result that nothing was found.
CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  SIMGPU_TRY(look_up(symbol, function, version, flags, nullptr));
  return *function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

// There are no private tables here, and none is imitated.
CUresult cuGetExportTable(const void** table, const CUuuid*) {
  if (table == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}
