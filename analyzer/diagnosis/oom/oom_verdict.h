// The words in which every diagnosis ends.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_OOM_VERDICT_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_OOM_VERDICT_H

#include <cstdint>
#include <string_view>

namespace vramtrack {

enum class OomVerdict : uint8_t {
  capacity,        // what is live and what was asked for do not fit
  fragmentation,   // enough memory is held and unused, but not in one piece
  leak,            // live memory grows step over step
  other_process,   // somebody else's memory
  outside,         // in use on the device, and not in the allocator's pool
  limit,           // something other than the card says no
  transient_peak,  // one step's temporary dominates
  host_memory,     // host memory, not the device's
  healthy,         // no memory problem
  undetermined,    // the evidence does not decide
};

constexpr std::string_view verdict_name(OomVerdict verdict) {
  switch (verdict) {
    case OomVerdict::capacity:
      return "capacity";
    case OomVerdict::fragmentation:
      return "fragmentation";
    case OomVerdict::leak:
      return "leak";
    case OomVerdict::other_process:
      return "other process";
    case OomVerdict::outside:
      return "outside";
    case OomVerdict::limit:
      return "limit";
    case OomVerdict::transient_peak:
      return "transient peak";
    case OomVerdict::host_memory:
      return "host memory";
    case OomVerdict::healthy:
      return "healthy";
    case OomVerdict::undetermined:
      return "undetermined";
  }
  return "undetermined";
}

enum class Confidence : uint8_t { low, medium, high };

constexpr std::string_view confidence_name(Confidence confidence) {
  switch (confidence) {
    case Confidence::low:
      return "low";
    case Confidence::medium:
      return "medium";
    case Confidence::high:
      return "high";
  }
  return "low";
}

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_OOM_VERDICT_H
