// Runs a program to its end and hands back what is left of it: its exit code and its traces.
#ifndef VRAMTRACK_ANALYZER_COMMANDS_RUN_JOB_H
#define VRAMTRACK_ANALYZER_COMMANDS_RUN_JOB_H

#include <filesystem>
#include <string>
#include <vector>

#include "commands/run_environment.h"

namespace vramtrack {

// The file by which traced processes say which traces they write. Removed with the object.
class JobList {
 public:
  JobList();
  ~JobList();
  JobList(const JobList&) = delete;
  JobList& operator=(const JobList&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::vector<std::filesystem::path> traces() const;

 private:
  std::string path_;
};

// The program's exit code, 128 + signal where one ended it, 126 or 127 where it could not be
// started. Signals that we get meanwhile reach the program too.
// With a `log` what the program prints goes there.
int run_program(const std::vector<std::string>& command, const Variables& variables,
                const std::filesystem::path& log = {});

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_COMMANDS_RUN_JOB_H
