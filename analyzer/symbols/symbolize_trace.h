// Stores the symbols of a trace in the trace itself, so that it can be read on another machine.
#ifndef VRAMTRACK_ANALYZER_SYMBOLS_SYMBOLIZE_TRACE_H
#define VRAMTRACK_ANALYZER_SYMBOLS_SYMBOLIZE_TRACE_H

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace vramtrack {

struct TraceSymbols {
  size_t addresses = 0;  // distinct native addresses in the trace
  size_t named = 0;      // of these, in the file now
  size_t added = 0;      // by this call
  std::vector<std::string> missing_modules;
};

// Appends a `symbols` frame where something new was found; what was stored before is kept, so that
// running it twice, or where the libraries are missing, loses nothing. Throws InputError where the
// file is no trace, cannot be written, or is still being written by its process.
TraceSymbols symbolize_trace(const std::filesystem::path& path);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_SYMBOLS_SYMBOLIZE_TRACE_H
