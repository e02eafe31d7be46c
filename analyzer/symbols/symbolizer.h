// Looks up what the native addresses of a trace mean, in the files that were mapped, on the machine
// where the job ran. A few hundred addresses for a whole training run.
#ifndef VRAMTRACK_ANALYZER_SYMBOLS_SYMBOLIZER_H
#define VRAMTRACK_ANALYZER_SYMBOLS_SYMBOLIZER_H

#include <string>
#include <vector>

#include "symbols/symbol_store.h"
#include "trace/raw_definitions.h"

namespace vramtrack {

struct SymbolizeResult {
  SymbolStore symbols;
  size_t addresses = 0;                      // distinct ones in the trace
  size_t resolved = 0;                       // of these, named
  std::vector<std::string> missing_modules;  // gone, or not the file that was mapped
};

SymbolizeResult symbolize(const RawDefinitions& definitions);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_SYMBOLS_SYMBOLIZER_H
