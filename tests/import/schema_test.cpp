// Every way in which a snapshot has been written, and what is no snapshot at all.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "import/open.h"
#include "import/snapshot_recording.h"
#include "pickle_program.h"
#include "trace/input_error.h"

namespace vramtrack {
namespace {

using Catch::Matchers::Contains;

const std::filesystem::path kSnapshots = std::filesystem::path(VRAMTRACK_TEST_DATA) / "snapshots";

std::vector<Event> events_of(const Recording& recording) {
  std::vector<Event> events;
  recording.for_each([&](const Event& event) {
    events.push_back(event);
    return true;
  });
  return events;
}

bool same(const Event& a, const Event& b) {
  return a.kind == b.kind && a.device == b.device && a.sequence == b.sequence &&
         a.time_ns == b.time_ns && a.stream == b.stream && a.address == b.address &&
         a.size == b.size && a.requested == b.requested && a.object == b.object &&
         a.flags == b.flags;
}

// A file of this test, removed at its end.
class File {
 public:
  explicit File(std::string_view content, std::string_view name = "input") {
    path_ = std::filesystem::temp_directory_path() /
            ("vramtrack-import-test-" + std::to_string(getpid()) + "-" + std::string(name));
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::unique_ptr<SnapshotRecording> open_json(std::string_view text) {
  const File file(text);
  auto recording = open_recording(file.path());
  return std::unique_ptr<SnapshotRecording>(dynamic_cast<SnapshotRecording*>(recording.release()));
}

std::string open_refusal(std::string_view content) {
  const File file(content);
  try {
    open_recording(file.path());
    return "";
  } catch (const InputError& error) {
    REQUIRE_THAT(error.what(), Contains(file.path().string()));
    return error.what();
  }
}

}  // namespace

TEST_CASE("the same snapshot in every encoding gives the same recording") {
  const auto reference = open_recording(kSnapshots / "mostly-cached.pickle.zst");
  const std::vector<Event> wanted = events_of(*reference);
  REQUIRE(wanted.size() > 2375);
  size_t encodings = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kSnapshots / "encodings")) {
    INFO(entry.path());
    const auto recording = open_recording(entry.path());
    const std::vector<Event> events = events_of(*recording);
    REQUIRE(events.size() == wanted.size());
    for (size_t i = 0; i < events.size(); ++i) {
      REQUIRE(same(events[i], wanted[i]));
      const auto frames = recording->definitions().stack(events[i].stack);
      const auto wanted_frames = reference->definitions().stack(wanted[i].stack);
      REQUIRE(frames.size() == wanted_frames.size());
      for (size_t f = 0; f < frames.size(); ++f) {
        const Frame& frame = recording->definitions().frame(frames[f]);
        const Frame& wanted_frame = reference->definitions().frame(wanted_frames[f]);
        REQUIRE(frame.function == wanted_frame.function);
        REQUIRE(frame.line == wanted_frame.line);
      }
    }
    REQUIRE(recording->info().notes == reference->info().notes);
    ++encodings;
  }
  REQUIRE(encodings == 8);
}

TEST_CASE("blocks of 1.13 have a history and no address") {
  const auto recording = open_json(R"([{"device": 2, "address": 4096, "total_size": 2097152,
    "allocated_size": 1536, "active_size": 1536, "stream": 7, "segment_type": "small", "blocks": [
    {"size": 512, "state": "inactive"},
    {"size": 1024, "state": "active_allocated", "history": [
      {"addr": 4608, "real_size": 900, "frames": [{"name": "f", "filename": "a.py", "line": 3}]},
      {"addr": 4608, "real_size": 700, "frames": []}]},
    {"size": 512, "state": "active_awaiting_free", "history": []},
    {"size": 2095104, "state": "inactive"}]}])");
  const auto events = events_of(*recording);
  REQUIRE(events.size() == 4);
  REQUIRE(events[0].kind == EventKind::segment_alloc);
  REQUIRE(events[1].address == 4096 + 512);
  REQUIRE(events[1].requested == 900);
  REQUIRE(events[1].size == 1024);
  REQUIRE(events[1].stream == 7);
  REQUIRE(recording->definitions().stack(events[1].stack).size() == 1);
  REQUIRE(events[2].address == 4096 + 1536);
  REQUIRE(events[3].kind == EventKind::block_free);
  REQUIRE((events[3].flags & kEventPendingFree) != 0);
}

