// Reads both ledgers out of a recording.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_WITNESS_COLLECT_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_WITNESS_COLLECT_H

#include <vector>

#include "diagnosis/witness/witness_audit.h"

namespace vramtrack {

struct Ledgers {
  std::vector<Operation> hooks;
  std::vector<Operation> cupti;
  std::vector<UnseenCall> calls;
  std::vector<Exception> exceptions;
  WitnessSpan span;
  uint64_t kernels = 0;
  uint64_t pool_operations = 0;
  uint64_t outside_span = 0;
};

Ledgers collect_ledgers(const Recording& recording);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_WITNESS_COLLECT_H
