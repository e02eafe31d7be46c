// What libraries keep on a device outside any allocator: workspaces, buffers of communicators,
// code. Every number is an ESTIMATE; simgpu/README.md gives the source of each.
#ifndef SIMGPU_DRIVER_LIBRARY_ESTIMATES_H
#define SIMGPU_DRIVER_LIBRARY_ESTIMATES_H

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "device_models.h"
#include "ledger.h"

namespace simgpu {

// `library`: "cuBLAS", "cuDNN" or "NCCL"; all zero for any other.
simgpu_library_estimate library_estimate(const DeviceModel& model, std::string_view library);

// What the libraries of this process hold on one device. It ends with the device's context, whether
// or not their handles were destroyed.
class LibraryMemory {
 public:
  CUresult open(const DeviceModel& model, Ledger& ledger, const char* library, std::uint64_t bytes);
  void close(const DeviceModel& model, Ledger& ledger, const char* library, std::uint64_t bytes);
  void end_context(Ledger& ledger);

 private:
  struct Held {
    std::uint64_t bytes = 0;
    int handles = 0;
    bool code = false;
  };
  std::mutex mutex_;
  std::map<std::string, Held> held_;
};

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_LIBRARY_ESTIMATES_H
