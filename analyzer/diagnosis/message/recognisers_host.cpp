// Host memory that ran out, memory that host and device share (Jetson), and what only sounds like
// an OOM of the device.
#include <array>

#include "diagnosis/message/recognisers.h"

namespace vramtrack {
namespace {

std::optional<OomMessage> read_cpu_allocator(const Candidate& candidate) {
  const std::string_view window = candidate.window().substr(0, 300);
  if (window.find("memory") == std::string_view::npos) return std::nullopt;
  OomMessage message = message_at(candidate, "PyTorch", "CPU allocator", MessageKind::host);
  if (const auto ask = size_after(window, "triedtoallocate")) {
    message.sizes.emplace(SizeKind::ask, *ask);
  }
  // "Error code 12 (Cannot allocate memory)" belongs to it.
  const size_t tail = window.find("cannotallocatememory");
  message.end = candidate.at + (tail == std::string_view::npos ? 20 : tail + 20);
  return message;
}

std::optional<OomMessage> read_numpy(const Candidate& candidate) {
  const std::string_view window = candidate.window().substr(0, 200);
  if (window.find("foranarraywithshape") == std::string_view::npos) return std::nullopt;
  OomMessage message = message_at(candidate, "NumPy", "array in host memory", MessageKind::host);
  if (const auto ask = size_after(window, "unabletoallocate")) {
    message.sizes.emplace(SizeKind::ask, *ask);
  }
  message.end = candidate.at + 16;
  return message;
}

template <const char* library, const char* form>
std::optional<OomMessage> read_host(const Candidate& candidate) {
  OomMessage message = message_at(candidate, library, form, MessageKind::host);
  message.end = candidate.at + 16;
  return message;
}
constexpr char kWindows[] = "Windows";
constexpr char kPagingFile[] = "commit limit: the paging file is too small";
constexpr char kLinux[] = "Linux";
constexpr char kKilled[] = "killed by the kernel for want of memory";
constexpr char kNoMemory[] = "ENOMEM";
constexpr char kPytorch[] = "PyTorch";
constexpr char kShared[] = "shared memory of the data loader (/dev/shm)";

constexpr char kContainer[] = "Docker/Kubernetes";
constexpr char kContainerKilled[] = "container killed at its memory limit";
constexpr char kSlurm[] = "Slurm";
constexpr char kStepKilled[] = "step killed at the memory that the job asked for";

// "slurmstepd: error: Detected 1 oom_kill event in StepId=123.0. Some of the step tasks have been
// OOM Killed."; older: "... oom-kill event(s) in StepId=123.batch cgroup. Some of your processes
// may have been killed by the cgroup out-of-memory handler."
std::optional<OomMessage> read_slurm(const Candidate& candidate) {
  OomMessage message = message_at(candidate, kSlurm, kStepKilled, MessageKind::host);
  const std::string_view window = candidate.window().substr(0, 160);
  message.end = candidate.at + 16;
  for (const std::string_view ending : {"oomkilled", "out-of-memoryhandler"}) {
    const size_t at = window.find(ending);
    if (at != std::string_view::npos) message.end = candidate.at + at + ending.size();
  }
  return message;
}

// "Task was killed due to the node running low on memory. Memory on the node (...) where the task
// (..., memory used=12.18GB) was running was 21.91GB / 33.28GB (0.658), which exceeds ..."
std::optional<OomMessage> read_ray(const Candidate& candidate) {
  OomMessage message =
      message_at(candidate, "Ray", "worker killed by Ray's own memory monitor", MessageKind::host);
  const std::string_view window = candidate.window().substr(0, 700);
  if (const auto used = size_after(window, "wasrunningwas")) {
    message.sizes.emplace(SizeKind::required, *used);
    const size_t slash = window.find('/', window.find("wasrunningwas"));
    const auto total = slash == std::string_view::npos || slash + 1 >= window.size()
                           ? std::nullopt
                           : read_size(window, slash + 1);
    if (total) message.sizes.emplace(SizeKind::available, total->size);
  }
  message.end = candidate.at + 40;
  return message;
}

// "model requires more system memory (164.8 GiB) than is available (13.4 GiB)"
std::optional<OomMessage> read_ollama(const Candidate& candidate) {
  OomMessage message =
      message_at(candidate, "Ollama", "model larger than the free host memory", MessageKind::host);
  const std::string_view window = candidate.window().substr(0, 120);
  if (const auto needed = size_after(window, "requiresmoresystemmemory(")) {
    message.sizes.emplace(SizeKind::required, *needed);
  }
  if (const auto there = size_after(window, "thanisavailable(")) {
    message.sizes.emplace(SizeKind::available, *there);
  }
  message.end = candidate.at + 40;
  return message;
}

// "cannot allocate memory in static TLS block" is a loader's complaint about thread-local storage.
std::optional<OomMessage> read_enomem(const Candidate& candidate) {
  if (candidate.window().substr(0, 64).find("statictls") != std::string_view::npos) {
    return std::nullopt;
  }
  return read_host<kLinux, kNoMemory>(candidate);
}

std::optional<OomMessage> read_worker(const Candidate& candidate) {
  const std::string_view window = candidate.window().substr(0, 160);
  const bool killed = window.find("killedbysignal:killed") != std::string_view::npos;
  const bool bus_error = window.find("buserror") != std::string_view::npos;
  if (!killed && !bus_error) return std::nullopt;
  OomMessage message = message_at(
      candidate, kPytorch,
      killed ? "data loader worker killed, as the kernel does for want of memory" : kShared,
      MessageKind::host);
  message.end = candidate.at + 160 < candidate.limit ? candidate.at + 60 : candidate.limit;
  return message;
}

// "NvMapMemAllocInternalTagged: 1075072515 error 12"
std::optional<OomMessage> read_jetson(const Candidate& candidate) {
  OomMessage message =
      message_at(candidate, "Jetson (NvMap)", "memory shared by CPU and GPU", MessageKind::host);
  const std::string_view window = candidate.window().substr(0, 100);
  if (const auto ask = bytes_after(window, "nvmapmemallocinternaltagged:")) {
    message.sizes.emplace(SizeKind::ask, *ask);
  }
  message.details["unified"] = "yes";
  message.end = candidate.at + 28;
  return message;
}

// "out of resource: shared memory, Required: 106496, Hardware limit: 101376"
std::optional<OomMessage> read_triton(const Candidate& candidate) {
  const std::string_view window = candidate.window().substr(0, 300);
  const auto required = bytes_after(window, "required:");
  if (!required) return std::nullopt;
  OomMessage message =
      message_at(candidate, "Triton", "on-chip resource of a kernel", MessageKind::not_memory);
  const size_t name = std::string_view("outofresource:").size();
  const size_t comma = window.find(',');
  if (comma != std::string_view::npos && comma > name) {
    const std::string_view resource = window.substr(name, comma - name);
    message.details["resource"] =
        resource == "sharedmemory" ? "shared memory" : std::string(resource);
  }
  message.sizes.emplace(SizeKind::required, *required);
  if (const auto limit = bytes_after(window, "hardwarelimit:")) {
    message.sizes.emplace(SizeKind::available, *limit);
  }
  message.end = candidate.at + name;
  return message;
}

constexpr std::array kRecognisers = {
    Recogniser{"defaultcpuallocator:", read_cpu_allocator},
    Recogniser{"unabletoallocate", read_numpy},
    Recogniser{"winerror1455", read_host<kWindows, kPagingFile>},
    Recogniser{"thepagingfileistoosmall", read_host<kWindows, kPagingFile>},
    Recogniser{"outofmemory:killedprocess", read_host<kLinux, kKilled>},
    Recogniser{"cgroupoutofmemory", read_host<kLinux, kKilled>},
    Recogniser{"invokedoom-killer", read_host<kLinux, kKilled>},
    Recogniser{"oom-killevent", read_slurm},
    Recogniser{"oom_killevent", read_slurm},
    Recogniser{"exceededstepmemorylimit", read_host<kSlurm, kStepKilled>},
    Recogniser{"exceededjobmemorylimit", read_host<kSlurm, kStepKilled>},
    Recogniser{"reason:oomkilled", read_host<kContainer, kContainerKilled>},
    Recogniser{"\"reason\":\"oomkilled\"", read_host<kContainer, kContainerKilled>},
    Recogniser{"\"oomkilled\":true", read_host<kContainer, kContainerKilled>},
    Recogniser{"taskwaskilledduetothenoderunninglowonmemory", read_ray},
    Recogniser{"killedduetomemorypressure(oom)", read_ray},
    Recogniser{"requiresmoresystemmemory(", read_ollama},
    Recogniser{"oom-kill:", read_host<kLinux, kKilled>},
    Recogniser{"cannotallocatememory", read_enomem},
    Recogniser{"dataloaderworker(pid", read_worker},
    Recogniser{"insufficientsharedmemory(shm)", read_host<kPytorch, kShared>},
    Recogniser{"nvmapmemallocinternaltagged", read_jetson},
    Recogniser{"outofresource:", read_triton},
};

}  // namespace

std::span<const Recogniser> host_recognisers() {
  return kRecognisers;
}

}  // namespace vramtrack
