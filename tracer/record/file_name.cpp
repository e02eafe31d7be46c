#include "record/file_name.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "record/config.h"
#include "record/slice.h"
#include "record/system_files.h"

namespace vramtrack {
namespace {

constinit char g_arguments[128 * 1024] = {};
constinit size_t g_arguments_size = 0;

std::string_view base_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : slice(path, slash + 1);
}

std::string_view next_argument(std::string_view& rest) {
  const size_t end = rest.find('\0');
  const std::string_view argument = slice(rest, 0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return argument;
}

// Only what is harmless in a file name, on a command line and between the dots of ours.
void add_clean(Text& out, std::string_view name) {
  for (const char c : slice(name, 0, 64)) {
    const bool keep = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '-' || c == '+' || c == '.';
    out.add(std::string_view(keep ? &c : "_", 1));
  }
}

const char* rank_of_job() {
  for (const char* name : {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return value;
  return nullptr;
}

// UTC, so that no time zone file is read.
void add_start_time(Text& out) {
  const time_t now = time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  out.add_padded(static_cast<uint64_t>(parts.tm_year) + 1900, 4)
      .add_padded(static_cast<uint64_t>(parts.tm_mon) + 1, 2)
      .add_padded(static_cast<uint64_t>(parts.tm_mday), 2)
      .add("T")
      .add_padded(static_cast<uint64_t>(parts.tm_hour), 2)
      .add_padded(static_cast<uint64_t>(parts.tm_min), 2)
      .add_padded(static_cast<uint64_t>(parts.tm_sec), 2)
      .add("Z");
}

void add_own_name(Text& path, unsigned attempt) {
  path.add("vramtrack.");
  program_name(command_line(), path);
  if (const char* rank = rank_of_job()) {
    path.add(".rank");
    add_clean(path, rank);
  }
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  path.add(".");
  add_clean(path, slice(std::string_view(host), 0, std::string_view(host).find('.')));
  path.add(".").add(static_cast<uint64_t>(getpid())).add(".");
  add_start_time(path);
  if (attempt != 0) path.add("-").add(uint64_t{attempt});
  path.add(".vrt");
}

void add_absolute(Text& path, std::string_view given) {
  if (given.empty() || given[0] != '/') {
    char current[4096];
    if (getcwd(current, sizeof current) != nullptr) path.add(current).add("/");
  }
  path.add(given);
}

bool is_folder(const char* path) {
  struct stat status {};
  return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

// A file that -o named belongs to the first process of the job; the others put their pid before
// its ending.
void add_given_name(Text& path, std::string_view given, unsigned attempt) {
  if (attempt == 0) {
    add_absolute(path, given);
    return;
  }
  const std::string_view ending = ".vrt";
  const bool has_ending =
      given.size() > ending.size() && slice(given, given.size() - ending.size()) == ending;
  add_absolute(path, has_ending ? slice(given, 0, given.size() - ending.size()) : given);
  path.add(".").add(static_cast<uint64_t>(getpid()));
  if (attempt > 1) path.add("-").add(uint64_t{attempt});
  path.add(ending);
}

void update_latest_link(const char* path) {
  const std::string_view whole(path);
  const size_t slash = whole.rfind('/');
  if (slash == std::string_view::npos) return;
  FixedText<4160> link;
  FixedText<4160> temporary;
  link.add(slice(whole, 0, slash + 1)).add("vramtrack.latest.vrt");
  temporary.add(link.view()).add(".").add(static_cast<uint64_t>(getpid()));
  if (link.full() || temporary.full()) return;
  // A user's own file of that name is not ours to replace.
  struct stat status {};
  if (lstat(link.c_str(), &status) == 0 && !S_ISLNK(status.st_mode)) return;
  unlink(temporary.c_str());
  if (symlink(path + slash + 1, temporary.c_str()) != 0) return;
  if (rename(temporary.c_str(), link.c_str()) != 0) unlink(temporary.c_str());
}

}  // namespace

std::string_view command_line() {
  if (g_arguments_size == 0)
    g_arguments_size = read_system_file("/proc/self/cmdline", g_arguments, sizeof g_arguments);
  return {g_arguments, g_arguments_size};
}

void program_name(std::string_view arguments, Text& name) {
  const std::string_view program = base_name(next_argument(arguments));
  if (slice(program, 0, 6) != "python") {
    add_clean(name, program.empty() ? "program" : program);
    return;
  }
  while (!arguments.empty()) {
    std::string_view argument = next_argument(arguments);
    if (argument == "-m") {
      add_clean(name, next_argument(arguments));
      return;
    }
    if (argument == "-c" || argument == "-") break;
    if (argument == "-X" || argument == "-W") next_argument(arguments);
    if (argument.empty() || argument[0] == '-') continue;
    argument = base_name(argument);
    const bool ends_in_py =
        argument.size() > 3 && slice(argument, argument.size() - 3) == std::string_view(".py");
    add_clean(name, ends_in_py ? slice(argument, 0, argument.size() - 3) : argument);
    return;
  }
  add_clean(name, program);
}

void choose_file_name(Text& path, unsigned attempt) {
  path.clear();
  const char* given = config().output;
  if (given == nullptr) {
    add_absolute(path, "");
    add_own_name(path, attempt);
    return;
  }
  const std::string_view output(given);
  if (output.back() == '/' || is_folder(given)) {
    add_absolute(path, output);
    if (output.back() != '/') path.add("/");
    add_own_name(path, attempt);
    return;
  }
  add_given_name(path, output, attempt);
}

void announce_file(const char* path) {
  update_latest_link(path);
  if (config().job_list == nullptr) return;
  const int list = open(config().job_list, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (list < 0) return;
  FixedText<4200> line;
  line.add(path).add("\n");
  const ssize_t ignored = write(list, line.c_str(), line.size());
  static_cast<void>(ignored);
  close(list);
}

}  // namespace vramtrack
