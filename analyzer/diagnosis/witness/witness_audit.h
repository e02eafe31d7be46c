// Two ledgers of one process, side by side: what our own hooks saw of the driver (interposition),
// and what NVIDIA's CUPTI reported (`run --cupti`). What one has and the other has not is a miss,
// unless it is one of the known exceptions: docs/reading-an-audit.md gives the reason of each.
//
//   hooks   alloc A 1 MiB   free A   alloc A 1 MiB             free A
//   CUPTI   alloc A 1 MiB   free A   alloc A 1 MiB   alloc B   free A     -> B: only CUPTI
//
// An address comes again, so that operations are paired within (address, kind, size), in order, and
// where the counts differ by the times: CUPTI's clock reads the beginning of a call, ours its end.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_WITNESS_WITNESS_AUDIT_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_WITNESS_WITNESS_AUDIT_H

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trace/recording.h"

namespace vramtrack {

struct Operation {
  bool allocation = true;  // else a release
  Memory memory = Memory::none;
  int16_t device = -1;
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t time_ns = 0;      // of a CUPTI record: by its clock
  uint64_t correlation = 0;  // CUPTI's
  std::string api;           // "(unknown)" where nobody said
  std::string library;       // that asked, by file name
  StackId stack = 0;
};

// Calls that no hook saw and that CUPTI has no memory record for.
struct UnseenCall {
  std::string api;
  std::string library;
  StackId stack = 0;
  uint64_t correlation = 0;
  int32_t result = 0;
};

// When CUPTI watched, and why not before and after.
struct WitnessSpan {
  bool ran = false;
  uint64_t begin_ns = 0;
  uint64_t end_ns = UINT64_MAX;
  bool closed = false;  // false: the process was killed, its last records are lost
  bool stepped_aside = false;
  std::string started;  // "CUPTI 130001, /usr/.../libcupti.so.13"
  std::string ended;
  std::string unavailable;
  uint64_t lost_records = 0;  // CUPTI's own count
};

struct Exception {
  std::string what;
  std::string reason;
  uint64_t count = 0;
};

struct AuditRow {
  uint64_t both = 0;
  uint64_t only_hooks = 0;
  uint64_t only_cupti = 0;
};

struct WitnessAudit {
  WitnessSpan span;
  uint64_t allocations = 0;  // seen by both
  uint64_t releases = 0;
  uint64_t kernels = 0;  // CUPTI's records
  uint64_t pool_operations = 0;
  uint64_t outside_span = 0;  // of the hooks, while CUPTI did not watch
  std::vector<Operation> only_hooks;
  std::vector<Operation> only_cupti;
  std::vector<UnseenCall> unseen_calls;
  std::vector<Exception> exceptions;
  std::map<std::pair<std::string, std::string>, AuditRow> rows;  // by (api, library)

  [[nodiscard]] uint64_t missed() const {
    return only_hooks.size() + only_cupti.size() + unseen_calls.size();
  }
};

// Throws InputError where the recording holds nothing of CUPTI.
WitnessAudit audit_witnesses(const Recording& recording);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_WITNESS_WITNESS_AUDIT_H
