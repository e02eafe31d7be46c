// The device's own books: how many bytes of each kind it has handed out, and the refusal of what
// does not fit. They are the independent witness against which a tracer's ledger is compared, so
// nothing here knows what a tracer would see.
#ifndef SIMGPU_DRIVER_LEDGER_H
#define SIMGPU_DRIVER_LEDGER_H

#include <cstdint>
#include <mutex>

#include "api.h"

namespace simgpu {

enum class Kind : std::uint8_t {
  kDevice,
  kPool,
  kVmm,
  kArray,
  kGraph,
  kModule,
  kContext,
  kLibrary,
  kManaged,  // from here on outside the device's size
  kPinned,
  kRegistered,
  kCount
};

class Ledger {
 public:
  Ledger(int device, std::uint64_t total) : device_(device), total_(total) {}

  // Books the bytes, or refuses with CUDA_ERROR_OUT_OF_MEMORY. `operation` goes to the log.
  CUresult charge(Kind kind, std::uint64_t bytes, const char* operation, std::uint64_t address);
  void credit(Kind kind, std::uint64_t bytes, const char* operation, std::uint64_t address);
  // Moves what stream-ordered allocations occupy inside the pools.
  void pool_used(std::int64_t change, const char* operation, std::uint64_t address);

  std::uint64_t total() const { return total_; }
  std::uint64_t free() const;
  simgpu_usage usage() const;

 private:
  void log(const char* operation, Kind kind, std::int64_t change, std::uint64_t address,
           bool refused) const;

  mutable std::mutex mutex_;
  int device_;
  std::uint64_t total_;
  std::uint64_t used_ = 0;
  std::uint64_t peak_ = 0;
  std::uint64_t pool_used_ = 0;
  std::uint64_t bytes_[static_cast<int>(Kind::kCount)] = {};
};

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_LEDGER_H
