// What every report asks: what is this block, at this moment?
//
// Made once for all moments that will be looked at, so that whatever evidence needs a pass over the
// recording is gathered in one.
#ifndef VRAMTRACK_ANALYZER_ATTRIBUTION_ATTRIBUTOR_H
#define VRAMTRACK_ANALYZER_ATTRIBUTION_ATTRIBUTOR_H

#include <vector>

#include "attribution/rules.h"

namespace vramtrack {

class Attributor {
 public:
  Attributor(const Recording& recording, const Timeline& timeline,
             const std::vector<Moment>& moments);

  // `state` is the state at `moment`, one of those given above; `block` lives in it.
  [[nodiscard]] Verdict judge(const Block& block, const MemoryState& state,
                              const Moment& moment) const;

 private:
  const Recording& recording_;
  const Timeline& timeline_;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_ATTRIBUTION_ATTRIBUTOR_H
