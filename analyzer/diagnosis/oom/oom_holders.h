// Who held the memory of each line when it ran out: what the helper inside a Python process said of
// blocks that were live at that moment. It looks at the error itself, while the frames still stand.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_OOM_HOLDERS_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_OOM_HOLDERS_H

#include <cstdint>
#include <string>
#include <vector>

#include "diagnosis/leaks/holders.h"
#include "replay/state.h"
#include "trace/recording.h"

namespace vramtrack {

struct SiteHolder {
  std::string chain;     // "train.py:12 main(): trainer.history[17]"
  uint64_t said = 0;     // of how many blocks, but for the numbers in it
  uint64_t time_ns = 0;  // when it was last said
  bool at_oom = false;   // at the error; else before or after it, of blocks that were live at it
};

class OomHolders {
 public:
  // `state` is that at the event `oom`.
  OomHolders(const Recording& recording, const Event& oom, const MemoryState& state,
             int16_t device);

  // Of the site whose blocks these stacks made, most often said first. Where something was said at
  // the error, nothing of another time.
  [[nodiscard]] std::vector<SiteHolder> of(const std::vector<StackId>& stacks) const;

 private:
  std::vector<Holder> at_oom_;
  std::vector<Holder> at_other_times_;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_OOM_HOLDERS_H
