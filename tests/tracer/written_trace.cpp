#include "written_trace.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "trace/trace_file.h"

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder(const fs::path& parent) {
  std::string name = ((parent.empty() ? fs::temp_directory_path() : parent) / "record-XXXXXX");
  if (mkdtemp(name.data()) != nullptr) path = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

pid_t start_program(const char* program, const fs::path& folder,
                    const std::vector<std::string>& arguments, const Environment& environment,
                    const std::string& output) {
  std::vector<char*> argv = {const_cast<char*>(program)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  if (chdir(folder.c_str()) != 0) _exit(96);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  const std::string log = output.empty() ? "/dev/null" : (folder / output).string();
  const int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  dup2(fd, STDOUT_FILENO);
  dup2(fd, STDERR_FILENO);
  execv(argv[0], argv.data());
  _exit(95);
}

pid_t start_writer(const fs::path& folder, const std::vector<std::string>& arguments,
                   const Environment& environment, const std::string& output) {
  return start_program(RECORD_WRITER, folder, arguments, environment, output);
}

int run_writer(const fs::path& folder, const std::vector<std::string>& arguments,
               const Environment& environment, const std::string& output) {
  int status = 0;
  waitpid(start_writer(folder, arguments, environment, output), &status, 0);
  return status;
}

std::vector<fs::path> traces_in(const fs::path& folder) {
  std::vector<fs::path> traces;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".vrt" && !entry.is_symlink()) traces.push_back(entry.path());
  std::sort(traces.begin(), traces.end());
  return traces;
}

size_t Contents::count() const {
  size_t total = 0;
  for (const auto& [writer, numbers] : events) total += numbers.size();
  return total;
}

Contents read_contents(const fs::path& trace) {
  Contents contents;
  const auto recording = vramtrack::open_trace(trace);
  contents.dropped = recording->info().dropped_events;
  contents.finished = recording->info().finished;
  uint64_t previous = 0;
  recording->for_each([&](const vramtrack::Event& event) {
    contents.events[event.address >> 32].push_back(event.extra);
    contents.in_order = contents.in_order && event.sequence > previous;
    previous = event.sequence;
    if (recording->definitions().string(event.api).substr(0, 5) != "call ") ++contents.nameless;
    return true;
  });
  return contents;
}

bool is_complete(const std::vector<uint64_t>& numbers, uint64_t least) {
  for (size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] != i + 1) return false;
  return numbers.size() >= least;
}
