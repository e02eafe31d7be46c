#include "replay/measurements.h"

#include <algorithm>

namespace vramtrack {
namespace {

// What a measurement found beyond the ledger, the modules and what a simulated card says of its
// libraries: contexts, and all we cannot see.
int64_t unexplained(const Measurement& measured) {
  return static_cast<int64_t>(measured.used - measured.in_use - measured.modules -
                              measured.libraries);
}

}  // namespace

void Measurements::sample(const Event& event, const DeviceTotals& ledger) {
  if (event.extra == 0 || event.size > event.extra) return;  // total unknown: says nothing
  OfDevice& device = devices_[event.device];
  Measurement now = device.last;
  now.valid = true;
  now.time_ns = event.time_ns;
  now.total = event.extra;
  now.used = event.extra - event.size;
  now.in_use = ledger.in_use;
  now.modules = ledger.modules;
  now.libraries = std::min(event.requested, now.used);
  if (!device.last.valid) device.first = now;
  device.last = now;
}

void Measurements::process_sample(const Event& event) {
  Measurement& last = devices_[event.device].last;
  last.separable = event.size != 0;  // 0: the driver could not tell processes apart
  last.process_used = event.size;
  last.others_used = event.extra;
}

Outside Measurements::outside(int16_t device) const {
  const auto found = devices_.find(device);
  if (found == devices_.end() || !found->second.last.valid) return {};
  const auto& [first, last] = found->second;
  Outside outside;
  outside.measured = true;
  outside.last = last;
  const int64_t baseline = unexplained(first);
  outside.context = baseline > 0 ? static_cast<uint64_t>(baseline) : 0;
  outside.residual = unexplained(last) - static_cast<int64_t>(outside.context);
  return outside;
}

}  // namespace vramtrack
