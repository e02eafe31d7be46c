// From a log to a verdict, with nothing but the text.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_TEXT_DIAGNOSIS_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_TEXT_DIAGNOSIS_H

#include <optional>
#include <string_view>
#include <vector>

#include "diagnosis/message/oom_message.h"
#include "diagnosis/oom/advice.h"
#include "diagnosis/oom/oom_audit.h"

namespace vramtrack {

struct TextDiagnosis {
  OomText text;        // messages.front() is the one that is explained
  OomNumbers numbers;  // as the audit took them
  OomAudit audit;
  std::vector<Advice> advice;
  std::vector<ProcessUse> other_processes;
  bool own_process_found_among_others =
      false;             // containers: the job's own line carries a foreign pid
  size_t further = 0;    // OOM messages after the first
  size_t identical = 0;  // of these, with the same numbers
};

// Nothing where the text holds no OOM message that is known.
std::optional<TextDiagnosis> diagnose_text(std::string_view text);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_TEXT_DIAGNOSIS_H
