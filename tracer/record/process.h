// The life of the tracer in one process: not started, starting, running, off.
//
// The state lives in a page that the kernel wipes in every kind of child that gets a copy of our
// memory (MADV_WIPEONFORK: fork, _Fork, clone), where pthread_atfork would only see fork. A child
// therefore finds "not started", whatever its parent was doing, and begins a file of its own at its
// first event. Nothing that another thread of the parent held at that moment is waited for: start()
// puts all of it back to the beginning.
#ifndef VRAMTRACK_TRACER_RECORD_PROCESS_H
#define VRAMTRACK_TRACER_RECORD_PROCESS_H

#include <atomic>
#include <cstdint>

#include "record/output_file.h"

namespace vramtrack {

// From the constructor of the library.
void process_initialize();

// Called in a forked child before its file exists, so that others forget what the parent defined.
void call_in_children(void (*callback)());

// True when events can be recorded; starts what is not started. Cheap when running.
bool ensure_running();

// Whether this very process has an open file. Starts nothing.
bool is_running();

// False once disabled by the user or by trouble: hooks then only forward.
bool wanted();

OutputFile& output_file();
const char* output_path();  // empty before the first event
std::atomic<uint64_t>& next_sequence();
uint64_t dropped_events();

// One line on stderr, prefixed; write(2), no stdio.
void say(const char* text);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_PROCESS_H
