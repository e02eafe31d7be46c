// NCCL's communicators: made from an id that all ranks share, split, and given back.
#include <cstdlib>
#include <cstring>

#include "common/entry.h"
#include "nccl/operation.h"

extern "C" __attribute__((weak)) int cuCtxGetDevice(int* device);

namespace {

using simgpu::Communicator;
using simgpu::NcclId;

int current_device() {
  int device = 0;
  if (cuCtxGetDevice && cuCtxGetDevice(&device) != 0) device = 0;
  return device;
}

void destroy(Communicator* comm) {
  if (!comm) return;
  comm->exchange.leave();
  std::free(comm->sent);
  std::free(comm->received);
  std::free(comm);
}

int init(Communicator** out, int ranks, int rank, const NcclId& id, int device) {
  if (!out || ranks < 1 || rank < 0 || rank >= ranks) return simgpu::kNcclInvalidArgument;
  if (!simgpu::is_nccl_id(id)) return simgpu::kNcclInvalidArgument;
  if (!simgpu::is_of_this_host(id)) {
    static bool said;
    simgpu::say_not_simulated("NCCL between hosts", &said);
    return simgpu::kNcclInvalidUsage;
  }
  auto* comm = static_cast<Communicator*>(std::calloc(1, sizeof(Communicator)));
  if (!comm) return simgpu::kNcclInternalError;
  comm->id = id;
  comm->ranks = ranks;
  comm->rank = rank;
  comm->device = device;
  comm->sent = static_cast<std::uint64_t*>(std::calloc(ranks, sizeof(std::uint64_t)));
  comm->received = static_cast<std::uint64_t*>(std::calloc(ranks, sizeof(std::uint64_t)));
  // Also of a single rank: it may send to itself.
  if (!comm->sent || !comm->received || !comm->exchange.attach(id, ranks, rank)) {
    destroy(comm);
    return simgpu::kNcclSystemError;
  }
  *out = comm;
  return simgpu::kNcclSuccess;
}

// One part of a split communicator: the ranks of one color, by key, then by rank.
struct Part {
  int color, key;
};

}  // namespace

ENTRY(ncclGetUniqueId)(NcclId* id) {
  if (!id) return simgpu::kNcclInvalidArgument;
  return simgpu::make_nccl_id(id) ? simgpu::kNcclSuccess : simgpu::kNcclSystemError;
}

ENTRY(ncclCommInitRank)(Communicator** comm, int ranks, NcclId id, int rank) {
  return init(comm, ranks, rank, id, current_device());
}
ENTRY(ncclCommInitRankConfig)(Communicator** comm, int ranks, NcclId id, int rank, void*) {
  return init(comm, ranks, rank, id, current_device());
}
ENTRY(ncclCommInitRankScalable)
(Communicator** comm, int ranks, int rank, int id_count, const NcclId* ids, void*) {
  if (id_count < 1 || !ids) return simgpu::kNcclInvalidArgument;
  return init(comm, ranks, rank, ids[0], current_device());
}

ENTRY(ncclCommInitAll)(Communicator** comms, int count, const int* devices) {
  NcclId id;
  if (!comms || count < 1) return simgpu::kNcclInvalidArgument;
  if (!simgpu::make_nccl_id(&id)) return simgpu::kNcclSystemError;
  for (int rank = 0; rank < count; ++rank)
    if (const int status = init(&comms[rank], count, rank, id, devices ? devices[rank] : rank))
      return status;
  return simgpu::kNcclSuccess;
}

ENTRY(ncclCommSplit)(Communicator* comm, int color, int key, Communicator** split, void*) {
  if (!comm || !split) return simgpu::kNcclInvalidArgument;
  const Part mine = {color, key};
  auto* parts = static_cast<Part*>(std::calloc(comm->ranks, sizeof(Part)));
  if (!parts) return simgpu::kNcclInternalError;
  const bool told = simgpu::nccl_tell_all(comm, &mine, sizeof mine, parts);
  int ranks = 0, rank = 0;
  for (int other = 0; other < comm->ranks; ++other) {
    if (parts[other].color != color) continue;
    ++ranks;
    rank += parts[other].key < key || (parts[other].key == key && other < comm->rank);
  }
  std::free(parts);
  if (!told) return simgpu::kNcclSystemError;
  *split = nullptr;
  const std::uint64_t number = ++comm->splits;
  if (color < 0) return simgpu::kNcclSuccess;  // NCCL_SPLIT_NOCOLOR
  return init(split, ranks, rank, simgpu::split_nccl_id(comm->id, number, color), comm->device);
}

ENTRY(ncclCommFinalize)(Communicator*) {
  return simgpu::kNcclSuccess;
}
ENTRY(ncclCommDestroy)(Communicator* comm) {
  destroy(comm);
  return simgpu::kNcclSuccess;
}
ENTRY(ncclCommAbort)(Communicator* comm) {
  destroy(comm);
  return simgpu::kNcclSuccess;
}
ENTRY(ncclCommCount)(const Communicator* comm, int* count) {
  if (!comm || !count) return simgpu::kNcclInvalidArgument;
  *count = comm->ranks;
  return simgpu::kNcclSuccess;
}
ENTRY(ncclCommUserRank)(const Communicator* comm, int* rank) {
  if (!comm || !rank) return simgpu::kNcclInvalidArgument;
  *rank = comm->rank;
  return simgpu::kNcclSuccess;
}
ENTRY(ncclCommCuDevice)(const Communicator* comm, int* device) {
  if (!comm || !device) return simgpu::kNcclInvalidArgument;
  *device = comm->device;
  return simgpu::kNcclSuccess;
}
ENTRY(ncclCommGetAsyncError)(Communicator*, int* error) {
  if (!error) return simgpu::kNcclInvalidArgument;
  *error = simgpu::kNcclSuccess;
  return simgpu::kNcclSuccess;
}
ENTRY(ncclCommRegister)(const Communicator*, void* buffer, std::size_t, void** handle) {
  if (!handle) return simgpu::kNcclInvalidArgument;
  *handle = buffer;
  return simgpu::kNcclSuccess;
}
ENTRY(ncclCommDeregister)(const Communicator*, void*) {
  return simgpu::kNcclSuccess;
}
