// vramtrack.<script or program>[.rank<N>].<host>.<pid>.<start>.vrt, and who is told about it.
#ifndef VRAMTRACK_TRACER_RECORD_FILE_NAME_H
#define VRAMTRACK_TRACER_RECORD_FILE_NAME_H

#include <string_view>

#include "record/text.h"

namespace vramtrack {

// The absolute path to try next; attempts beyond 0 follow names that existed.
void choose_file_name(Text& path, unsigned attempt);

// Points the `latest` link beside the file at it, and tells `vramtrack run`.
void announce_file(const char* path);

// argv of this process as the kernel has it, NUL-separated. Read once.
std::string_view command_line();

// What a command line runs: the script or module of a Python, the program otherwise.
void program_name(std::string_view arguments, Text& name);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_FILE_NAME_H
