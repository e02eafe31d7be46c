// NCCL for the simulated GPU: what PyTorch asks at import, and communicators of a single rank,
// whose collectives are copies onto themselves. More ranks are refused by name.
#include <cstdlib>
#include <cstring>

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
