#include "record/recorder.h"

#include <sys/prctl.h>
#include <vramtrack/trace_codec.h>

#include <cerrno>
#include <cstring>

#include "record/finish.h"
#include "record/process.h"
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

bool append(Event& event) {
  const uint64_t now_ns = trace_time_ns();
  if (!still_intact(now_ns)) return false;
  introduce_thread();
  Slot* slot = lock_own_slot(kMaxEventBytes);
  if (slot == nullptr) return false;
  const CodecState before = slot->codec;
  event.sequence = next_sequence().fetch_add(1, std::memory_order_relaxed);
  event.time_ns = now_ns;
  const size_t bytes = encode_event(event, slot->codec, slot_position(*slot));
  const bool written = commit_record(*slot, bytes, /*is_event=*/true);
  if (!written) slot->codec = before;
  unlock_slot(*slot);
  return written;
}

}  // namespace

void record(Event& event) {
  if (!ensure_running()) return;
  const int error = errno;
  if (!append(event)) count_dropped(1);
  note_event(event);
  errno = error;
}

bool write_definition(const uint8_t* record, size_t bytes) {
  if (!ensure_running()) return false;
  Slot* slot = lock_own_slot(bytes);
  if (slot == nullptr) return false;
  std::memcpy(slot_position(*slot), record, bytes);
  const bool written = commit_record(*slot, bytes, /*is_event=*/false);
  unlock_slot(*slot);
  return written;
}

}  // namespace vramtrack
