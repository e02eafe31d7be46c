// Where the ranks of one communicator meet: a file that all of them map. Each collective of small
// data has a number; a rank posts its contribution under it, and takes the others' once all have
// posted. Nothing here waits: the caller tries again (operation.cpp), so that one thread can serve
// several ranks, as ncclGroupEnd does.
//
// The danger: the other ranks are processes that may end at any instant. A rank that left or died
// is told apart from one that is slow; what it would have said is unknown.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace simgpu {

// ncclUniqueId. All ranks get the same one, from whichever of them made it.
struct NcclId {
  char magic[8];
  char host[32];
  char path[88];
};
static_assert(sizeof(NcclId) == 128, "the size of ncclUniqueId");

bool make_nccl_id(NcclId* id);
// Of the part of a communicator that split off as number `split` with `color`.
NcclId split_nccl_id(const NcclId& id, std::uint64_t split, int color);
// Whether `id` was made by the stand-in, on this host.
bool is_nccl_id(const NcclId& id);
bool is_of_this_host(const NcclId& id);

class Exchange {
 public:
  // Maps the file of `id`, and makes it where this rank is the first. False: no memory to share.
  bool attach(const NcclId& id, int ranks, int rank);
  void leave();

  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] int rank() const { return rank_; }
  // The largest contribution that is exchanged; larger ones are not known to others.
  [[nodiscard]] std::size_t largest() const { return slot_bytes_; }
  static constexpr std::size_t kLargestMessage = 16 * 1024;

  // Numbers start with 1 and follow each other. False: not yet.
  bool post(std::uint64_t number, const void* data, std::size_t size, bool known);
  [[nodiscard]] bool complete(std::uint64_t number) const;
  // The contribution of `rank`, nullptr where it is unknown. After complete(), before take().
  [[nodiscard]] const std::uint8_t* contribution(std::uint64_t number, int rank,
                                                 std::size_t size) const;
  void take(std::uint64_t number);

  // Messages between two ranks, in order.
  bool send(int to, std::uint64_t number, const void* data, std::size_t size, bool known);
  bool receive(int from, std::uint64_t number, void* data, std::size_t size, bool* known);

  // A rank that came and is no more; -1: none.
  [[nodiscard]] int missing() const;
  // A rank that has not come yet; -1: none.
  [[nodiscard]] int awaited() const;

 private:
  struct Head;
  struct Rank;
  struct Slot;
  struct Mailbox;

  [[nodiscard]] Rank& state(int rank) const;
  [[nodiscard]] Slot& slot(int rank, std::uint64_t number) const;
  [[nodiscard]] Mailbox& mailbox(int from, int to) const;
  [[nodiscard]] bool gone(int rank) const;

  int ranks_;
  int rank_;
  std::size_t slot_bytes_;
  std::size_t size_;
  std::uint8_t* base_;
};

}  // namespace simgpu
