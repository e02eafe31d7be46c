#include "commands/run_environment.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "trace/input_error.h"

namespace fs = std::filesystem;

namespace vramtrack {
namespace {

// Installed, the command is in bin/ beside lib/; in a build tree it is where it was linked.
fs::path find_beside_us(const std::vector<std::string>& places, std::string_view what) {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  for (const std::string& place : places) {
    std::error_code missing;
    fs::path found = fs::canonical(here / place, missing);
    if (!missing) return found;
  }
  throw InputError(fmt::format("{} is missing beside {}; install vramtrack again", what,
                               (here / "vramtrack").string()));
}

fs::path find_tracer() {
  if (const char* given = std::getenv("VRAMTRACK_LIBRARY")) return given;
  return find_beside_us({"../lib/libvramtrack.so", "../lib64/libvramtrack.so",
                         "../lib/x86_64-linux-gnu/libvramtrack.so", "../../tracer/libvramtrack.so"},
                        "libvramtrack.so");
}

fs::path find_simulated_gpu() {
  if (const char* given = std::getenv("VRAMTRACK_SIMGPU")) return given;
  return find_beside_us({"../lib/vramtrack/simgpu", "../lib64/vramtrack/simgpu",
                         "../lib/x86_64-linux-gnu/vramtrack/simgpu", "../../lib/simgpu"},
                        "the simulated GPU (lib/vramtrack/simgpu)");
}

// The stand-ins by their sonames. The driver first, and of two major versions the newer: they carry
// the same code, and what differs between versions is bound by its version.
std::vector<fs::path> stand_ins(const fs::path& folder) {
  std::vector<fs::path> libraries;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    const size_t so = name.find(".so.");
    if (so != std::string::npos && name.find('.', so + 4) == std::string::npos)
      libraries.push_back(entry.path());
  }
  const auto rank = [](const fs::path& path) {
    const std::string name = path.filename();
    return std::make_pair(name != "libcuda.so.1", -std::atoi(path.extension().c_str() + 1));
  };
  std::sort(libraries.begin(), libraries.end(), [&](const fs::path& a, const fs::path& b) {
    return std::make_pair(rank(a), a) < std::make_pair(rank(b), b);
  });
  return libraries;
}

fs::path find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    fs::path candidate = fs::path(folder.empty() ? "." : folder) / name;
    std::error_code ignored;
    if (fs::is_regular_file(candidate, ignored)) return candidate;
  }
  return name;
}

bool read_at(std::ifstream& file, uint64_t offset, void* to, size_t size) {
  file.seekg(static_cast<std::streamoff>(offset));
  return static_cast<bool>(file.read(static_cast<char*>(to), static_cast<std::streamsize>(size)));
}

// A sanitizer's runtime insists on being the first library of a program that is linked to it: the
// names of those that `program` needs.
std::vector<std::string> needed_sanitizers(const fs::path& program) {
  std::ifstream file(program, std::ios::binary);
  Elf64_Ehdr header{};
  if (!read_at(file, 0, &header, sizeof header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr))
    return {};
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!read_at(file, header.e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr)))
    return {};
  const auto file_offset = [&](uint64_t address) -> uint64_t {
    for (const Elf64_Phdr& s : segments)
      if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz)
        return address - s.p_vaddr + s.p_offset;
    return 0;
  };
  std::vector<Elf64_Dyn> dynamic;
  for (const Elf64_Phdr& s : segments) {
    if (s.p_type != PT_DYNAMIC || s.p_filesz > 1 << 20) continue;
    dynamic.resize(s.p_filesz / sizeof(Elf64_Dyn));
    if (!read_at(file, s.p_offset, dynamic.data(), dynamic.size() * sizeof(Elf64_Dyn))) return {};
  }
  uint64_t strings = 0;
  for (const Elf64_Dyn& entry : dynamic)
    if (entry.d_tag == DT_STRTAB) strings = file_offset(entry.d_un.d_ptr);
  std::vector<std::string> found;
  for (const Elf64_Dyn& entry : dynamic) {
    if (entry.d_tag != DT_NEEDED) continue;
    char name[64] = {};
    file.clear();
    read_at(file, strings + entry.d_un.d_val, name, sizeof name - 1);
    if (std::strncmp(name, "libasan.so", 10) == 0 || std::strncmp(name, "libtsan.so", 10) == 0)
      found.emplace_back(name);
  }
  return found;
}

