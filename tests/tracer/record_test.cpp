// The trace file as processes of every kind leave it.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vramtrack/trace_format.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "written_trace.h"

namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Runs record_writer on a file system of its own and copies the traces out of it. False where this
// machine does not let us make one.
bool run_on_small_disk(const fs::path& folder, const std::string& size, const std::string& writer) {
  fs::create_directory(folder / "disk");
  const std::string script =
      "cd '" + folder.string() + "' && mount -t tmpfs -o size=" + size +
      " none disk || exit 77; cd disk; '" RECORD_WRITER "' " + writer +
      " 2>../log; echo \\$? >../code; cp -P vramtrack.*.vrt .. 2>/dev/null; true";
  const int status =
      std::system(("unshare -Urm sh -c \"" + script + "\" 2>/dev/null >/dev/null").c_str());
  if (!fs::exists(folder / "code")) {
    WARN("skipped: no mount namespace here (status " << status << ")");
    return false;
  }
  CHECK(text_of(folder / "code") == "0\n");
  return true;
}

bool exited_with(int status, int code) {
  return WIFEXITED(status) && WEXITSTATUS(status) == code;
}

}  // namespace

TEST_CASE("every event of every thread is in the file, in order") {
  const bool write_mode = GENERATE(false, true);
  const TemporaryFolder folder;
  std::ofstream(folder.path / "progress") << std::string(4096, '\0');
  const Environment mode = write_mode ? Environment{{"VRAMTRACK_WRITE_MODE", "on"}} : Environment{};
  const int status = run_writer(folder.path, {"threads", "6", "20000", "progress"}, mode);
  REQUIRE(exited_with(status, 0));
  const auto traces = traces_in(folder.path);
  REQUIRE(traces.size() == 1);
  const Contents contents = read_contents(traces[0]);
  CHECK(contents.finished);
  CHECK(contents.in_order);
  CHECK(contents.dropped == 0);
  CHECK(contents.nameless == 0);
  CHECK(contents.count() == 6 * 20000);
  for (const auto& [writer, numbers] : contents.events) CHECK(is_complete(numbers, 20000));
}

TEST_CASE("more threads than slots, and threads that end, lose nothing") {
  const TemporaryFolder folder;
  REQUIRE(exited_with(run_writer(folder.path, {"churn", "400", "50"}), 0));
  const auto traces = traces_in(folder.path);
  REQUIRE(traces.size() == 1);
  const Contents contents = read_contents(traces[0]);
  CHECK(contents.dropped == 0);
  CHECK(contents.in_order);
  REQUIRE(contents.events.size() == 400);
  for (const auto& [writer, numbers] : contents.events) CHECK(is_complete(numbers, 50));
}

TEST_CASE("a child of any kind writes a file of its own and leaves the parent's alone") {
  const std::string how = GENERATE("fork", "_Fork", "clone");
  INFO(how);
  const TemporaryFolder folder;
  REQUIRE(exited_with(run_writer(folder.path, {how, "3000"}), 0));
  const auto traces = traces_in(folder.path);
  REQUIRE(traces.size() == 2);
  Contents parent = read_contents(traces[0]);
  Contents child = read_contents(traces[1]);
  if (parent.events.contains(2)) std::swap(parent, child);
  CHECK(parent.events.size() == 2);
  CHECK(is_complete(parent.events[1], 3000));
  CHECK(is_complete(parent.events[3], 3000));
  CHECK(parent.nameless == 0);
  CHECK(child.events.size() == 1);
  CHECK(is_complete(child.events[2], 3000));
  CHECK(child.nameless == 0);
}

TEST_CASE("_exit, abort and exec lose nothing") {
  const std::string how = GENERATE("_exit", "abort", "exec");
  INFO(how);
  const TemporaryFolder folder;
  const int status = run_writer(folder.path, {how, "3000"});
  CHECK((how == "abort" ? WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT
                        : exited_with(status, 0)));
  const auto traces = traces_in(folder.path);
  REQUIRE(traces.size() == 1);
  Contents contents = read_contents(traces[0]);
  CHECK(is_complete(contents.events[1], 3000));
}

TEST_CASE("beyond RLIMIT_FSIZE events are dropped and counted, and the program goes on") {
  const TemporaryFolder folder;
  const uint64_t events = 400'000;
  const int status =
      run_writer(folder.path, {"file-size-limit", "5000", std::to_string(events)}, {}, "log");
  REQUIRE(exited_with(status, 0));
  const auto traces = traces_in(folder.path);
  REQUIRE(traces.size() == 1);
  const Contents contents = read_contents(traces[0]);
  CHECK(contents.dropped > 0);
  CHECK(contents.count() + contents.dropped == events + 1);
  CHECK(contents.nameless == 0);
  CHECK(text_of(folder.path / "log").find("dropped " + std::to_string(contents.dropped)) !=
        std::string::npos);
}

TEST_CASE("no space for the window is one line on stderr, and the program goes on") {
  const TemporaryFolder folder;
  if (!run_on_small_disk(folder.path, "2m", "_exit 10")) return;
  CHECK(traces_in(folder.path).empty());
  const std::string log = text_of(folder.path / "log");
  CHECK(log.find("no space left on the device; nothing is recorded") != std::string::npos);
  CHECK(std::count(log.begin(), log.end(), '\n') == 1);
}

