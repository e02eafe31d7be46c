#include "commands/run_outcome.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "symbols/symbolize_trace.h"
#include "trace/input_error.h"
#include "trace/trace_file.h"

namespace fs = std::filesystem;

namespace vramtrack {
namespace {

// Its chunks are frames: the window holds nothing any more, and need not take room on the disk.
void give_back_window(const fs::path& path) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  FileHeader header{};
  if (pread(file, &header, sizeof header, 0) == sizeof header &&
      std::memcmp(header.magic, kFileMagic, sizeof kFileMagic) == 0 &&
      (header.flags & kFileFinished) != 0 && header.slot_count <= kMaxSlotCount)
    fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(header.window_offset),
              static_cast<off_t>(uint64_t{header.slot_bytes} * header.slot_count));
  close(file);
}

uint64_t bytes_on_disk(const fs::path& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? static_cast<uint64_t>(status.st_blocks) * 512 : 0;
}

}  // namespace

// A process of the job may still run: its trace is readable, and named later by `symbolize`.
void RunOutcome::finish(const fs::path& path) {
  try {
    symbolize_trace(path);
  } catch (const InputError&) {
  }
  give_back_window(path);
  try {
    const auto trace = open_trace(path);
    trace->for_each([&](const Event& event) {
      ++events;
      if (event.kind == EventKind::out_of_memory) out_of_memory = event;
      if (event.kind == EventKind::physical_failed) ++refused;
      return true;
    });
    dropped += trace->info().dropped_events;
    bytes += bytes_on_disk(path);
    files.push_back(path);
  } catch (const InputError& error) {
    fmt::print(stderr, "vramtrack: {}\n", error.what());
  }
}

}  // namespace vramtrack
