// Host memory that ran out, memory that host and device share (Jetson), and what only sounds like
// an OOM of the device.
#include <array>

#include "diagnosis/recognisers.h"

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
    Recogniser{"oom-killevent", read_host<kLinux, kKilled>},
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
