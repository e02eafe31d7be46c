// Which thread writes where in the window.
//
//   thread A --owns--> slot 0: chunk, generation 7      full: sealed into a frame, generation 8
//   thread B --owns--> slot 1: chunk, generation 2      idle: sealed by whoever seals next
//   (nobody)           slot 2: chunk of a thread that ended, sealed when the slot is needed
//
// A slot has a lock that its owner takes for each record, uncontended but for the moment when
// another thread seals it. It is tried a bounded number of times, never waited for; a child of a
// fork resets all of them.
//
// A thread that ends gives its slot back through a pthread key. Where events follow even that (in
// destructors of other keys), or where the thread vanished, the owner's tid tells: it no longer
// exists, or it is the caller's own.
#ifndef VRAMTRACK_TRACER_RECORD_SLOTS_H
#define VRAMTRACK_TRACER_RECORD_SLOTS_H

#include <vramtrack/trace_codec.h>

#include <atomic>
#include <cstdint>

namespace vramtrack {

struct alignas(64) Slot {
  std::atomic<uint32_t> lock{0};
  // All below is guarded by `lock`.
  uint32_t index = 0;
  uint32_t owner = 0;      // number of the thread, 0 none
  uint32_t owner_tid = 0;  // as the kernel knows it
  uint32_t generation = 0;
  uint32_t used = 0;    // bytes of records
  uint32_t events = 0;  // in this chunk
  uint64_t opened_at_seal = 0;
  uint64_t last_time_ns = 0;
  uint64_t refused_at_ns = 0;  // when it could last not be sealed, 0: it could
  CodecState codec{};
};

// The calling thread's slot, locked, with room for `bytes` more; nullptr where there is none.
// Release it with unlock_slot().
Slot* lock_own_slot(size_t bytes);
// Likewise for a definition. A ring keeps definitions apart, in the last slot, because it
// overwrites what it keeps with the events.
Slot* lock_definition_slot(size_t bytes);
void unlock_slot(Slot& slot);

// Where the next record goes.
uint8_t* slot_position(Slot& slot);
// Makes the `bytes` that were written there part of the file.
bool commit_record(Slot& slot, size_t bytes, bool is_event);

uint32_t thread_number();  // of the calling thread
// True at the thread's first call in this file: its name is to be defined.
bool take_thread_introduction(uint32_t& thread, uint32_t& tid);

void seal_all_slots();
void reset_slots();
void initialize_thread_exit();

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_SLOTS_H
