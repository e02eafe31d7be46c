// SIMGPU_LOG=path: one line of JSON per change, so that a test can compare at every event.
#include "ledger.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace simgpu {
namespace {

const char* const kKindNames[] = {"device",  "pool",    "vmm",     "array",  "graph",     "module",
                                  "context", "library", "managed", "pinned", "registered"};

bool counts_against_size(Kind kind) {
  return kind < Kind::kManaged;
}

int log_file() {
  static const int file = [] {
    const char* path = std::getenv("SIMGPU_LOG");
    if (path == nullptr || *path == 0) return -1;
    int opened = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (opened < 0) std::fprintf(stderr, "simgpu: cannot write SIMGPU_LOG %s\n", path);
    return opened;
  }();
  return file;
}

}  // namespace

CUresult Ledger::charge(Kind kind, std::uint64_t bytes, const char* operation,
                        std::uint64_t address) {
  std::lock_guard lock(mutex_);
  if (counts_against_size(kind)) {
    if (bytes > total_ - used_) {
      log(operation, kind, static_cast<std::int64_t>(bytes), address, true);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    used_ += bytes;
    if (used_ > peak_) peak_ = used_;
  }
  bytes_[static_cast<int>(kind)] += bytes;
  log(operation, kind, static_cast<std::int64_t>(bytes), address, false);
  return CUDA_SUCCESS;
}

void Ledger::credit(Kind kind, std::uint64_t bytes, const char* operation, std::uint64_t address) {
  std::lock_guard lock(mutex_);
  if (counts_against_size(kind)) used_ -= bytes;
  bytes_[static_cast<int>(kind)] -= bytes;
  log(operation, kind, -static_cast<std::int64_t>(bytes), address, false);
}

void Ledger::pool_used(std::int64_t change, const char* operation, std::uint64_t address) {
  std::lock_guard lock(mutex_);
  pool_used_ += static_cast<std::uint64_t>(change);
  if (log_file() < 0) return;
  char line[256];
  int size = std::snprintf(
      line, sizeof line,
      "{\"op\":\"%s\",\"device\":%d,\"kind\":\"pool_used\",\"address\":%llu,"
      "\"size\":%lld,\"kind_total\":%llu,\"used\":%llu}\n",
      operation, device_, static_cast<unsigned long long>(address), static_cast<long long>(change),
      static_cast<unsigned long long>(pool_used_), static_cast<unsigned long long>(used_));
  [[maybe_unused]] ssize_t written = write(log_file(), line, static_cast<std::size_t>(size));
}

std::uint64_t Ledger::free() const {
  std::lock_guard lock(mutex_);
  return total_ - used_;
}

simgpu_usage Ledger::usage() const {
  std::lock_guard lock(mutex_);
  auto of = [this](Kind kind) { return bytes_[static_cast<int>(kind)]; };
  simgpu_usage usage{};
  usage.total = total_;
  usage.used = used_;
  usage.peak = peak_;
  usage.device = of(Kind::kDevice);
  usage.pool_reserved = of(Kind::kPool);
  usage.pool_used = pool_used_;
  usage.vmm = of(Kind::kVmm);
  usage.array = of(Kind::kArray);
  usage.graph = of(Kind::kGraph);
  usage.module = of(Kind::kModule);
  usage.context = of(Kind::kContext);
  usage.library = of(Kind::kLibrary);
  usage.managed = of(Kind::kManaged);
  usage.pinned = of(Kind::kPinned);
  usage.registered = of(Kind::kRegistered);
  return usage;
}

void Ledger::log(const char* operation, Kind kind, std::int64_t change, std::uint64_t address,
                 bool refused) const {
  if (log_file() < 0) return;
  char line[320];
  int size =
      std::snprintf(line, sizeof line,
                    "{\"op\":\"%s\",\"device\":%d,\"kind\":\"%s\",\"address\":%llu,\"size\":%lld,"
                    "\"kind_total\":%llu,\"used\":%llu%s}\n",
                    operation, device_, kKindNames[static_cast<int>(kind)],
                    static_cast<unsigned long long>(address), static_cast<long long>(change),
                    static_cast<unsigned long long>(bytes_[static_cast<int>(kind)]),
                    static_cast<unsigned long long>(used_), refused ? ",\"refused\":true" : "");
  [[maybe_unused]] ssize_t written = write(log_file(), line, static_cast<std::size_t>(size));
}

}  // namespace simgpu
