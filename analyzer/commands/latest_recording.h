// The recording a command works on when none is named.
#ifndef VRAMTRACK_ANALYZER_COMMANDS_LATEST_RECORDING_H
#define VRAMTRACK_ANALYZER_COMMANDS_LATEST_RECORDING_H

#include <filesystem>
#include <string>

namespace vramtrack {

// `named`, or where it is empty what the link vramtrack.latest.vrt points at, or the newest
// vramtrack.*.vrt of the folder. Throws InputError where there is none.
std::filesystem::path recording_or_latest(const std::string& named,
                                          const std::filesystem::path& folder = ".");

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_COMMANDS_LATEST_RECORDING_H