TEST_CASE("today's keys are read, tomorrow's are named") {
  const auto recording = open_json(R"({"segments": [{"device": 0, "address": 20971520,
    "total_size": 20971520, "allocated_size": 2097152, "active_size": 2097152, "stream": 0,
    "segment_type": "large", "segment_pool_id": [0, 5], "is_expandable": false, "hue": 1,
    "blocks": [{"address": 20971520, "size": 2097152, "requested_size": 2097152,
    "state": "active_allocated"}, {"address": 23068672, "size": 18874368, "requested_size": 0,
    "state": "inactive"}]}],
    "device_traces": [[
    {"action": "segment_alloc", "addr": 20971520, "size": 20971520, "stream": 0, "time_us": 5,
     "pool_id": [0, 5]},
    {"action": "alloc", "addr": 20971520, "size": 2097152, "stream": 0, "time_us": 5,
     "compile_context": "0/0", "user_metadata": "loss", "internal_metadata": "x", "pool_id": [0, 5]},
    {"action": "teleport", "addr": 1, "size": 1, "stream": 0, "time_us": 6}]],
    "external_annotations": [{"name": "step", "stage": "START", "device": 0, "time_us": 4},
                             {"name": "step", "stage": "END", "device": 0, "time_us": 9}]})");
  const auto events = events_of(*recording);
  REQUIRE(events.size() == 4);
  REQUIRE(events[0].kind == EventKind::annotation_begin);
  REQUIRE(recording->definitions().string(events[0].text) == "step");
  REQUIRE(events[1].kind == EventKind::segment_alloc);
  REQUIRE(events[2].kind == EventKind::block_alloc);
  REQUIRE(events[2].time_ns == 1000);
  REQUIRE(events[2].object == 5);
  REQUIRE((events[2].flags & kEventPrivatePool) != 0);
  REQUIRE(recording->definitions().string(events[2].text) == "loss compile: 0/0");
  REQUIRE(events[3].kind == EventKind::annotation_end);
  const auto& notes = recording->info().notes;
  REQUIRE(notes.size() == 2);
  REQUIRE_THAT(notes[0], Contains("segment hue"));
  REQUIRE_THAT(notes[1], Contains("teleport"));
}

TEST_CASE("events with equal times keep their order on each device") {
  const auto recording = open_json(R"({"segments": [], "device_traces": [
    [{"action": "alloc", "addr": 512, "size": 1, "stream": 0, "time_us": 8},
     {"action": "free_completed", "addr": 512, "size": 1, "stream": 0, "time_us": 8},
     {"action": "alloc", "addr": 512, "size": 2, "stream": 0, "time_us": 8}],
    [{"action": "alloc", "addr": 1024, "size": 3, "stream": 0, "time_us": 7},
     {"action": "free_completed", "addr": 1024, "size": 3, "stream": 0, "time_us": 8}]]})");
  std::vector<uint64_t> order;
  for (const Event& event : events_of(*recording)) order.push_back(event.requested);
  REQUIRE(order == std::vector<uint64_t>{3, 1, 1, 2, 3});
}

TEST_CASE("what is no snapshot is told what it is") {
  REQUIRE_THAT(open_refusal(""), Contains("an empty file"));
  REQUIRE_THAT(open_refusal("PK\x03\x04zzzz"), Contains("a zip archive"));
  REQUIRE_THAT(open_refusal("\x7f"
                            "ELF\x02"),
               Contains("a program or library"));
  REQUIRE_THAT(open_refusal("<html></html>"), Contains("an HTML or XML page"));
  REQUIRE_THAT(open_refusal("hello\n"), Contains("is text"));
  REQUIRE_THAT(open_refusal("{\"traceEvents\": []}"), Contains("a Chrome trace"));
  REQUIRE_THAT(open_refusal("{\"a\": [1,"), Contains("not valid JSON"));
  REQUIRE_THAT(open_refusal("{\"a\": 1}"), Contains("no 'segments'"));
  REQUIRE_THAT(open_refusal("[1, 2]"), Contains("something else than memory segments"));
  REQUIRE_THAT(open_refusal(std::string(100'000, '[')), Contains("nested too deeply"));
  REQUIRE_THAT(open_refusal(PickleProgram().raw("K\x05.").bytes()), Contains("no 'segments'"));
  REQUIRE_THAT(open_refusal(PickleProgram().text("os").text("system").raw("\x93.").bytes()),
               Contains("the global os.system"));
  REQUIRE_THAT(open_refusal(std::string("\x28\xb5\x2f\xfd\x00\x00\x00\x00", 8)),
               Contains("zstd data"));
  REQUIRE_THAT(open_refusal(std::string("\x1f\x8b\x08\x00\x00", 5)), Contains("gzip data"));
}

TEST_CASE("a file that is not there is named") {
  REQUIRE_THROWS_WITH(open_recording("/nowhere/at/all.pickle"),
                      Contains("/nowhere/at/all.pickle") && Contains("cannot be opened"));
  REQUIRE_THROWS_WITH(open_recording("/"), Contains("is a folder"));
}

}  // namespace vramtrack
