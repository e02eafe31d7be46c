// A PyTorch snapshot as a recording: first the state in which its trace begins, marked as
// reconstructed, then every entry of every device, merged by time.
#ifndef VRAMTRACK_ANALYZER_IMPORT_SNAPSHOT_RECORDING_H
#define VRAMTRACK_ANALYZER_IMPORT_SNAPSHOT_RECORDING_H

#include <filesystem>
#include <memory>
#include <vector>

#include "import/byte_source.h"
#include "import/history.h"
#include "import/snapshot.h"
#include "trace/recording.h"

namespace vramtrack {

class SnapshotRecording : public Recording {
 public:
  enum class Encoding { pickle, json };
  // Reads all of `source`. Throws InputError.
  SnapshotRecording(ByteSource& source, Encoding encoding, const std::filesystem::path& path);

  void for_each(const std::function<bool(const Event&)>& visit) const override;

  // The moment at which the snapshot was taken, as it says itself, and what each device's trace
  // tells of its beginning.
  [[nodiscard]] const Snapshot& snapshot() const { return snapshot_; }
  [[nodiscard]] const std::vector<DeviceHistory>& histories() const { return histories_; }
  [[nodiscard]] const AllocatorSettings& settings() const { return settings_; }

 private:
  void reconstruct_all();
  void find_start();
  void explain();
  void explain_history(const DeviceHistory& history);
  bool visit_beginning(Event& event, const std::function<bool(const Event&)>& visit) const;
  Event event_of(const SnapshotEntry& entry, int16_t device) const;
  [[nodiscard]] uint64_t pool_object(uint32_t pool) const;
  [[nodiscard]] uint64_t time_ns(uint64_t time_us) const;

  Snapshot snapshot_;
  AllocatorSettings settings_;
  std::vector<DeviceHistory> histories_;  // ascending devices
  uint64_t start_us_ = 0;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_IMPORT_SNAPSHOT_RECORDING_H
