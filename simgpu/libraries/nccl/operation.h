// What a rank of a communicator was asked to do, from the call to its end: alone at once, in a
// group together with the others of the thread when the group ends.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/driver.h"
#include "nccl/exchange.h"

namespace simgpu {

enum NcclStatus : int {
  kNcclSuccess = 0,
  kNcclCudaError = 1,
  kNcclSystemError = 2,
  kNcclInternalError = 3,
  kNcclInvalidArgument = 4,
  kNcclInvalidUsage = 5
};

struct Communicator {
  Exchange exchange;  // where there is more than one rank
  NcclId id;
  int ranks;
  int rank;
  int device;
  std::uint64_t collectives;  // numbers given out
  std::uint64_t splits;
  std::uint64_t* sent;         // numbers given out, by peer
  std::uint64_t* received;     // likewise
  bool alone;                  // a rank has left: what it would say is unknown
  bool open;                   // its memory is booked
  std::uint64_t buffer_bytes;  // ESTIMATE
};

enum class NcclKind : std::uint8_t {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kAlltoAll,
  kGather,
  kScatter,
  kSend,
  kReceive,
};

struct NcclOperation {
  NcclKind kind;
  Communicator* comm;
  const void* from;
  void* to;
  std::size_t count;  // elements, as the call counts them
  int type;
  int op;
  int peer;  // root, or the other end
  void* stream;
  std::uint64_t number;  // 0: nothing is exchanged
  bool posted, done;
};

int nccl_submit(LibraryKernel& kernel, const NcclOperation& operation);
void nccl_group_start();
int nccl_group_end();

// All ranks' `size` bytes at `mine`, in the order of ranks, at `all`. False: one has left.
bool nccl_tell_all(Communicator* comm, const void* mine, std::size_t size, void* all);

}  // namespace simgpu
