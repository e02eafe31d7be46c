// Names for the frames of a trace: Python's from the line tables in the trace, native ones from the
// symbols stored in it. Needs nothing but the trace, so that any machine can read it.
#ifndef VRAMTRACK_ANALYZER_SYMBOLS_RESOLVER_H
#define VRAMTRACK_ANALYZER_SYMBOLS_RESOLVER_H

#include <memory>
#include <string>
#include <vector>

#include "trace/raw_definitions.h"

namespace vramtrack {

// A FrameResolverFactory for open_trace(). Adds a note where native stacks have no symbols stored.
std::unique_ptr<FrameResolver> make_frame_resolver(const RawDefinitions& definitions,
                                                   std::vector<std::string>& notes);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_SYMBOLS_RESOLVER_H
