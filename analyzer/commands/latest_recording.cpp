#include "commands/latest_recording.h"

#include <optional>
#include <system_error>

#include "trace/input_error.h"

namespace vramtrack {

std::filesystem::path recording_or_latest(const std::string& named,
                                          const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  if (!named.empty()) return named;
  std::error_code ignored;
  fs::path link = folder / "vramtrack.latest.vrt";
  if (fs::exists(link, ignored)) return link;

  std::optional<fs::path> newest;
  fs::file_time_type newest_time{};
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("vramtrack.") || !name.ends_with(".vrt")) continue;
    const fs::file_time_type time = entry.last_write_time(ignored);
    if (ignored || (newest && time <= newest_time)) continue;
    newest = entry.path();
    newest_time = time;
  }
  if (!newest) {
    throw InputError(
        "no trace in this folder; name one, or make one with `vramtrack run -- PROGRAM`");
  }
  return *newest;
}

}  // namespace vramtrack
