// NCCL for the simulated GPU: collectives and messages between the ranks of one host, in one
// process or in several. Small data keeps real bytes (exchange.h says up to where); of larger data
// nobody knows the values, and nobody waits for anybody.
#include "common/entry.h"
#include "nccl/operation.h"

using simgpu::Communicator;
using simgpu::LibraryKernel;
using simgpu::nccl_submit;
using Kind = simgpu::NcclKind;

ENTRY(ncclGetVersion)(int* version) {
  if (!version) return simgpu::kNcclInvalidArgument;
  *version = 23007;
  return simgpu::kNcclSuccess;
}

ENTRY(ncclAllReduce)
(const void* from, void* to, std::size_t count, int type, int op, Communicator* comm,
 void* stream) {
  static constinit LibraryKernel kernel("ncclAllReduce", 2);
  return nccl_submit(kernel, {.kind = Kind::kAllReduce,
                              .comm = comm,
                              .from = from,
                              .to = to,
                              .count = count,
                              .type = type,
                              .op = op,
                              .stream = stream});
}
ENTRY(ncclReduce)
(const void* from, void* to, std::size_t count, int type, int op, int root, Communicator* comm,
 void* stream) {
  static constinit LibraryKernel kernel("ncclReduce", 2);
  return nccl_submit(kernel, {.kind = Kind::kReduce,
                              .comm = comm,
                              .from = from,
                              .to = to,
                              .count = count,
                              .type = type,
                              .op = op,
                              .peer = root,
                              .stream = stream});
}
ENTRY(ncclBroadcast)
(const void* from, void* to, std::size_t count, int type, int root, Communicator* comm,
 void* stream) {
  static constinit LibraryKernel kernel("ncclBroadcast", 2);
  return nccl_submit(kernel, {.kind = Kind::kBroadcast,
                              .comm = comm,
                              .from = from,
                              .to = to,
                              .count = count,
                              .type = type,
                              .peer = root,
                              .stream = stream});
}
ENTRY(ncclBcast)
(void* buffer, std::size_t count, int type, int root, Communicator* comm, void* stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
ENTRY(ncclAllGather)
(const void* from, void* to, std::size_t count, int type, Communicator* comm, void* stream) {
  static constinit LibraryKernel kernel("ncclAllGather", 2);
  return nccl_submit(kernel, {.kind = Kind::kAllGather,
                              .comm = comm,
                              .from = from,
                              .to = to,
                              .count = count,
                              .type = type,
                              .stream = stream});
}
ENTRY(ncclReduceScatter)
(const void* from, void* to, std::size_t count, int type, int op, Communicator* comm,
 void* stream) {
  static constinit LibraryKernel kernel("ncclReduceScatter", 2);
  return nccl_submit(kernel, {.kind = Kind::kReduceScatter,
                              .comm = comm,
                              .from = from,
                              .to = to,
                              .count = count,
                              .type = type,
                              .op = op,
                              .stream = stream});
}
ENTRY(ncclAlltoAll)
(const void* from, void* to, std::size_t count, int type, Communicator* comm, void* stream) {
  static constinit LibraryKernel kernel("ncclAlltoAll", 2);
  return nccl_submit(kernel, {.kind = Kind::kAlltoAll,
                              .comm = comm,
                              .from = from,
                              .to = to,
                              .count = count,
                              .type = type,
                              .stream = stream});
}
ENTRY(ncclGather)
(const void* from, void* to, std::size_t count, int type, int root, Communicator* comm,
 void* stream) {
  static constinit LibraryKernel kernel("ncclGather", 2);
  return nccl_submit(kernel, {.kind = Kind::kGather,
                              .comm = comm,
                              .from = from,
                              .to = to,
                              .count = count,
                              .type = type,
                              .peer = root,
                              .stream = stream});
}
ENTRY(ncclScatter)
(const void* from, void* to, std::size_t count, int type, int root, Communicator* comm,
 void* stream) {
  static constinit LibraryKernel kernel("ncclScatter", 2);
  return nccl_submit(kernel, {.kind = Kind::kScatter,
                              .comm = comm,
                              .from = from,
                              .to = to,
                              .count = count,
                              .type = type,
                              .peer = root,
                              .stream = stream});
}
ENTRY(ncclSend)
(const void* from, std::size_t count, int type, int peer, Communicator* comm, void* stream) {
  static constinit LibraryKernel kernel("ncclSend", 2);
  return nccl_submit(kernel, {.kind = Kind::kSend,
                              .comm = comm,
                              .from = from,
                              .count = count,
                              .type = type,
                              .peer = peer,
                              .stream = stream});
}
ENTRY(ncclRecv)
(void* to, std::size_t count, int type, int peer, Communicator* comm, void* stream) {
  static constinit LibraryKernel kernel("ncclRecv", 2);
  return nccl_submit(kernel, {.kind = Kind::kReceive,
                              .comm = comm,
                              .to = to,
                              .count = count,
                              .type = type,
                              .peer = peer,
                              .stream = stream});
}

// A sum of products with a factor that lies on the device: its result is unknown, like its number.
ENTRY(ncclRedOpCreatePreMulSum)(int* op, void*, int, int, Communicator*) {
  if (!op) return simgpu::kNcclInvalidArgument;
  *op = 5;  // the first number that is no built-in operator
  return simgpu::kNcclSuccess;
}
ENTRY(ncclRedOpDestroy)(int, Communicator*) {
  return simgpu::kNcclSuccess;
}

ENTRY(ncclGroupStart)() {
  simgpu::nccl_group_start();
  return simgpu::kNcclSuccess;
}
ENTRY(ncclGroupEnd)() {
  return simgpu::nccl_group_end();
}

TEXT_ENTRY(ncclGetErrorString)(int status) {
  switch (status) {
    case simgpu::kNcclSuccess:
      return "no error";
    case simgpu::kNcclSystemError:
      return "system error: the ranks have no memory to share in /dev/shm or /tmp";
    case simgpu::kNcclInvalidArgument:
      return "invalid argument";
    case simgpu::kNcclInvalidUsage:
      return "not simulated";
    default:
      return "internal error";
  }
}
TEXT_ENTRY(ncclGetLastError)(Communicator*) {
  return "";
}
