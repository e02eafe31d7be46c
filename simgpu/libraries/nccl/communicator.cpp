// NCCL's communicators: made from an id that all ranks share, split, and given back.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "common/entry.h"
#include "nccl/operation.h"
#include "simgpu.h"

extern "C" __attribute__((weak)) int simgpu_get_library_estimate(
    int device, const char* library, struct simgpu_library_estimate* estimate);

namespace {

using simgpu::Communicator;
using simgpu::NcclId;

constexpr char kName[] = "NCCL";

// NCCL_BUFFSIZE and its like, which rehearse as they are set; `usual` where they are not.
std::uint64_t setting(const char* name, std::uint64_t usual) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text < '0' || *text > '9') return usual;
  return std::min<std::uint64_t>(std::strtoull(text, nullptr, 10), 1ULL << 30);
}

// The ESTIMATE of a communicator's buffers: a ring, for each channel a buffer per protocol towards
// the rank before it and a header towards the rank behind it, in the driver's units of 2 MiB.
std::uint64_t buffer_bytes(int ranks, int device) {
  constexpr std::uint64_t kUnit = 2 << 20;
  constexpr std::uint64_t kLowLatency = 512 << 10, kLowLatency128 = 4915200;
  simgpu_library_estimate estimate{};
  if (ranks < 2 || !simgpu_get_library_estimate ||
      simgpu_get_library_estimate(device, kName, &estimate) != 0)
    return 0;
  const std::uint64_t received = setting("NCCL_BUFFSIZE", 4 << 20) +
                                 setting("NCCL_LL_BUFFSIZE", kLowLatency) +
                                 setting("NCCL_LL128_BUFFSIZE", kLowLatency128);
  auto channels = static_cast<std::uint64_t>(estimate.channels);
  if (channels == 0) return 0;
  channels = std::min(channels, setting("NCCL_MAX_NCHANNELS", channels));
  channels = std::max({channels, setting("NCCL_MIN_NCHANNELS", 0), std::uint64_t{1}});
  return std::min<std::uint64_t>(channels, 64) * ((received + kUnit) / kUnit * kUnit + kUnit);
}

void destroy(Communicator* comm) {
  if (!comm) return;
  if (comm->open) simgpu::close_library(comm->device, kName, comm->buffer_bytes);
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
  comm->buffer_bytes = buffer_bytes(ranks, device);
  comm->open = simgpu::open_library(device, kName, comm->buffer_bytes);
  if (!comm->open) {
    destroy(comm);
    return simgpu::kNcclCudaError;
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
  return init(comm, ranks, rank, id, simgpu::current_device());
}
ENTRY(ncclCommInitRankConfig)(Communicator** comm, int ranks, NcclId id, int rank, void*) {
  return init(comm, ranks, rank, id, simgpu::current_device());
}
ENTRY(ncclCommInitRankScalable)
(Communicator** comm, int ranks, int rank, int id_count, const NcclId* ids, void*) {
  if (id_count < 1 || !ids) return simgpu::kNcclInvalidArgument;
  return init(comm, ranks, rank, ids[0], simgpu::current_device());
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
