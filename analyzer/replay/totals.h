// The sums of all devices. Both ledgers write them; in_use, direct and reserved belong to the
// physical side, the others to the blocks.
#ifndef VRAMTRACK_ANALYZER_REPLAY_TOTALS_H
#define VRAMTRACK_ANALYZER_REPLAY_TOTALS_H

#include <deque>
#include <vector>

#include "replay/state.h"

namespace vramtrack {

class Totals {
 public:
  // -1 is the host's CPU tensors.
  DeviceTotals& of(int16_t device) {
    const auto place = static_cast<size_t>(device + 1);
    if (place >= devices_.size()) devices_.resize(place + 1);
    devices_[place].seen = true;
    return devices_[place].totals;
  }
  [[nodiscard]] const DeviceTotals& find(int16_t device) const {
    static const DeviceTotals nothing{};
    const auto place = static_cast<size_t>(known_device(device) + 1);
    return place < devices_.size() ? devices_[place].totals : nothing;
  }
  [[nodiscard]] std::vector<int16_t> seen() const {
    std::vector<int16_t> ordinals;
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (devices_[i].seen) ordinals.push_back(static_cast<int16_t>(static_cast<int>(i) - 1));
    }
    return ordinals;
  }

  HostTotals host;

 private:
  struct Entry {
    DeviceTotals totals;
    bool seen = false;
  };
  std::deque<Entry> devices_;  // references to entries stay valid while it grows
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPLAY_TOTALS_H
