// A list of addresses is written once in the file and launches refer to it: programs repeat their
// launches, and a caching allocator their addresses. The danger is a program that does not: the
// number of lists is bounded, and beyond it each address becomes an event of its own.
#include "hooks/kernel_accesses.h"

#include <vramtrack/trace_codec.h>

#include <atomic>
#include <cstring>

#include "hooks/device_ranges.h"
#include "record/recorder.h"

namespace vramtrack {
namespace {

// Readers take no lock: a writer empties the key first and sets it last.
struct List {
  std::atomic<uint64_t> key{0};  // hash of epoch, kernel and addresses; 0: free
  std::atomic<uint64_t> epoch_and_id{0};
};

constexpr uint32_t kLists = 2 * kMaxAccessLists;  // a power of two
constexpr uint32_t kMaxProbes = 8;

constinit List g_lists[kLists];
constinit std::atomic<uint32_t> g_next_id{1};
constinit std::atomic<uint64_t> g_epoch_and_count{0};  // lists defined in the file
constinit std::atomic<uint32_t> g_writer{0};           // epoch of who changes the table, 0 nobody

uint64_t mixed(uint64_t h, uint64_t word) {
  h = (h ^ word) * 0xff51afd7ed558ccd;
  return h ^ (h >> 32);
}

uint64_t hash_of(uint32_t name, const AddressList& addresses) {
  uint64_t h = mixed(recording_epoch(), uint64_t{name} << 32 | addresses.count());
  for (uint32_t i = 0; i < addresses.count(); ++i)
    h = mixed(h, addresses.begin()[i] ^ static_cast<uint64_t>(addresses.word(i)) << 48);
  h = mixed(h, 0xc4ceb9fe1a85ec53);
  return h == 0 ? 1 : h;
}

uint32_t find_list(uint64_t key) {
  for (uint32_t probe = 0; probe < kMaxProbes; ++probe) {
    const List& entry = g_lists[(key + probe) % kLists];
    const uint64_t seen = entry.key.load(std::memory_order_acquire);
    if (seen == 0) return 0;
    if (seen != key) continue;
    const uint64_t value = entry.epoch_and_id.load(std::memory_order_acquire);
    const bool stable = entry.key.load(std::memory_order_acquire) == key;
    return stable && value >> 32 == recording_epoch() ? static_cast<uint32_t>(value) : 0;
  }
  return 0;
}

// Who finds another thread at it lets it be: the list is then written once more.
void keep_list(uint64_t key, uint32_t id) {
  const uint32_t epoch = recording_epoch();
  uint32_t writer = 0;
  if (!g_writer.compare_exchange_strong(writer, epoch, std::memory_order_acquire)) {
    // A forked child may find the mark of a thread that does not exist there.
    if (writer == epoch ||
        !g_writer.compare_exchange_strong(writer, epoch, std::memory_order_acquire))
      return;
  }
  for (uint32_t probe = 0; probe < kMaxProbes; ++probe) {
    List& entry = g_lists[(key + probe) % kLists];
    const bool stale = entry.epoch_and_id.load(std::memory_order_relaxed) >> 32 != epoch;
    if (entry.key.load(std::memory_order_relaxed) != 0 && !stale) continue;
    entry.key.store(0, std::memory_order_release);
    entry.epoch_and_id.store(uint64_t{epoch} << 32 | id, std::memory_order_release);
    entry.key.store(key, std::memory_order_release);
    break;
  }
  g_writer.store(0, std::memory_order_release);
}

// False when the file has as many lists as it may have.
bool take_list_number() {
  const uint64_t epoch = uint64_t{recording_epoch()} << 32;
  uint64_t seen = g_epoch_and_count.load(std::memory_order_relaxed);
  for (;;) {
    const uint64_t count = seen >> 32 << 32 == epoch ? seen & 0xffffffff : 0;
    if (count >= kMaxAccessLists) return false;
    if (g_epoch_and_count.compare_exchange_weak(seen, epoch | (count + 1),
                                                std::memory_order_relaxed))
      return true;
  }
}

// A buffer of twenty kilobytes stays out of the frame of every launch.
__attribute__((noinline)) uint32_t define_list(uint32_t name, const AddressList& addresses) {
  if (!take_list_number()) return 0;
  uint8_t buffer[1 + (4 + 2 * kMaxAccessAddresses) * kMaxVarintBytes];
  const uint32_t id = g_next_id.fetch_add(1, std::memory_order_relaxed);
  Writer w(buffer);
  w.byte(static_cast<uint8_t>(EventKind::define_access));
  w.varint(id);
  w.varint(name);
  w.varint(addresses.truncated() ? uint64_t{kAccessTruncated} : 0);
  w.varint(addresses.count());
  uint64_t previous = 0;
  uint16_t word = 0;  // parameters are in order, and so are words
  for (uint32_t i = 0; i < addresses.count(); ++i) {
    w.varint(delta(addresses.begin()[i], previous));
    w.varint(static_cast<uint16_t>(addresses.word(i) - word));
    previous = addresses.begin()[i];
    word = addresses.word(i);
  }
  return write_definition(buffer, w.size()) ? id : 0;
}

void scan(const void* value, const ParameterPlace& place, AddressList& addresses) {
  const auto* at = static_cast<const uint8_t*>(value);
  for (size_t offset = 0; offset + sizeof(uint64_t) <= place.bytes; offset += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, at + offset, sizeof word);
    if (is_device_address(word))
      addresses.add(word, static_cast<uint16_t>((place.offset + offset) / sizeof(uint64_t)));
  }
}

// Of each list the slots that are filled, from its beginning on.
bool scan_tensors(const TensorLists& tensors, const void* value, const ParameterPlace& place,
                  AddressList& addresses) {
  const bool large = place.bytes > TensorLists::kSmallBytes;
  const uint32_t slots = tensors.slots * (large ? TensorLists::kLarge : 1);
  const auto* words = static_cast<const uint8_t*>(value);
  const auto scan_list = [&](uint32_t list) {
    for (uint32_t word = list * slots; word < (list + 1) * slots; ++word) {
      uint64_t address;
      if ((size_t{word} + 1) * sizeof address > place.bytes) return;
      std::memcpy(&address, words + size_t{word} * sizeof address, sizeof address);
      if (!is_device_address(address)) return;
      addresses.add(address, static_cast<uint16_t>(place.offset / sizeof address + word));
    }
  };
  for (uint32_t list = 0; list < tensors.lists; ++list) scan_list(list);
  if (tensors.steps) scan_list(tensors.lists + 1);
  return addresses.count() != 0;
}

void scan_buffer(const ParameterLayout& layout, void** extra, AddressList& addresses) {
  const uint8_t* buffer = nullptr;
  size_t size = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = static_cast<const uint8_t*>(extra[1]);
    if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<const size_t*>(extra[1]);
  }
  if (buffer == nullptr) return;
  for (uint32_t i = 0; i < layout.count; ++i) {
    const ParameterPlace& place = layout.places[i];
    if (size_t{place.offset} + place.bytes <= size) scan(buffer + place.offset, place, addresses);
  }
}

}  // namespace

