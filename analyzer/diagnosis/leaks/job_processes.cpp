#include "diagnosis/leaks/job_processes.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace vramtrack {
namespace {

// What a process does on purpose. Not what happens to it when it ends: frees, destroyed contexts.
bool is_work(const Event& event) {
  if ((event.flags & kEventCarried) != 0) return false;
  switch (event.kind) {
    case EventKind::physical_alloc:
    case EventKind::handle_create:
    case EventKind::context_create:
    case EventKind::block_alloc:
    case EventKind::graph_instantiate:
    case EventKind::step:
    case EventKind::kernel:
    case EventKind::memcpy_call:
    case EventKind::memset_call:
    case EventKind::kernel_access:
    case EventKind::graph_launch:
      return true;
    default:
      return false;
  }
}

uint64_t number_of(const RecordingInfo& info, std::string_view key) {
  for (const auto& [name, value] : info.metadata) {
    uint64_t number = 0;
    if (name == key &&
        std::from_chars(value.data(), value.data() + value.size(), number).ec == std::errc())
      return number;
  }
  return 0;
}

double seconds_between(uint64_t from, uint64_t to) {
  return to > from ? static_cast<double>(to - from) * 1e-9 : 0;
}

}  // namespace

JobProcess summarize(const Recording& recording, uint64_t now_ns) {
  const RecordingInfo& info = recording.info();
  JobProcess process;
  process.path = info.path;
  process.host = info.host;
  process.command = info.command;
  process.pid = info.pid;
  process.parent = number_of(info, "ppid");
  process.begin_ns = info.start_realtime_ns;
  process.last_work_ns = process.begin_ns;
  process.running = info.running;
  process.simulated = info.simulated;
  if (info.end_ns) process.end_ns = process.begin_ns + *info.end_ns;
  if (info.running) process.end_ns = now_ns;
  Moment last;
  std::set<uint64_t> contexts;
  recording.for_each([&](const Event& event) {
    if (!is_work(event)) return true;
    ++process.work;
    process.last_work_ns = process.begin_ns + event.time_ns;
    last.sequence = event.sequence;
    return true;
  });
  if (process.work == 0) return process;
  recording.for_each([&](const Event& event) {
    if (event.kind == EventKind::context_create) contexts.insert(event.object);
    if (event.kind == EventKind::context_destroy) contexts.erase(event.object);
    return event.sequence <= last.sequence;
  });
  const MemoryState state = state_at(recording, last);
  bool measured = false;
  for (const int16_t device : state.devices()) {
    if (device < 0) continue;
    const Outside outside = state.outside(device);
    measured = measured || outside.measured;
    process.context_bytes += outside.context;
    process.held_bytes += state.totals(device).in_use;
  }
  process.holds_context = !contexts.empty() || measured || process.held_bytes != 0;
  return process;
}

namespace {

uint64_t last_sign_of(const JobProcess& process) {
  return process.end_ns.value_or(process.last_work_ns);
}

// Against all others, as if it had ended then.
IdleProcess judge(const std::vector<JobProcess>& processes, size_t index, uint64_t end) {
  const JobProcess& process = processes[index];
  IdleProcess idle{.process = index};
  idle.idle_s = seconds_between(process.last_work_ns, end);
  bool others_are_gone = true;
  uint64_t alone_since = 0;
  for (size_t i = 0; i < processes.size(); ++i) {
    const JobProcess& other = processes[i];
    // Files of an earlier or later job may lie in the same folder.
    if (i == index || other.work == 0 || other.begin_ns >= end ||
        last_sign_of(other) <= process.begin_ns)
      continue;
    const uint64_t from = std::max(process.last_work_ns, other.begin_ns);
    idle.others_s =
        std::max(idle.others_s, seconds_between(from, std::min(other.last_work_ns, end)));
    others_are_gone = others_are_gone && !other.running;
    alone_since = std::max({alone_since, last_sign_of(other), process.last_work_ns});
  }
  if (process.running && others_are_gone && alone_since != 0)
    idle.alone_s = seconds_between(alone_since, end);
  return idle;
}

}  // namespace

std::vector<IdleProcess> idle_processes(const std::vector<JobProcess>& processes, double seconds) {
  std::vector<IdleProcess> idle;
  for (size_t i = 0; i < processes.size(); ++i) {
    if (!processes[i].holds_context || !processes[i].end_ns) continue;
    const IdleProcess found = judge(processes, i, *processes[i].end_ns);
    if (found.others_s >= seconds || found.alone_s >= seconds) idle.push_back(found);
  }
  std::stable_sort(idle.begin(), idle.end(), [&](const IdleProcess& a, const IdleProcess& b) {
    const auto held = [&](const IdleProcess& p) {
      return processes[p.process].context_bytes + processes[p.process].held_bytes;
    };
    return held(a) > held(b);
  });
  return idle;
}

std::vector<IdleProcess> silent_processes(const std::vector<JobProcess>& processes,
                                          double seconds) {
  uint64_t last = 0;
  for (const JobProcess& process : processes) last = std::max(last, process.last_work_ns);
  std::vector<IdleProcess> silent;
  for (size_t i = 0; i < processes.size(); ++i) {
    if (!processes[i].holds_context || processes[i].end_ns) continue;
    const IdleProcess found = judge(processes, i, last);
    if (found.others_s >= seconds) silent.push_back(found);
  }
  return silent;
}

}  // namespace vramtrack
