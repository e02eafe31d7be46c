// What was measured from outside the ledgers, per device.
#ifndef VRAMTRACK_ANALYZER_REPLAY_MEASUREMENTS_H
#define VRAMTRACK_ANALYZER_REPLAY_MEASUREMENTS_H

#include <map>

#include "replay/state.h"

namespace vramtrack {

class Measurements {
 public:
  void sample(const Event& event, const DeviceTotals& ledger);
  void process_sample(const Event& event);
  [[nodiscard]] Outside outside(int16_t device) const;

 private:
  struct OfDevice {
    Measurement first;
    Measurement last;
  };
  std::map<int16_t, OfDevice> devices_;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPLAY_MEASUREMENTS_H
