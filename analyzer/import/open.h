// Opens whatever a person brings: a trace of our own, or a PyTorch snapshot as a pickle or as JSON,
// packed or not. The content decides, not the name.
#ifndef VRAMTRACK_ANALYZER_IMPORT_OPEN_H
#define VRAMTRACK_ANALYZER_IMPORT_OPEN_H

#include <filesystem>
#include <memory>

#include "trace/recording.h"

namespace vramtrack {

// Throws InputError, whose message names the file, what was found in it and what is accepted.
std::unique_ptr<Recording> open_recording(const std::filesystem::path& path);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_IMPORT_OPEN_H
