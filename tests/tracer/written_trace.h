// Runs record_writer in a folder of its own and says what the traces it left hold.
#ifndef VRAMTRACK_TESTS_TRACER_WRITTEN_TRACE_H
#define VRAMTRACK_TESTS_TRACER_WRITTEN_TRACE_H

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

struct TemporaryFolder {
  explicit TemporaryFolder(const std::filesystem::path& parent = {});
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::filesystem::path path;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

pid_t start_program(const char* program, const std::filesystem::path& folder,
                    const std::vector<std::string>& arguments, const Environment& environment = {},
                    const std::string& output = "");
pid_t start_writer(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
                   const Environment& environment = {}, const std::string& output = "");
// The status of waitpid().
int run_writer(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
               const Environment& environment = {}, const std::string& output = "");

std::vector<std::filesystem::path> traces_in(const std::filesystem::path& folder);

struct Contents {
  // Of each writer, the numbers of its events in the order of the recording.
  std::map<uint64_t, std::vector<uint64_t>> events;
  uint64_t dropped = 0;
  bool finished = false;
  size_t nameless = 0;   // events whose text the file does not define
  bool in_order = true;  // sequence numbers grow

  [[nodiscard]] size_t count() const;
};

Contents read_contents(const std::filesystem::path& trace);

// 1, 2, ... up to at least `least`, without a gap.
bool is_complete(const std::vector<uint64_t>& numbers, uint64_t least);

#endif  // VRAMTRACK_TESTS_TRACER_WRITTEN_TRACE_H
