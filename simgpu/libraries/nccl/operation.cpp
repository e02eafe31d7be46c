#include "nccl/operation.h"

#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "nccl/reduce.h"

// The simulated driver's contents (simgpu.h); absent where the driver is a real one.
extern "C" {
__attribute__((weak)) void simgpu_write(std::uint64_t address, const void* data, std::size_t size);
__attribute__((weak)) std::size_t simgpu_read(std::uint64_t address, void* data, std::size_t size);
}

namespace simgpu {
namespace {

thread_local int t_depth = 0;  // of groups
thread_local NcclOperation* t_queue = nullptr;
thread_local std::size_t t_queued = 0, t_room = 0;

bool enqueue(const NcclOperation& operation) {
  if (t_queued == t_room) {
    const std::size_t room = t_room ? 2 * t_room : 16;
    auto* larger = static_cast<NcclOperation*>(std::realloc(t_queue, room * sizeof *t_queue));
    if (larger == nullptr) return false;
    t_queue = larger;
    t_room = room;
  }
  t_queue[t_queued++] = operation;
  return true;
}

std::uint64_t address(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

bool read_device(const void* from, std::uint8_t* to, std::size_t size) {
  return simgpu_read && simgpu_read(address(from), to, size) == size;
}

// nullptr: the result is unknown.
void write_device(void* to, const std::uint8_t* data, std::size_t size) {
  if (size == 0) return;
  if (data && simgpu_write)
    simgpu_write(address(to), data, size);
  else
    forget(to, size);
}

bool is_message(const NcclOperation& o) {
  return o.kind == NcclKind::kSend || o.kind == NcclKind::kReceive;
}

std::size_t unit(const NcclOperation& o) {
  return o.count * nccl_type_bytes(o.type);
}

// What every rank posts. The same on all ranks: `count` is.
std::size_t contribution_bytes(const NcclOperation& o) {
  const auto ranks = static_cast<std::size_t>(o.comm->ranks);
  switch (o.kind) {
    case NcclKind::kReduceScatter:
    case NcclKind::kAlltoAll:
    case NcclKind::kScatter:
      return ranks * unit(o);
    default:
      return unit(o);
  }
}

bool contributes(const NcclOperation& o) {
  const bool from_root = o.kind == NcclKind::kBroadcast || o.kind == NcclKind::kScatter;
  return !from_root || o.peer == o.comm->rank;
}

std::size_t result_bytes(const NcclOperation& o) {
  const auto ranks = static_cast<std::size_t>(o.comm->ranks);
  const bool root = o.peer == o.comm->rank;
  switch (o.kind) {
    case NcclKind::kAllGather:
    case NcclKind::kAlltoAll:
      return ranks * unit(o);
    case NcclKind::kGather:
      return root ? ranks * unit(o) : 0;
    case NcclKind::kReduce:
      return root ? unit(o) : 0;
    case NcclKind::kSend:
      return 0;
    default:
      return unit(o);
  }
}

// `size` bytes from `offset` of every rank's contribution, reduced into `into`.
bool reduce_all(const NcclOperation& o, std::uint8_t* into, std::size_t offset) {
  const Exchange& exchange = o.comm->exchange;
  const std::size_t size = contribution_bytes(o);
  for (int rank = 0; rank < o.comm->ranks; ++rank) {
    const std::uint8_t* theirs = exchange.contribution(o.number, rank, size);
    if (!theirs) return false;
    if (rank == 0)
      std::memcpy(into, theirs + offset, unit(o));
    else if (!nccl_reduce(into, theirs + offset, o.count, o.type, o.op))
      return false;
  }
  if (nccl_averages(o.op)) nccl_divide(into, o.count, o.type, o.comm->ranks);
  return true;
}

bool gather_all(const NcclOperation& o, std::uint8_t* into, std::size_t offset) {
  for (int rank = 0; rank < o.comm->ranks; ++rank) {
    const std::uint8_t* theirs =
        o.comm->exchange.contribution(o.number, rank, contribution_bytes(o));
    if (!theirs) return false;
    std::memcpy(into + static_cast<std::size_t>(rank) * unit(o), theirs + offset, unit(o));
  }
  return true;
}

bool from_root(const NcclOperation& o, std::uint8_t* into, std::size_t offset) {
  const std::uint8_t* theirs =
      o.comm->exchange.contribution(o.number, o.peer, contribution_bytes(o));
  if (theirs) std::memcpy(into, theirs + offset, unit(o));
  return theirs != nullptr;
}

bool combine(const NcclOperation& o, std::uint8_t* into) {
  const std::size_t mine = static_cast<std::size_t>(o.comm->rank) * unit(o);
  switch (o.kind) {
    case NcclKind::kAllReduce:
    case NcclKind::kReduce:
      return reduce_all(o, into, 0);
    case NcclKind::kReduceScatter:
      return reduce_all(o, into, mine);
    case NcclKind::kAllGather:
    case NcclKind::kGather:
      return gather_all(o, into, 0);
    case NcclKind::kAlltoAll:
      return gather_all(o, into, mine);
    case NcclKind::kScatter:
      return from_root(o, into, mine);
    default:
      return from_root(o, into, 0);
  }
}

// Each of these does what it can, and says whether the operation came further.
bool advance_message(NcclOperation& o, std::uint8_t* buffer) {
  bool known = false;
  if (o.kind == NcclKind::kSend) {
    known = read_device(o.from, buffer, unit(o));
    o.done = o.comm->exchange.send(o.peer, o.number, buffer, unit(o), known);
  } else if (o.comm->exchange.receive(o.peer, o.number, buffer, unit(o), &known)) {
    write_device(o.to, known ? buffer : nullptr, unit(o));
    o.done = true;
  }
  return o.done;
}

bool advance_collective(NcclOperation& o, std::uint8_t* buffer) {
  Exchange& exchange = o.comm->exchange;
  if (!o.posted) {
    const std::size_t size = contribution_bytes(o);
    const bool known = contributes(o) && read_device(o.from, buffer, size);
    o.posted = exchange.post(o.number, buffer, size, known);
    return o.posted;
  }
  if (!exchange.complete(o.number)) return false;
  if (const std::size_t size = result_bytes(o))
    write_device(o.to, combine(o, buffer) ? buffer : nullptr, size);
  exchange.take(o.number);
  o.done = true;
  return true;
}

bool advance(NcclOperation& o, std::uint8_t* buffer) {
  if (o.done) return false;
  if (o.number == 0 || o.comm->alone) {
    write_device(o.to, nullptr, result_bytes(o));
    if (o.number != 0 && simgpu_assume) simgpu_assume("NCCL, of a rank that has left", 1);
    o.done = true;
    return true;
  }
  return is_message(o) ? advance_message(o, buffer) : advance_collective(o, buffer);
}

void pause(long nanoseconds) {
  const timespec time = {0, nanoseconds};
  nanosleep(&time, nullptr);
}

// Another rank has not come, is slow, or has left. Only the last is for us to act on.
void wait_for_others(const NcclOperation& o, long* waited) {
  ++*waited;
  pause(*waited < 200 ? 50'000 : 2'000'000);
  if (*waited % 20 == 0 && o.comm->exchange.missing() >= 0) o.comm->alone = true;
  if (*waited == 30'000)  // a minute
    std::fprintf(stderr, "simgpu: rank %d of %d still waits for rank %d\n", o.comm->rank,
                 o.comm->ranks, o.comm->exchange.awaited());
}

void number(NcclOperation& o) {
  Communicator& comm = *o.comm;
  if (is_message(o)) {
    if (unit(o) > Exchange::kLargestMessage) return;
    std::uint64_t* given = o.kind == NcclKind::kSend ? comm.sent : comm.received;
    o.number = ++given[o.peer];
  } else if (contribution_bytes(o) <= comm.exchange.largest() &&
             static_cast<std::size_t>(comm.ranks) * unit(o) <= 1 << 20) {
    o.number = ++comm.collectives;
  }
}

int finish(NcclOperation* operations, std::size_t count) {
  std::size_t largest = 1;
  for (std::size_t i = 0; i < count; ++i) {
    const NcclOperation& o = operations[i];
    if (o.number == 0) continue;
    const std::size_t sizes[] = {unit(o), contribution_bytes(o), result_bytes(o)};
    for (const std::size_t size : sizes) largest = size > largest ? size : largest;
  }
  auto* buffer = static_cast<std::uint8_t*>(std::malloc(largest));
  if (!buffer) return kNcclInternalError;
  long waited = 0;
  for (;;) {
    bool moved = false;
    const NcclOperation* open = nullptr;
    for (std::size_t i = 0; i < count; ++i) {
      moved = advance(operations[i], buffer) || moved;
      if (!operations[i].done && !open) open = &operations[i];
    }
    if (!open) break;
    if (moved)
      waited = 0;
    else
      wait_for_others(*open, &waited);
  }
  std::free(buffer);
  return kNcclSuccess;
}

// With one rank every collective gives what it was given.
int copy_to_itself(const NcclOperation& o) {
  if (o.from == o.to || o.count == 0 || !cuMemcpyDtoDAsync_v2) return kNcclSuccess;
  return cuMemcpyDtoDAsync_v2(address(o.to), address(o.from), unit(o), o.stream)
             ? kNcclInternalError
             : kNcclSuccess;
}

}  // namespace

int nccl_submit(LibraryKernel& kernel, const NcclOperation& operation) {
  NcclOperation o = operation;
  const bool receives = o.kind == NcclKind::kReceive, sends = o.kind == NcclKind::kSend;
  if (!o.comm || (o.count && contributes(o) && !receives && !o.from)) return kNcclInvalidArgument;
  if ((sends || receives) && (o.peer < 0 || o.peer >= o.comm->ranks)) return kNcclInvalidArgument;
  kernel.launch(o.stream, {o.from, o.to});
  if (o.comm->ranks == 1 && !sends && !receives) return copy_to_itself(o);
  number(o);
  if (t_depth > 0) return enqueue(o) ? kNcclSuccess : kNcclInternalError;
  return finish(&o, 1);
}

void nccl_group_start() {
  ++t_depth;
}

int nccl_group_end() {
  if (t_depth == 0) return kNcclInvalidUsage;
  if (--t_depth > 0) return kNcclSuccess;
  const std::size_t count = t_queued;
  t_queued = 0;
  return count ? finish(t_queue, count) : kNcclSuccess;
}

bool nccl_tell_all(Communicator* comm, const void* mine, std::size_t size, void* all) {
  Exchange& exchange = comm->exchange;
  const std::uint64_t number = ++comm->collectives;
  NcclOperation wait = {};
  wait.comm = comm;
  long waited = 0;
  while (!exchange.post(number, mine, size, true) && !comm->alone) wait_for_others(wait, &waited);
  while (!exchange.complete(number) && !comm->alone) wait_for_others(wait, &waited);
  for (int rank = 0; rank < comm->ranks && !comm->alone; ++rank)
    std::memcpy(static_cast<std::uint8_t*>(all) + static_cast<std::size_t>(rank) * size,
                exchange.contribution(number, rank, size), size);
  if (!comm->alone) exchange.take(number);
  return !comm->alone;
}

}  // namespace simgpu
