// The JSON after the file's header: what was run, where, and with which settings (docs/format.md).
#ifndef VRAMTRACK_TRACER_RECORD_METADATA_H
#define VRAMTRACK_TRACER_RECORD_METADATA_H

#include <string_view>

namespace vramtrack {

std::string_view make_metadata();

// What is learnt later: a define_metadata record.
void define_metadata(std::string_view key, std::string_view value);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_METADATA_H
