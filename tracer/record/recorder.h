// The way into the trace: a hook fills an Event and calls record(). All functions may be called
// from any thread under a Guard; none allocates from the host's heap, takes a lock that a fork or a
// kill could leave held, or fails towards the caller. What is lost is counted in the file.
#ifndef VRAMTRACK_TRACER_RECORD_RECORDER_H
#define VRAMTRACK_TRACER_RECORD_RECORDER_H

#include <vramtrack/trace_format.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vramtrack {

// Gives the event its sequence number and time and writes it to the calling thread's chunk. The
// first call of a process creates its file; a forked child's first call starts a file of its own.
// `kernel`: the name of the one that the event launches, where its own text does not say.
void record(Event& event, uint32_t kernel = 0);

// Appends a complete, encoded definition record (trace_codec.h) to the calling thread's chunk.
// False where it could not be written: then the id means nothing and must be defined again.
bool write_definition(const uint8_t* record, size_t bytes);

// The id of a string, defined in the file at its first use. 0 for the empty string, and where the
// definition could not be written.
uint32_t intern_string(std::string_view text);

// An id that events may carry already and whose text is defined once, later. It stays the empty
// string where that never happens. 0 while nothing is recorded.
uint32_t reserve_string();
bool define_string(uint32_t id, std::string_view text);

// True while a file is open for this process and the caller is not the tracer itself. False before
// the first event, and in a forked child before its first.
bool tracing();

// Grows with each file: caches of ids that were defined in a file are stale when it has changed.
uint32_t recording_epoch();

// Says once, in one line, why, and records nothing more in this process or its children.
void disable(const char* why);

// Events that were seen and could not be recorded.
void count_dropped(uint64_t events);

// Nanoseconds since the start of the file.
uint64_t trace_time_ns();

// As events have it, to about a microsecond, as in PyTorch's snapshots: what lies below is noise
// that does not compress, and made a third of a recording.
inline constexpr uint64_t kTimeGrainNs = 1024;
inline uint64_t event_time_ns() {
  return trace_time_ns() / kTimeGrainNs * kTimeGrainNs;
}

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_RECORDER_H
