#include "nccl/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace simgpu {
namespace {

constexpr char kMagic[8] = "simgpu1";
constexpr std::size_t kLargestSlot = 256 * 1024;
constexpr std::size_t kSlotsTogether = 64 << 20;
constexpr int kMostRanks = 1024;

void host_name(char (&name)[32]) {
  std::memset(name, 0, sizeof name);
  gethostname(name, sizeof name - 1);
}

// Also while its parent has not waited for it.
bool has_ended(int process) {
  if (kill(process, 0) != 0 && errno == ESRCH) return true;
  char path[40], text[512];
  std::snprintf(path, sizeof path, "/proc/%d/stat", process);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return false;
  text[size] = '\0';
  const char* name_end = std::strrchr(text, ')');
  return name_end != nullptr && (name_end[1] == ' ' && (name_end[2] == 'Z' || name_end[2] == 'X'));
}

constexpr std::size_t aligned(std::size_t size) {
  return (size + 63) & ~std::size_t{63};
}

}  // namespace

struct alignas(64) Exchange::Head {
  std::atomic<std::int32_t> attached;
};

struct alignas(64) Exchange::Rank {
  std::atomic<std::int32_t> process;  // 0: has not come; -1: has left
  std::atomic<std::uint64_t> posted;  // numbers of collectives
  std::atomic<std::uint64_t> taken;
};

struct alignas(64) Exchange::Slot {
  std::uint64_t known;
  std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(this + 1); }
};

struct alignas(64) Exchange::Mailbox {
  std::atomic<std::uint64_t> sent;
  std::atomic<std::uint64_t> received;
  std::uint64_t known;
  std::uint8_t data[kLargestMessage];
};

bool make_nccl_id(NcclId* id) {
  std::uint64_t random[2];
  if (getrandom(random, sizeof random, 0) != sizeof random) return false;
  std::memset(id, 0, sizeof *id);
  std::memcpy(id->magic, kMagic, sizeof kMagic);
  host_name(id->host);
  const char* folder = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
  std::snprintf(id->path, sizeof id->path, "%s/simgpu-nccl-%016llx%016llx", folder,
                static_cast<unsigned long long>(random[0]),
                static_cast<unsigned long long>(random[1]));
  return true;
}

NcclId split_nccl_id(const NcclId& id, std::uint64_t split, int color) {
  NcclId part = id;
  const std::size_t used = strnlen(part.path, sizeof part.path - 1);
  std::snprintf(part.path + used, sizeof part.path - used, ".%llu.%d",
                static_cast<unsigned long long>(split), color);
  return part;
}

bool is_nccl_id(const NcclId& id) {
  return std::memcmp(id.magic, kMagic, sizeof kMagic) == 0 &&
         memchr(id.path, 0, sizeof id.path) != nullptr;
}

bool is_of_this_host(const NcclId& id) {
  char here[32];
  host_name(here);
  return std::memcmp(here, id.host, sizeof here) == 0;
}

