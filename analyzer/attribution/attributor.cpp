#include "attribution/attributor.h"

namespace vramtrack {

Attributor::Attributor(const Recording& recording, const Timeline& timeline,
                       const std::vector<Moment>& /*moments*/)
    : recording_(recording), timeline_(timeline) {}

Verdict Attributor::judge(const Block& block, const MemoryState& state,
                          const Moment& /*moment*/) const {
  return vramtrack::judge(
      block, Scene{.recording = recording_, .timeline = timeline_, .state = state});
}

}  // namespace vramtrack
