// The head of a trace: FileHeader, checked, and the JSON after it.
#ifndef VRAMTRACK_ANALYZER_TRACE_FILE_HEADER_H
#define VRAMTRACK_ANALYZER_TRACE_FILE_HEADER_H

#include "trace/file_bytes.h"
#include "trace/recording.h"

namespace vramtrack {

// Throws InputError that says what is wrong: no trace at all, a newer version, cut short, or
// lengths that no writer produces.
FileHeader read_file_header(const FileBytes& file);

// Where a ring recording has its areas; area_count is 0 where the file is none.
RingHeader read_ring_header(const FileBytes& file, const FileHeader& header);

// What header and metadata say of the run.
RecordingInfo read_info(const FileBytes& file, const FileHeader& header);

// One fact about the run, from the header's JSON or from a define_metadata record.
void apply_metadata(RecordingInfo& info, std::string_view key, std::string_view value);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_TRACE_FILE_HEADER_H
