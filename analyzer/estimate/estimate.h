// The whole estimate: every term, the peak of each phase, and what to switch on to fit a card.
#ifndef VRAMTRACK_ANALYZER_ESTIMATE_ESTIMATE_H
#define VRAMTRACK_ANALYZER_ESTIMATE_ESTIMATE_H

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "estimate/activations.h"
#include "estimate/memory_term.h"
#include "estimate/model_shape.h"
#include "estimate/workload.h"

namespace vramtrack {

// A moment of a step that may be the highest.
struct PhasePeak {
  std::string name;
  Bytes bytes = 0;  // allocated by the framework, without the context
  std::string of;   // what is live then
};

struct Estimate {
  uint64_t parameters = 0;  // elements
  uint64_t trainable = 0;
  std::vector<MemoryTerm> terms;
  std::vector<PhasePeak> phases;
  PhasePeak peak;                           // the highest of them
  Bytes context = 0;                        // outside the framework, assumed
  std::map<std::string, Bytes> categories;  // of the terms, whenever they are live
  std::map<std::string, Bytes> at_peak;     // of what is live in the highest phase

  [[nodiscard]] Bytes device() const { return peak.bytes + context; }
};

Estimate estimate_memory(const ModelShape& shape, const Workload& work);

// A switch that lowers the estimate.
struct Remedy {
  std::string name;
  std::string cost;
  Workload work;     // with it switched on
  Bytes saving = 0;  // of the device's peak, by itself
};

// All that apply and save something, the largest saving first.
std::vector<Remedy> remedies(const ModelShape& shape, const Workload& work);

struct Plan {
  std::vector<std::string> steps;  // to switch on, in this order
  std::vector<Bytes> device;       // the estimate after each
  bool fits = false;
};

// Switches on what saves most, again and again, until `card` bytes hold it.
Plan plan_to_fit(const ModelShape& shape, const Workload& work, Bytes card);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_ESTIMATE_ESTIMATE_H