TEST_CASE("on a disk that fills up events are dropped and counted, and the program goes on") {
  const TemporaryFolder folder;
  const uint64_t events = 400'000;
  if (!run_on_small_disk(folder.path, "5m", "file-size-limit 1000000 " + std::to_string(events)))
    return;
  const auto traces = traces_in(folder.path);
  REQUIRE(traces.size() == 1);
  const Contents contents = read_contents(traces[0]);
  CHECK(contents.dropped > 0);
  CHECK(contents.count() + contents.dropped == events + 1);
  CHECK(contents.nameless == 0);
  CHECK(contents.in_order);
}

TEST_CASE("an unwritable folder is one line on stderr, and the program goes on") {
  if (geteuid() == 0) {
    // Root may write anywhere but where nobody can.
    const TemporaryFolder folder;
    REQUIRE(exited_with(
        run_writer(folder.path, {"_exit", "10"}, {{"VRAMTRACK_OUTPUT", "/proc/"}}, "log"), 0));
    const std::string log = text_of(folder.path / "log");
    CHECK(log.find("nothing is recorded") != std::string::npos);
    CHECK(std::count(log.begin(), log.end(), '\n') == 1);
    return;
  }
  const TemporaryFolder folder;
  fs::create_directory(folder.path / "locked");
  chmod((folder.path / "locked").c_str(), 0500);
  const std::string locked = (folder.path / "locked").string();
  REQUIRE(exited_with(
      run_writer(folder.path, {"_exit", "10"}, {{"VRAMTRACK_OUTPUT", locked}}, "log"), 0));
  const std::string log = text_of(folder.path / "log");
  CHECK(log.find("permission denied") != std::string::npos);
  CHECK(std::count(log.begin(), log.end(), '\n') == 1);
}

TEST_CASE("the chunk of an idle thread is sealed while others write") {
  const TemporaryFolder folder;
  const uint64_t events = 1'500'000;  // some 300 chunks
  REQUIRE(exited_with(run_writer(folder.path, {"idle", std::to_string(events)}), 0));
  const auto traces = traces_in(folder.path);
  REQUIRE(traces.size() == 1);
  // What is left in the window is the busy thread's last chunk alone.
  std::ifstream file(traces[0], std::ios::binary);
  vramtrack::FileHeader header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  std::vector<uint64_t> first_sequences;
  for (uint32_t slot = 0; slot < header.slot_count; ++slot) {
    vramtrack::ChunkHeader chunk{};
    file.seekg(static_cast<std::streamoff>(header.window_offset + slot * header.slot_bytes));
    file.read(reinterpret_cast<char*>(&chunk), sizeof chunk);
    if (chunk.magic == vramtrack::kChunkMagic && chunk.used_bytes != 0)
      first_sequences.push_back(chunk.first_sequence);
  }
  REQUIRE(first_sequences.size() == 1);
  CHECK(first_sequences[0] > events / 2);
  Contents contents = read_contents(traces[0]);
  CHECK(is_complete(contents.events[1], 1));
  CHECK(is_complete(contents.events[2], events));
}

TEST_CASE("a program that closes all descriptors keeps its own files, and the trace") {
  const TemporaryFolder folder;
  REQUIRE(exited_with(run_writer(folder.path, {"close-all", "30000"}), 0));
  CHECK(fs::file_size(folder.path / "host-file") == 0);
  const auto traces = traces_in(folder.path);
  REQUIRE(traces.size() == 1);
  Contents contents = read_contents(traces[0]);
  CHECK(is_complete(contents.events[1], 30000));
  CHECK(is_complete(contents.events[2], 30000));
}

TEST_CASE("nothing is written to a file that took the number of stderr") {
  const TemporaryFolder folder;
  REQUIRE(exited_with(run_writer(folder.path, {"own-stderr", "10"}), 0));
  CHECK(fs::file_size(folder.path / "host-file") == 0);
  REQUIRE(traces_in(folder.path).size() == 1);
}

TEST_CASE("names: a given file is never overwritten, a folder gets names with the pid") {
  const TemporaryFolder folder;
  const Environment file{{"VRAMTRACK_OUTPUT", "given.vrt"}};
  REQUIRE(exited_with(run_writer(folder.path, {"_exit", "5"}, file), 0));
  REQUIRE(exited_with(run_writer(folder.path, {"_exit", "7"}, file), 0));
  auto traces = traces_in(folder.path);
  REQUIRE(traces.size() == 2);
  CHECK(fs::exists(folder.path / "given.vrt"));
  CHECK(read_contents(folder.path / "given.vrt").count() == 5);

  REQUIRE(exited_with(run_writer(folder.path, {"_exit", "9"}, {{"RANK", "3"}}), 0));
  const fs::path latest = fs::read_symlink(folder.path / "vramtrack.latest.vrt");
  CHECK(latest.string().find("vramtrack.record_writer.rank3.") == 0);
  CHECK(read_contents(folder.path / latest).count() == 9);
}
