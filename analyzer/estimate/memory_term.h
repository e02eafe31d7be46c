// One line of an estimate: a symbol, the formula with its values, the bytes, and where it comes
// from.
#ifndef VRAMTRACK_ANALYZER_ESTIMATE_MEMORY_TERM_H
#define VRAMTRACK_ANALYZER_ESTIMATE_MEMORY_TERM_H

#include <string>
#include <vector>

namespace vramtrack {

// Products of lengths, widths and layers can pass 2^64; long double keeps whole bytes up to there.
using Bytes = long double;

struct MemoryTerm {
  std::string category;  // parameters, gradients, optimizer_state, activations, attention, ...
  std::string symbol;    // "2Pw"
  std::string what;      // "weights in bfloat16"
  std::string values;    // "P = 6738415616, w = 2"
  Bytes bytes = 0;
  std::string source;  // "exact by architecture", "what PyTorch saves for backward", "assumed"
};

inline Bytes sum_of(const std::vector<MemoryTerm>& terms) {
  Bytes sum = 0;
  for (const MemoryTerm& term : terms) sum += term.bytes;
  return sum;
}

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_ESTIMATE_MEMORY_TERM_H