std::string preload_list(const RunOptions& options) {
  std::vector<std::string> libraries = needed_sanitizers(find_program(options.command.front()));
  libraries.push_back(find_tracer());
  if (const char* own = std::getenv("LD_PRELOAD"); own != nullptr && *own != '\0')
    libraries.emplace_back(own);
  if (!options.simulate.empty())
    for (const fs::path& library : stand_ins(find_simulated_gpu())) libraries.push_back(library);
  for (const std::string& library : libraries)
    if (library.find(' ') != std::string::npos)
      throw InputError(
          fmt::format("the loader cannot preload {}: its path holds a space", library));
  return fmt::format("{}", fmt::join(libraries, ":"));
}

constexpr int kStepsOfARehearsal = 3;

}  // namespace

int steady_steps(const RunOptions& options) {
  if (options.stop_after_steps >= 0) return options.stop_after_steps;
  const char* variable = std::getenv("VRAMTRACK_STOP_AFTER_STEPS");
  if (variable == nullptr || *variable == '\0')
    return options.simulate.empty() ? 0 : kStepsOfARehearsal;
  char* end = nullptr;
  const long steps = std::strtol(variable, &end, 10);
  if (*end != '\0' || steps < 0 || steps > 1'000'000'000)
    throw InputError(fmt::format(
        "VRAMTRACK_STOP_AFTER_STEPS={} is no number of steps; 0 never stops", variable));
  return static_cast<int>(steps);
}

Variables run_environment(const RunOptions& options, const std::string& job_list) {
  Variables variables = {{"LD_PRELOAD", preload_list(options)},
                         {"VRAMTRACK_JOB", job_list},
                         {"VRAMTRACK_OUTPUT", options.output},
                         {"VRAMTRACK_STACKS", options.stacks},
                         {"VRAMTRACK_KERNELS", options.kernels}};
  if (options.cpu) variables.emplace_back("VRAMTRACK_CPU", "on");
  variables.emplace_back("VRAMTRACK_STOP_AFTER_STEPS", std::to_string(steady_steps(options)));
  if (options.ring_bytes != 0)
    variables.emplace_back("VRAMTRACK_RING", std::to_string(options.ring_bytes));
  if (options.sample_bytes != 0)
    variables.emplace_back("VRAMTRACK_SAMPLE", std::to_string(options.sample_bytes));
  // The variable may name a library instead: then it stays.
  if (options.cupti && std::getenv("VRAMTRACK_CUPTI") == nullptr)
    variables.emplace_back("VRAMTRACK_CUPTI", "on");
  if (options.simulate.empty()) return variables;
  variables.emplace_back("SIMGPU", options.simulate);
  variables.emplace_back("VRAMTRACK_SIMULATED", "1");
  if (!options.events.empty()) variables.emplace_back("SIMGPU_EVENTS", options.events);
  // A rehearsal computes nothing worth keeping: it must neither publish results nor fetch models.
  for (const char* offline : {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"})
    variables.emplace_back(offline, "1");
  variables.emplace_back("WANDB_MODE", "disabled");
  // Files that are older than the rehearsal stay as they are, but for these folders.
  if (!options.allow_writes.empty()) {
    std::vector<std::string> folders;
    for (const std::string& folder : options.allow_writes)
      folders.push_back(fs::absolute(folder).lexically_normal());
    variables.emplace_back("VRAMTRACK_ALLOW_WRITES", fmt::format("{}", fmt::join(folders, ":")));
  }
  // torch.compile looks for libcuda.so here, and else where ldconfig knows of one.
  variables.emplace_back("TRITON_LIBCUDA_PATH", find_simulated_gpu());
  return variables;
}

}  // namespace vramtrack
