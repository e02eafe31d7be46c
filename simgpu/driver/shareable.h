// What one process says to another about memory: a description, never the bytes. An import is an
// address range of the described size that costs the importer nothing; its contents are unknown.
#ifndef SIMGPU_DRIVER_SHAREABLE_H
#define SIMGPU_DRIVER_SHAREABLE_H

#include <unistd.h>

#include <cstdint>

#include "driver.h"

namespace simgpu {

enum class ShareableKind : std::uint32_t { kMemory = 1, kPool, kPoolPointer, kVmm, kEvent };

struct Shareable {
  static constexpr std::uint32_t kMagic = 0x53494d47;  // "SIMG"
  std::uint32_t magic = 0;
  ShareableKind kind = ShareableKind::kMemory;
  std::int32_t device = 0;
  std::int32_t process = 0;
  std::uint64_t size = 0;
  std::uint64_t object = 0;  // address or object in the exporting process
  std::uint64_t offset = 0;

  void stamp() {
    magic = kMagic;
    process = static_cast<std::int32_t>(getpid());
  }
  bool valid(ShareableKind wanted) const {
    return magic == kMagic && kind == wanted && size <= std::uint64_t{1} << 46;
  }
};
static_assert(sizeof(Shareable) <= CU_IPC_HANDLE_SIZE);

// A file descriptor that holds the description.
CUresult export_descriptor(Shareable described, int* descriptor);
CUresult import_descriptor(int descriptor, ShareableKind kind, Shareable& described);

// An address range for memory of another process.
CUresult import_memory(Device* device, std::uint64_t size, CUdeviceptr& address);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_SHAREABLE_H
