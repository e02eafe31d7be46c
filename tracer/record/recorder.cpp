#include "record/recorder.h"

#include <sys/prctl.h>
#include <vramtrack/trace_codec.h>

#include <cerrno>
#include <cstring>

#include "record/carry.h"
#include "record/finish.h"
#include "record/process.h"
#include "record/ring.h"
#include "record/slots.h"

namespace vramtrack {
namespace {

constexpr uint64_t kCheckIntervalNs = 100'000'000;

constinit std::atomic<uint64_t> g_checked_ns{0};

// The name matters: PyTorch names its backward threads after their device.
void introduce_thread() {
  uint32_t thread = 0;
  uint32_t tid = 0;
  if (!take_thread_introduction(thread, tid)) return;
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  const uint32_t text = intern_string({name, strnlen(name, sizeof name)});
  uint8_t buffer[1 + 3 * kMaxVarintBytes];
  Writer w(buffer);
  w.byte(static_cast<uint8_t>(EventKind::define_thread));
  w.varint(thread);
  w.varint(tid);
  w.varint(text);
  write_definition(buffer, w.size());
}

// Somebody may truncate the file under us; the next store into the window would then be fatal.
bool still_intact(uint64_t now_ns) {
  uint64_t checked = g_checked_ns.load(std::memory_order_relaxed);
  if (now_ns - checked < kCheckIntervalNs && now_ns >= checked) return true;
  if (!g_checked_ns.compare_exchange_strong(checked, now_ns, std::memory_order_relaxed))
    return true;
  if (output_file().intact()) return true;
  disable("the trace file was truncated or removed by somebody else; recording ends here");
  return false;
}

// Encodes the event into the calling thread's slot. False where there is no room; in a ring the
// event has its number all the same.
bool write_event(Event& event) {
  Slot* slot = lock_own_slot(kMaxEventBytes);
  if (slot == nullptr && !ring_on()) return false;
  event.sequence = next_sequence().fetch_add(1, std::memory_order_relaxed);
  if (slot == nullptr) return false;
  const CodecState before = slot->codec;
  const size_t bytes = encode_event(event, slot->codec, slot_position(*slot));
  const bool written = commit_record(*slot, bytes, /*is_event=*/true);
  if (!written) slot->codec = before;
  unlock_slot(*slot);
  return written;
}

bool write_record(const uint8_t* record, size_t bytes) {
  Slot* slot = lock_definition_slot(bytes);
  if (slot == nullptr) return false;
  std::memcpy(slot_position(*slot), record, bytes);
  const bool written = commit_record(*slot, bytes, /*is_event=*/false);
  unlock_slot(*slot);
  return written;
}

// What a ring must do besides, written or not: the next snapshot then makes up for what was lost.
bool follow(const Event& event, uint32_t kernel) {
  bool kept = true;
  if (must_be_kept(event.kind)) {
    uint8_t record[1 + kMaxCarriedBytes];
    record[0] = static_cast<uint8_t>(EventKind::kept_event);
    kept = write_record(record, 1 + encode_carried(carried(event), record + 1));
  }
  carry(event, kernel);
  ring_advance();
  return kept;
}

bool append(Event& event, uint32_t kernel) {
  event.time_ns = event_time_ns();
  if (!still_intact(event.time_ns)) return false;
  introduce_thread();
  const RingLock ring;
  if (!ring.held()) return false;
  const bool written = write_event(event);
  if (!ring_on()) return written;
  event.thread = thread_number();
  return follow(event, kernel) && written;
}

}  // namespace

void record(Event& event, uint32_t kernel) {
  if (!ensure_running()) return;
  const int error = errno;
  if (!append(event, kernel)) count_dropped(1);
  note_event(event);
  errno = error;
}

bool write_definition(const uint8_t* record, size_t bytes) {
  if (!ensure_running()) return false;
  const RingLock ring;
  return ring.held() && write_record(record, bytes);
}

}  // namespace vramtrack
