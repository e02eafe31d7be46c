// Finds a snapshot in a document, whichever PyTorch wrote it: the bare list of segments of 1.x, the
// dictionary with segments only, with traces, with block histories (1.13, 2.0) or frames, up to
// today's keys. Keys that it does not know are ignored and named in a note.
#ifndef VRAMTRACK_ANALYZER_IMPORT_SNAPSHOT_READER_H
#define VRAMTRACK_ANALYZER_IMPORT_SNAPSHOT_READER_H

#include "import/snapshot.h"
#include "import/value_store.h"
#include "trace/recording.h"

namespace vramtrack {

// Fills `definitions` with stacks and strings, `info` with settings and notes. Throws InputError
// where the document is none of the known shapes.
Snapshot read_snapshot(const Value& root, Definitions& definitions, RecordingInfo& info);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_IMPORT_SNAPSHOT_READER_H