bool AddressList::has_among_few(uint64_t address) const {
  for (uint32_t i = 0; i < count_; ++i)
    if (addresses_[i] == address) return true;
  return false;
}

bool AddressList::enter(uint64_t address, uint32_t index) {
  uint32_t at = static_cast<uint32_t>(mixed(0, address)) % kPlaces;
  for (; places_[at] != 0; at = (at + 1) % kPlaces)
    if (addresses_[places_[at] - 1] == address) return false;
  places_[at] = static_cast<uint16_t>(index + 1);
  return true;
}

void AddressList::enter_all() {
  std::memset(places_, 0, sizeof places_);
  for (uint32_t i = 0; i < count_; ++i) enter(addresses_[i], i);
}

void AddressList::add(uint64_t address, uint16_t word) {
  if (count_ < kFewAddresses) {
    if (has_among_few(address)) return;
  } else {
    if (count_ == kFewAddresses) enter_all();
    if (count_ == kMaxAccessAddresses) {
      truncated_ = true;
      return;
    }
    if (!enter(address, count_)) return;
  }
  words_[count_] = word;
  addresses_[count_++] = address;
}

void collect_addresses(const ParameterLayout& layout, void** parameters, void** extra,
                       AddressList& addresses) {
  if (layout.count == 0) return;
  if (parameters == nullptr) {
    if (extra != nullptr) scan_buffer(layout, extra, addresses);
    return;
  }
  uint32_t first = 0;
  if (layout.tensors.lists != 0 && parameters[0] != nullptr &&
      scan_tensors(layout.tensors, parameters[0], layout.places[0], addresses))
    first = 1;
  for (uint32_t i = first; i < layout.count; ++i)
    if (parameters[i] != nullptr) scan(parameters[i], layout.places[i], addresses);
}

void record_access(uint32_t name, const AddressList& addresses, uint64_t stream, uint64_t graph) {
  Event event{.kind = EventKind::kernel_access,
              .stream = stream,
              .object = graph,
              .flags = graph != 0 ? kEventGraphNode : 0U};
  uint32_t id = 0;
  if (addresses.count() != 0) {
    const uint64_t key = hash_of(name, addresses);
    id = find_list(key);
    if (id == 0 && (id = define_list(name, addresses)) != 0) keep_list(key, id);
  }
  if (id != 0 || addresses.count() == 0) {
    event.extra = id;
    if (id == 0) event.text = name;
    return record(event, name);
  }
  event.text = name;
  for (uint32_t i = 0; i < addresses.count(); ++i) {
    event.address = addresses.begin()[i];
    record(event);
  }
}

}  // namespace vramtrack
