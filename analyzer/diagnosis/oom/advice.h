// What to change, and what it would save. Each piece of advice is one row of a table (advice.cpp):
// when it applies, the evidence, the predicted saving and how that was got, what it costs. What is
// already in force is not advised; what cannot help is not advised either (empty_cache against an
// OOM: PyTorch has emptied its cache by the time it gives up).
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_ADVICE_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_ADVICE_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/message/oom_message.h"
#include "diagnosis/oom/oom_audit.h"

namespace vramtrack {

// How a predicted saving was got.
enum class Basis : uint8_t {
  none,      // not quantified
  computed,  // by a formula from the numbers shown
  measured,  // the bytes were seen
  replayed,  // the allocator's requests were run again under the other setting
};
std::string_view basis_name(Basis basis);

struct Advice {
  std::string id;
  std::string change;
  std::string evidence;
  std::optional<long double> saving;  // bytes
  bool at_most = false;               // the saving is an upper bound
  Basis basis = Basis::none;
  std::string cost;
  // Whether it alone would have let the request succeed, where that can be told.
  std::optional<bool> enough;
  bool in_force_known = false;  // true: the settings are known and do not hold it
};

// A saving that somebody else worked out: the allocator's replay under another setting.
struct ReplayedSaving {
  std::string setting;  // "expandable_segments:True"
  long double saved_bytes = 0;
  std::optional<bool> oom_avoided;
};

struct AdviceContext {
  std::string library;
  std::string form;
  MessageKind kind = MessageKind::device;
  OomNumbers numbers;
  OomAudit audit;
  std::map<std::string, std::string> details;
  std::map<SizeKind, PrintedSize> sizes;
  std::map<std::string, std::string> settings;  // of the allocator, in force
  bool settings_known = false;                  // all of them, not only what a log happened to show
  bool windows = false;
  std::string mig_profile;
  // From a recording.
  std::map<std::string, long double> categories;  // live bytes at the moment of the OOM
  std::vector<ReplayedSaving> replayed;
};

// All that applies, the largest predicted saving first, what is not quantified last.
std::vector<Advice> advise(const AdviceContext& context);

// Is `setting` on, and with which value?
std::optional<std::string> setting_in_force(const AdviceContext& context, std::string_view setting);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_ADVICE_H
