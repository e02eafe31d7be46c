// The arithmetic of an OOM: from the numbers at the moment a request failed to what stood in its
// way. The same audit serves a message, whose numbers are rounded, and a recording, whose numbers
// are exact.
//
//   outside   = total - free - reserved - other processes   context, libraries, whoever is unseen
//   held      = reserved - allocated                        in the pool, not in use
//   shortfall = ask - free                                  what the device lacked
//
//   fragmentation needs held of the order of the request, and free + held >= ask
//   free well above ask means that something other than the card refused
//   allocated above total means that the driver pages to the host
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_OOM_AUDIT_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_OOM_AUDIT_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/message/printed_size.h"
#include "diagnosis/oom/oom_verdict.h"

namespace vramtrack {

struct OomNumbers {
  std::optional<PrintedSize> ask;
  std::optional<PrintedSize> total;
  std::optional<PrintedSize> free;
  std::optional<PrintedSize> allocated;
  std::optional<PrintedSize> reserved;
  std::optional<PrintedSize> limit;            // what the pool may hold at most
  std::optional<PrintedSize> own_process;      // by NVML, context included
  std::optional<PrintedSize> other_processes;  // the sum of those that are known
};

struct OomAudit {
  OomVerdict verdict = OomVerdict::undetermined;
  Confidence confidence = Confidence::low;
  std::string reason;                     // one sentence with the numbers
  std::vector<std::string> remarks;       // what else the numbers say
  std::vector<OomVerdict> also_possible;  // within the rounding of the numbers, or close behind
  bool on_edge = false;                   // the rounding decides

  // Derived, where the numbers allow it.
  std::optional<PrintedSize> outside;
  std::optional<PrintedSize> held;
  std::optional<PrintedSize> shortfall;
  // The least that has to go away, from wherever, for the request to fit; <= 0 if it would.
  std::optional<PrintedSize> missing;
};

OomAudit audit_oom(const OomNumbers& numbers);

// The thresholds. Each is a judgement and not a law; docs/reading-an-oom.md gives the reasons.
namespace threshold {
// A context and its libraries take up to this much without anything being wrong.
inline constexpr long double kUsualOutside = 1024.0L * 1024.0L * 1024.0L;
// Others (or what lies outside) matter from this share of the card on ...
inline constexpr long double kShareThatMatters = 1.0L / 8;
// ... and are plainly the cause from this one on.
inline constexpr long double kShareThatDecides = 1.0L / 4;
// Free memory this many times the request is "well above" it.
inline constexpr long double kWellAbove = 2.0L;
inline constexpr long double kSomewhatAbove = 1.5L;
// Held memory of the order of the request.
inline constexpr long double kOrderOfRequest = 0.5L;
// No allocator packs to the last two percent: less slack than that is no room.
inline constexpr long double kPackingMargin = 0.02L;
}  // namespace threshold

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_OOM_AUDIT_H
