// The end of a process: chunks become frames, the writer's own totals follow, and one line tells
// the user where the trace is. A process that is killed or calls _exit() skips all of this and
// loses nothing but the line.
#ifndef VRAMTRACK_TRACER_RECORD_FINISH_H
#define VRAMTRACK_TRACER_RECORD_FINISH_H

#include <vramtrack/trace_format.h>

namespace vramtrack {

// Remembers what the last line has to say.
void note_event(const Event& event);

void reset_finish();

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_FINISH_H
