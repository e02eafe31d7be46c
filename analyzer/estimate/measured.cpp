#include "estimate/measured.h"

#include "attribution/rules.h"
#include "replay/timeline.h"
#include "trace/input_error.h"

namespace vramtrack {

Measured measure_recording(const Recording& recording, int16_t wanted) {
  const Timeline timeline = survey(recording);
  const DeviceTimeline* course = nullptr;
  for (const auto& [ordinal, device] : timeline.devices) {
    if (wanted >= 0 ? ordinal != wanted : ordinal < 0) continue;
    if (course == nullptr || device.most_allocated > course->most_allocated) course = &device;
  }
  if (course == nullptr)
    throw InputError(recording.info().path + ": no GPU memory to compare with");
  const MemoryState state = state_at(recording, course->allocated_peak);
  const Scene scene(recording, timeline, state);
  Measured measured;
  measured.of = recording.info().path;
  measured.peak = static_cast<Bytes>(course->most_allocated);
  state.for_each_live(course->device, [&](const Block& block) {
    // What the allocator rounded up is a row of its own: no formula of a model knows it.
    measured.categories[judge(block, scene).row()] +=
        static_cast<Bytes>(block.size - block.rounding());
    if (block.rounding() != 0)
      measured.categories["rounding"] += static_cast<Bytes>(block.rounding());
  });
  return measured;
}

}  // namespace vramtrack
