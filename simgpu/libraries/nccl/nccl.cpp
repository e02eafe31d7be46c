// NCCL for the simulated GPU: what PyTorch asks at import, and communicators of a single rank,
// whose collectives are copies onto themselves. More ranks are refused by name.
#include <cstdlib>
#include <cstring>

#include "common/driver.h"
#include "common/entry.h"

namespace {

enum NcclStatus : int {
  kNcclSuccess = 0,
  kNcclInternalError = 3,
  kNcclInvalidArgument = 4,
  kNcclInvalidUsage = 5
};

struct Communicator {
  int ranks;
  int rank;
};

struct UniqueId {
  char bytes[128];
};

int init(Communicator** out, int ranks, int rank) {
  if (!out || ranks < 1 || rank < 0 || rank >= ranks) return kNcclInvalidArgument;
  if (ranks > 1) {
    static bool said;
    simgpu::say_not_simulated("NCCL communicators of more than one rank", &said);
    return kNcclInvalidUsage;
  }
  *out = static_cast<Communicator*>(std::calloc(1, sizeof(Communicator)));
  if (!*out) return kNcclInternalError;
  (*out)->ranks = ranks;
  return kNcclSuccess;
}

// Bytes of a ncclDataType_t.
std::size_t element_bytes(int type) {
  constexpr std::size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type < 12 ? kBytes[type] : 1;
}

// With one rank every collective gives what it was given.
int collective(simgpu::LibraryKernel& kernel, const void* from, void* to, std::size_t count,
               int type, void* stream) {
  if (count && (!from || !to)) return kNcclInvalidArgument;
  kernel.launch(stream, {from, to});
  if (from != to && count && cuMemcpyDtoDAsync_v2) {
    const auto address = [](const void* pointer) {
      return reinterpret_cast<std::uint64_t>(pointer);
    };
    if (cuMemcpyDtoDAsync_v2(address(to), address(from), count * element_bytes(type), stream))
      return kNcclInternalError;
  }
  return kNcclSuccess;
}

}  // namespace

ENTRY(ncclGetVersion)(int* version) {
  if (!version) return kNcclInvalidArgument;
  *version = 23007;
  return kNcclSuccess;
}

ENTRY(ncclGetUniqueId)(UniqueId* id) {
  if (!id) return kNcclInvalidArgument;
  std::memset(id, 0, sizeof *id);
  std::memcpy(id->bytes, "simgpu", 6);
  return kNcclSuccess;
}

ENTRY(ncclCommInitRank)(Communicator** comm, int ranks, UniqueId, int rank) {
  return init(comm, ranks, rank);
}
ENTRY(ncclCommInitRankConfig)(Communicator** comm, int ranks, UniqueId, int rank, void*) {
  return init(comm, ranks, rank);
}
ENTRY(ncclCommFinalize)(Communicator*) {
  return kNcclSuccess;
}
ENTRY(ncclCommDestroy)(Communicator* comm) {
  std::free(comm);
  return kNcclSuccess;
}
ENTRY(ncclCommAbort)(Communicator* comm) {
  std::free(comm);
  return kNcclSuccess;
}
ENTRY(ncclCommCount)(const Communicator* comm, int* count) {
  if (!comm || !count) return kNcclInvalidArgument;
  *count = comm->ranks;
  return kNcclSuccess;
}
ENTRY(ncclCommUserRank)(const Communicator* comm, int* rank) {
  if (!comm || !rank) return kNcclInvalidArgument;
  *rank = comm->rank;
  return kNcclSuccess;
}
ENTRY(ncclCommGetAsyncError)(Communicator*, int* error) {
  if (!error) return kNcclInvalidArgument;
  *error = kNcclSuccess;
  return kNcclSuccess;
}
ENTRY(ncclCommRegister)(const Communicator*, void* buffer, std::size_t, void** handle) {
  if (!handle) return kNcclInvalidArgument;
  *handle = buffer;
  return kNcclSuccess;
}
ENTRY(ncclCommDeregister)(const Communicator*, void*) {
  return kNcclSuccess;
}
ENTRY(ncclCommSplit)(Communicator* comm, int, int, Communicator** split, void*) {
  return comm ? init(split, 1, 0) : kNcclInvalidArgument;
}

ENTRY(ncclAllReduce)
(const void* from, void* to, std::size_t count, int type, int, Communicator*, void* stream) {
  static simgpu::LibraryKernel kernel("ncclAllReduce", 2);
  return collective(kernel, from, to, count, type, stream);
}
ENTRY(ncclReduce)
(const void* from, void* to, std::size_t count, int type, int, int, Communicator*, void* stream) {
  static simgpu::LibraryKernel kernel("ncclReduce", 2);
  return collective(kernel, from, to, count, type, stream);
}
ENTRY(ncclBroadcast)
(const void* from, void* to, std::size_t count, int type, int, Communicator*, void* stream) {
  static simgpu::LibraryKernel kernel("ncclBroadcast", 2);
  return collective(kernel, from, to, count, type, stream);
}
ENTRY(ncclBcast)(void* buffer, std::size_t count, int type, int, Communicator*, void* stream) {
  static simgpu::LibraryKernel kernel("ncclBroadcast", 2);
  return collective(kernel, buffer, buffer, count, type, stream);
}
ENTRY(ncclAllGather)
(const void* from, void* to, std::size_t count, int type, Communicator*, void* stream) {
  static simgpu::LibraryKernel kernel("ncclAllGather", 2);
  return collective(kernel, from, to, count, type, stream);
}
ENTRY(ncclReduceScatter)
(const void* from, void* to, std::size_t count, int type, int, Communicator*, void* stream) {
  static simgpu::LibraryKernel kernel("ncclReduceScatter", 2);
  return collective(kernel, from, to, count, type, stream);
}
ENTRY(ncclAlltoAll)
(const void* from, void* to, std::size_t count, int type, Communicator*, void* stream) {
  static simgpu::LibraryKernel kernel("ncclAlltoAll", 2);
  return collective(kernel, from, to, count, type, stream);
}

ENTRY(ncclGroupStart)() {
  return kNcclSuccess;
}
ENTRY(ncclGroupEnd)() {
  return kNcclSuccess;
}

TEXT_ENTRY(ncclGetErrorString)(int status) {
  switch (status) {
    case kNcclSuccess:
      return "no error";
    case kNcclInvalidArgument:
      return "invalid argument";
    case kNcclInvalidUsage:
      return "not simulated";
    default:
      return "internal error";
  }
}
TEXT_ENTRY(ncclGetLastError)(Communicator*) {
  return "";
}