bool Exchange::attach(const NcclId& id, int ranks, int rank) {
  if (ranks > kMostRanks) return false;
  ranks_ = ranks;
  rank_ = rank;
  const auto count = static_cast<std::size_t>(ranks);
  slot_bytes_ =
      kSlotsTogether / 2 / count < kLargestSlot ? kSlotsTogether / 2 / count : kLargestSlot;
  size_ = sizeof(Head) + count * sizeof(Rank) + 2 * count * aligned(sizeof(Slot) + slot_bytes_) +
          count * count * sizeof(Mailbox);
  const int file = open(id.path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return false;
  // The room is taken now: a mapped file on a full file system would kill the program later.
  flock(file, LOCK_EX);
  struct stat status;
  bool good = fstat(file, &status) == 0 && status.st_uid == geteuid();
  if (good && status.st_size == 0)
    good = posix_fallocate(file, 0, static_cast<off_t>(size_)) == 0;
  else
    good = good && static_cast<std::size_t>(status.st_size) == size_;
  flock(file, LOCK_UN);
  void* memory =
      good ? mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  close(file);
  if (memory == MAP_FAILED) return false;
  base_ = static_cast<std::uint8_t*>(memory);
  state(rank).process.store(getpid());
  // Whoever comes last takes the name away: the file lives as long as somebody maps it.
  if (reinterpret_cast<Head*>(base_)->attached.fetch_add(1) + 1 == ranks) unlink(id.path);
  return true;
}

void Exchange::leave() {
  if (base_ == nullptr) return;
  state(rank_).process.store(-1);
  munmap(base_, size_);
  base_ = nullptr;
}

Exchange::Rank& Exchange::state(int rank) const {
  return reinterpret_cast<Rank*>(base_ + sizeof(Head))[rank];
}

Exchange::Slot& Exchange::slot(int rank, std::uint64_t number) const {
  const std::size_t index = static_cast<std::size_t>(rank) * 2 + number % 2;
  return *reinterpret_cast<Slot*>(base_ + sizeof(Head) +
                                  static_cast<std::size_t>(ranks_) * sizeof(Rank) +
                                  index * aligned(sizeof(Slot) + slot_bytes_));
}

Exchange::Mailbox& Exchange::mailbox(int from, int to) const {
  const auto count = static_cast<std::size_t>(ranks_);
  std::uint8_t* first =
      base_ + sizeof(Head) + count * sizeof(Rank) + 2 * count * aligned(sizeof(Slot) + slot_bytes_);
  return reinterpret_cast<Mailbox*>(
      first)[static_cast<std::size_t>(from) * count + static_cast<std::size_t>(to)];
}

bool Exchange::post(std::uint64_t number, const void* data, std::size_t size, bool known) {
  if (state(rank_).posted.load() + 1 != number) return false;
  // The slot held number - 2: everybody must have taken that.
  for (int rank = 0; rank < ranks_; ++rank)
    if (state(rank).taken.load() + 2 < number) return false;
  Slot& mine = slot(rank_, number);
  mine.known = known ? size : 0;
  if (known && size != 0) std::memcpy(mine.data(), data, size);
  state(rank_).posted.store(number);
  return true;
}

bool Exchange::complete(std::uint64_t number) const {
  if (state(rank_).taken.load() + 1 != number) return false;
  for (int rank = 0; rank < ranks_; ++rank)
    if (state(rank).posted.load() < number) return false;
  return true;
}

const std::uint8_t* Exchange::contribution(std::uint64_t number, int rank, std::size_t size) const {
  Slot& theirs = slot(rank, number);
  return theirs.known == size ? theirs.data() : nullptr;
}

void Exchange::take(std::uint64_t number) {
  state(rank_).taken.store(number);
}

bool Exchange::send(int to, std::uint64_t number, const void* data, std::size_t size, bool known) {
  Mailbox& box = mailbox(rank_, to);
  if (box.sent.load() + 1 != number || box.received.load() + 1 != number) return false;
  box.known = known ? size : 0;
  if (known && size != 0) std::memcpy(box.data, data, size);
  box.sent.store(number);
  return true;
}

bool Exchange::receive(int from, std::uint64_t number, void* data, std::size_t size, bool* known) {
  Mailbox& box = mailbox(from, rank_);
  if (box.sent.load() < number || box.received.load() + 1 != number) return false;
  *known = box.known == size;
  if (*known && size != 0) std::memcpy(data, box.data, size);
  box.received.store(number);
  return true;
}

bool Exchange::gone(int rank) const {
  const int process = state(rank).process.load();
  return process < 0 || (process > 0 && has_ended(process));
}

int Exchange::missing() const {
  for (int rank = 0; rank < ranks_; ++rank)
    if (rank != rank_ && gone(rank)) return rank;
  return -1;
}

int Exchange::awaited() const {
  for (int rank = 0; rank < ranks_; ++rank)
    if (state(rank).process.load() == 0) return rank;
  return -1;
}

}  // namespace simgpu
