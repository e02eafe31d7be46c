// A recording: what every command works on, whether it came from our own shim or from a snapshot
// that PyTorch wrote. Events in order, what their ids mean, and what is known of the run.
//
// trace/ and import/ each produce one; replay/ and everything after it consume it. A recording is
// read-only and may be passed over any number of times; each pass streams, none keeps the events.
#ifndef VRAMTRACK_ANALYZER_TRACE_RECORDING_H
#define VRAMTRACK_ANALYZER_TRACE_RECORDING_H

#include <vramtrack/trace_format.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace vramtrack {

struct Frame {
  std::string function;  // demangled; "??" where nothing is known
  std::string file;      // source file, or the module's path where there is no debug information
  uint32_t line = 0;     // 0 unknown
  bool python = false;
  bool inlined = false;
  std::string module;  // the mapped file a native frame lies in
};

using FrameId = uint32_t;
using StackId = uint32_t;   // 0: no stack was taken
using StringId = uint32_t;  // 0: the empty string

// A kernel and the device addresses that launches of it were given, in the order of its parameters.
struct KernelAccess {
  StringId kernel = 0;
  uint32_t flags = 0;               // AccessFlag
  std::vector<uint64_t> addresses;  // different ones
  std::vector<uint16_t> words;      // of the parameters, in which each stands first
};

// What the ids in events mean. Ids are those of the events of the same recording.
class Definitions {
 public:
  Definitions();

  [[nodiscard]] std::string_view string(StringId id) const;
  // Frames, innermost first. Empty for 0 and for ids that the recording never defined.
  [[nodiscard]] std::span<const FrameId> stack(StackId id) const;
  [[nodiscard]] const Frame& frame(FrameId id) const { return frames_[id]; }
  [[nodiscard]] size_t stack_count() const { return stacks_.size(); }
  [[nodiscard]] std::string_view thread_name(uint32_t thread) const;
  // Of Event::extra of a kernel_access; nullptr for 0 and for ids that the recording never defined.
  [[nodiscard]] const KernelAccess* access(uint64_t id) const;

  // For readers and importers.
  StringId intern(std::string_view text);  // a new or known id of this recording
  FrameId intern_frame(const Frame& frame);
  StackId intern_stack(std::span<const FrameId> frames);
  void define_string(StringId id, std::string_view text);  // with the file's own id
  void define_stack(StackId id, std::vector<FrameId> frames);
  void define_thread(uint32_t thread, std::string_view name);
  void define_access(uint32_t id, KernelAccess access);

 private:
  std::unordered_map<StringId, std::string> strings_;
  std::unordered_map<std::string, StringId> string_ids_;
  std::unordered_map<StackId, std::vector<FrameId>> stacks_;
  std::unordered_map<std::string, StackId> stack_ids_;
  std::vector<Frame> frames_;
  std::unordered_map<std::string, FrameId> frame_ids_;
  std::unordered_map<uint32_t, std::string> thread_names_;
  std::unordered_map<uint64_t, KernelAccess> accesses_;
  StringId next_string_ = 1;
  StackId next_stack_ = 1;
};

struct DeviceInfo {
  int16_t ordinal = 0;
  std::string name;          // empty where unknown
  uint64_t total_bytes = 0;  // 0 unknown
};

// What the reader found of the file itself. All zero but `chunks` for an undamaged one.
struct Integrity {
  uint64_t chunks = 0;            // that hold events or definitions
  uint64_t duplicate_chunks = 0;  // written twice by a kill; counted once
  uint64_t corrupt_chunks = 0;    // checksum or records are wrong: their events are lost
  uint64_t corrupt_bytes = 0;     // skipped between frames
  uint64_t truncated_bytes = 0;   // at the end: a frame that was being written
};

// Where a ring recording begins: what came before is known by what it left behind.
struct RingBeginning {
  uint64_t sequence = 0;  // of the first event that is there: so many less one are gone
  uint64_t time_ns = 0;
  bool complete = true;  // false: what was live at the beginning is known in part
};

struct RecordingInfo {
  enum class Source { trace, snapshot };
  Source source = Source::trace;
  std::string path;
  std::string format;  // "vramtrack 1", "PyTorch snapshot (2.x)" ...
  std::vector<std::string> command;
  std::string host;
  uint64_t pid = 0;
  uint64_t start_realtime_ns = 0;
  std::string tool_version;
  bool simulated = false;          // ran on the simulated GPU
  bool running = false;            // its process is there, on this machine
  std::optional<uint64_t> end_ns;  // when it finished, since the start, where the file says so
  bool finished = true;            // false: killed, or still running
  std::string allocator_settings;  // PYTORCH_ALLOC_CONF as it was in force
  std::vector<DeviceInfo> devices;
  uint64_t event_count = 0;  // 0 unknown: for progress bars
  uint64_t dropped_events = 0;
  uint64_t sample_bytes = 0;          // blocks are sampled, one in so many bytes; 0: all are there
  std::optional<RingBeginning> ring;  // earlier events were overwritten
  Integrity integrity;
  // Everything else the header or the snapshot said: rank variables, versions, settings.
  std::vector<std::pair<std::string, std::string>> metadata;
  // What the reader must be told: "the ring buffer lost its beginning", "symbols are missing" ...
  std::vector<std::string> notes;
};

class Recording {
 public:
  Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  virtual ~Recording() = default;

  // Calls `visit` for each event in order of its sequence number until it returns false. Throws
  // InputError where the file turns out to be bad beyond repair.
  virtual void for_each(const std::function<bool(const Event&)>& visit) const = 0;

  [[nodiscard]] const RecordingInfo& info() const { return info_; }
  [[nodiscard]] const Definitions& definitions() const { return definitions_; }

 protected:
  RecordingInfo info_;
  Definitions definitions_;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_TRACE_RECORDING_H
