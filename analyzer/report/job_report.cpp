#include "report/job_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "report/text_report.h"
#include "wording/lines.h"
#include "wording/units.h"

namespace vramtrack {
namespace {

std::string command_of(const JobProcess& process) {
  return process.command.empty() ? "(unknown command)"
                                 : fmt::format("{}", fmt::join(process.command, " "));
}

std::string context_text(const JobProcess& process) {
  if (process.context_bytes == 0) return "a context whose size was not measured";
  return fmt::format("a context of {}{}", quantity(process.context_bytes),
                     process.simulated ? " (assumed)" : "");
}

double since_start(const JobReport& report, uint64_t time_ns) {
  const uint64_t start = report.processes.front().begin_ns;
  return time_ns > start ? static_cast<double>(time_ns - start) * 1e-9 : 0;
}

std::string end_of(const JobProcess& process) {
  if (process.running) return "still running";
  return process.end_ns ? "ended" : "killed, or left by _exit";
}

std::string advice_for(const JobProcess& process, const IdleProcess& idle) {
  if (process.running && idle.alone_s > 0)
    return fmt::format("end it (kill {}), and join or terminate workers where the job ends",
                       process.pid);
  return "end the process when its work is done (join it, or let it leave its loop); if it needs "
         "no device at all, see that it never touches one: CUDA_VISIBLE_DEVICES= in its "
         "environment, no CUDA tensors in what it is sent, no torch.cuda call in a worker";
}

void append_idle(std::string& out, const JobReport& report, const IdleProcess& idle) {
  const JobProcess& process = report.processes[idle.process];
  out += fmt::format("process {}: idle, and holds device memory\n", process.pid);
  out += wrapped("   " + command_of(process), 6) + "\n";
  out += wrapped(fmt::format("   holds {} and {} of the driver's", context_text(process),
                             quantity(process.held_bytes)),
                 6) +
         "\n";
  out += wrapped(
             fmt::format("   no allocation and no step from {:.1f} s after the job's start on, for "
                         "{:.1f} s{}{}",
                         since_start(report, process.last_work_ns), idle.idle_s,
                         idle.others_s > 0
                             ? fmt::format("; others worked for {:.1f} s of that", idle.others_s)
                             : "",
                         process.running ? "; it is still running" : ""),
             6) +
         "\n";
  if (idle.alone_s > 0)
    out += wrapped(fmt::format("   it stayed for {:.1f} s after all others had gone", idle.alone_s),
                   6) +
           "\n";
  out += wrapped("   to do: " + advice_for(process, idle), 6) + "\n\n";
}

}  // namespace

std::string job_text(const JobReport& report) {
  const bool simulated = !report.processes.empty() && report.processes.front().simulated;
  const auto holding = static_cast<size_t>(
      std::count_if(report.processes.begin(), report.processes.end(),
                    [](const JobProcess& process) { return process.holds_context; }));
  std::string out = simulated ? "simulated: " : "";
  out += fmt::format("{} found ({}, {} with a context; idle after {:.0f} s)\n",
                     report.idle.empty() ? "no forgotten process"
                                         : counted(report.idle.size(), "forgotten process"),
                     counted(report.processes.size(), "recording"), holding, report.idle_after_s);
  for (const std::string& note : report.notes) out += paragraph("note: ", note);
  out += "\n";
  for (const IdleProcess& idle : report.idle) append_idle(out, report, idle);
  for (const IdleProcess& silent : report.silent)
    out += wrapped(fmt::format("note: process {} did no work for the last {:.1f} s that others "
                               "worked, and did not close its file: it had ended by then, or sat "
                               "there with {} until it was killed",
                               report.processes[silent.process].pid, silent.others_s,
                               quantity(report.processes[silent.process].context_bytes +
                                        report.processes[silent.process].held_bytes)),
                   6) +
           "\n\n";
  out += "     process      begin   last work       holds  leaks\n";
  for (size_t i = 0; i < report.processes.size(); ++i) {
    const JobProcess& process = report.processes[i];
    out += fmt::format(
        "  {:>10}  {:>7.1f} s  {:>8.1f} s  {:>10}  {:>5}  {}\n", process.pid,
        since_start(report, process.begin_ns), since_start(report, process.last_work_ns),
        quantity(process.context_bytes + process.held_bytes), report.leaks[i], end_of(process));
    out += fmt::format("      {}\n", shortened(command_of(process), 84));
    if (report.leaks[i] != 0) out += fmt::format("      next: vramtrack leaks {}\n", process.path);
  }
  return out;
}

nlohmann::ordered_json job_json(const JobReport& report) {
  using Json = nlohmann::ordered_json;
  Json json = {{"schema", "vramtrack.processes/1"},   {"folder", report.folder},
               {"idle_after_s", report.idle_after_s}, {"notes", report.notes},
               {"processes", Json::array()},          {"findings", Json::array()}};
  for (size_t i = 0; i < report.processes.size(); ++i) {
    const JobProcess& process = report.processes[i];
    json["processes"].push_back(
        {{"file", process.path},
         {"host", process.host},
         {"pid", process.pid},
         {"parent", process.parent},
         {"command", process.command},
         {"simulated", process.simulated},
         {"running", process.running},
         {"begin_s", since_start(report, process.begin_ns)},
         {"last_work_s", since_start(report, process.last_work_ns)},
         {"end_s", process.end_ns ? Json(since_start(report, *process.end_ns)) : Json(nullptr)},
         {"holds_context", process.holds_context},
         {"context_bytes", process.context_bytes},
         {"held_bytes", process.held_bytes},
         {"leaks", report.leaks[i]},
         {"leaks_bytes_per_step", report.bytes_per_step[i]}});
  }
  for (const IdleProcess& idle : report.idle) {
    const JobProcess& process = report.processes[idle.process];
    json["findings"].push_back({{"kind", "forgotten process"},
                                {"pid", process.pid},
                                {"command", process.command},
                                {"context_bytes", process.context_bytes},
                                {"held_bytes", process.held_bytes},
                                {"idle_since_s", since_start(report, process.last_work_ns)},
                                {"idle_s", idle.idle_s},
                                {"others_worked_s", idle.others_s},
                                {"alone_s", idle.alone_s},
                                {"running", process.running},
                                {"advice", advice_for(process, idle)}});
  }
  json["unknown_end"] = Json::array();
  for (const IdleProcess& silent : report.silent)
    json["unknown_end"].push_back(report.processes[silent.process].pid);
  return json;
}

}  // namespace vramtrack
