#include "record/strings.h"

#include <vramtrack/trace_codec.h>

#include <atomic>
#include <cstring>

#include "record/process.h"
#include "record/recorder.h"
#include "record/ring.h"
#include "record/slice.h"
#include "record/slots.h"

namespace vramtrack {
namespace {

struct Entry {
  std::atomic<uint64_t> hash{0};  // 0: free
  std::atomic<uint32_t> id{0};    // 0: the thread that took the entry has not defined it yet
};

constexpr uint32_t kEntries = 1U << 16;
constexpr uint32_t kMaxProbes = 64;

constinit Entry g_entries[kEntries];
constinit std::atomic<uint32_t> g_next_id{1};

uint64_t hash_text(std::string_view text) {
  uint64_t h = 0x9e3779b97f4a7c15 ^ (text.size() * 0xff51afd7ed558ccd);
  const char* p = text.data();
  size_t left = text.size();
  while (left != 0) {
    uint64_t word = 0;
    const size_t take = left < 8 ? left : 8;
    std::memcpy(&word, p, take);
    h = (h ^ word) * 0xff51afd7ed558ccd;
    h ^= h >> 32;
    p += take;
    left -= take;
  }
  h = (h ^ (h >> 29)) * 0xc4ceb9fe1a85ec53;
  h ^= h >> 32;
  return h == 0 ? 1 : h;
}

std::string_view shortened(std::string_view text) {
  return text.size() > kMaxStringBytes / 2 ? slice(text, 0, kMaxStringBytes / 2) : text;
}

// Writes the definition in place: the text may be larger than any buffer of ours.
bool define(uint32_t id, std::string_view text) {
  const RingLock ring;
  if (!ring.held()) return false;
  Slot* slot = lock_definition_slot(1 + 2 * kMaxVarintBytes + text.size());
  if (slot == nullptr) return false;
  Writer w(slot_position(*slot));
  w.byte(static_cast<uint8_t>(EventKind::define_string));
  w.varint(id);
  w.varint(text.size());
  w.bytes(text.data(), text.size());
  const bool written = commit_record(*slot, w.size(), /*is_event=*/false);
  unlock_slot(*slot);
  return written;
}

uint32_t define(std::string_view text) {
  const uint32_t id = g_next_id.fetch_add(1, std::memory_order_relaxed);
  return define(id, text) ? id : 0;
}

}  // namespace

uint32_t intern_string(std::string_view text) {
  if (text.empty() || !ensure_running()) return 0;
  text = shortened(text);
  const uint64_t hash = hash_text(text);
  for (uint32_t probe = 0; probe < kMaxProbes; ++probe) {
    Entry& entry = g_entries[(hash + probe) & (kEntries - 1)];
    uint64_t seen = entry.hash.load(std::memory_order_relaxed);
    if (seen == 0 && entry.hash.compare_exchange_strong(seen, hash, std::memory_order_relaxed))
      seen = hash;
    if (seen != hash) continue;
    const uint32_t known = entry.id.load(std::memory_order_acquire);
    if (known != 0) return known;
    // New, or being defined by another thread at this moment: a second definition under another
    // id does no harm, waiting would.
    const uint32_t id = define(text);
    if (id != 0) entry.id.store(id, std::memory_order_release);
    return id;
  }
  return define(text);  // the table is full around here
}

uint32_t reserve_string() {
  return ensure_running() ? g_next_id.fetch_add(1, std::memory_order_relaxed) : 0;
}

bool define_string(uint32_t id, std::string_view text) {
  return id != 0 && ensure_running() && define(id, shortened(text));
}

void reset_strings() {
  for (Entry& entry : g_entries) {
    if (entry.hash.load(std::memory_order_relaxed) == 0) continue;  // leave untouched pages alone
    entry.id.store(0, std::memory_order_relaxed);
    entry.hash.store(0, std::memory_order_relaxed);
  }
  g_next_id.store(1, std::memory_order_relaxed);
}

}  // namespace vramtrack
