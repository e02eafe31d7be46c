#include "commands/run_job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "trace/input_error.h"

namespace fs = std::filesystem;

namespace vramtrack {
namespace {

volatile pid_t g_program = 0;

void forward(int signal) {
  if (g_program > 0) kill(g_program, signal);
}

void ignore(int) {
}

// From the terminal these reach the program anyway, and it decides; others come to us alone.
constexpr int kFromTerminal[] = {SIGINT, SIGQUIT};
constexpr int kForwarded[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

void print_to(const fs::path& log) {
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return;
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
}

[[noreturn]] void become(const std::vector<std::string>& command, const Variables& variables,
                         const fs::path& log) {
  if (!log.empty()) print_to(log);
  // Handlers are reset by exec; what the user had ignored stays ignored.
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  const int error = errno;
  fmt::print(stderr, "vramtrack: cannot start {}: {}\n", command[0], std::strerror(error));
  _exit(error == ENOENT ? 127 : 126);
}

}  // namespace

JobList::JobList() {
  path_ = (fs::temp_directory_path() / "vramtrack-job-XXXXXX").string();
  const int file = mkstemp(path_.data());
  if (file < 0)
    throw InputError(fmt::format("cannot make a file in {}: {}; set TMPDIR",
                                 fs::temp_directory_path().string(), std::strerror(errno)));
  close(file);
}

JobList::~JobList() {
  unlink(path_.c_str());
}

std::vector<fs::path> JobList::traces() const {
  std::vector<fs::path> traces;
  std::ifstream list(path_);
  for (std::string line; std::getline(list, line);)
    if (!line.empty()) traces.emplace_back(line);
  return traces;
}

int run_program(const std::vector<std::string>& command, const Variables& variables,
                const fs::path& log) {
  for (const int signal : kFromTerminal) handle(signal, ignore);
  for (const int signal : kForwarded) handle(signal, forward);
  std::fflush(nullptr);
  const pid_t program = fork();
  if (program < 0)
    throw InputError(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (program == 0) become(command, variables, log);
  g_program = program;
  int status = 0;
  while (waitpid(program, &status, 0) < 0 && errno == EINTR) {
  }
  g_program = 0;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace vramtrack
