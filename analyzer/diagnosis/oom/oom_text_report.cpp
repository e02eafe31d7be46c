#include "diagnosis/oom/oom_text_report.h"

#include <fmt/format.h>

#include <array>

#include "diagnosis/oom/verdict_report.h"
#include "wording/lines.h"
#include "wording/units.h"

namespace vramtrack {
namespace {

struct Label {
  SizeKind kind;
  const char* text;
};

// In the order in which the arithmetic is followed.
constexpr std::array kLabels = {
    Label{SizeKind::ask, "asked for"},
    Label{SizeKind::total, "device"},
    Label{SizeKind::free, "free on the device"},
    Label{SizeKind::limit, "limit of the pool"},
    Label{SizeKind::process, "this process, all of it"},
    Label{SizeKind::reserved, "reserved by the pool"},
    Label{SizeKind::allocated, "allocated"},
    Label{SizeKind::active, "active"},
    Label{SizeKind::private_pools, "of that in private pools"},
    Label{SizeKind::unallocated, "held, not allocated"},
    Label{SizeKind::other_in_use, "other allocations"},
    Label{SizeKind::largest_free, "largest free block"},
    Label{SizeKind::peak, "highest so far"},
    Label{SizeKind::budget, "budget of the engine"},
    Label{SizeKind::weights, "weights"},
    Label{SizeKind::non_torch, "outside PyTorch"},
    Label{SizeKind::activation_peak, "activation peak"},
    Label{SizeKind::kv_cache, "left for the KV cache"},
    Label{SizeKind::kv_needed, "needed for one request"},
    Label{SizeKind::planned, "planned by the compiler"},
    Label{SizeKind::temporary, "of that temporaries"},
    Label{SizeKind::plan_fragmentation, "lost in the plan's packing"},
    Label{SizeKind::required, "required"},
    Label{SizeKind::available, "available"},
};

std::string row(const char* label, const PrintedSize& size, const char* note = "") {
  return fmt::format("  {:<28}{:>14}{}{}\n", label, bytes_text(size.bytes), *note ? "   " : "",
                     note);
}

std::string numbers_text(const TextDiagnosis& diagnosis, const OomMessage& message) {
  std::string out;
  for (const Label& label : kLabels) {
    if (const auto size = message.size(label.kind)) out += row(label.text, *size);
  }
  for (const ProcessUse& process : diagnosis.other_processes) {
    out += row(fmt::format("process {}", process.pid).c_str(), process.used);
  }
  if (diagnosis.own_process_found_among_others && diagnosis.numbers.own_process) {
    out +=
        row("this process, all of it", *diagnosis.numbers.own_process, "named by a foreign number");
  }
  const OomAudit& audit = diagnosis.audit;
  if (audit.held) out += row("held = reserved-allocated", *audit.held);
  if (audit.outside) {
    out += row("outside", *audit.outside,
               diagnosis.other_processes.empty() ? "device - free - reserved"
                                                 : "device - free - reserved - others");
  }
  if (audit.shortfall) out += row("shortfall = asked-free", *audit.shortfall);
  return out;
}

std::string more_text(const TextDiagnosis& diagnosis) {
  if (diagnosis.further == 0) return {};
  std::string out =
      fmt::format("\n{} in this text", counted(diagnosis.further, "further out-of-memory message"));
  if (diagnosis.identical > 0)
    out += fmt::format(", {} with the same numbers", diagnosis.identical);
  return out + "\n";
}

}  // namespace

std::string text_report(const TextDiagnosis& diagnosis) {
  const OomMessage& message = diagnosis.text.messages.front();
  std::string out = message.library;
  if (!message.form.empty()) out += ", " + message.form;
  if (!message.device.empty()) out += ", " + message.device;
  out = paragraph("", out + fmt::format(" (line {})", message.line));
  if (!diagnosis.text.raised_at.empty()) out += paragraph("  raised at ", diagnosis.text.raised_at);
  out += "\n" + verdict_text(diagnosis.audit);
  const std::string numbers = numbers_text(diagnosis, message);
  if (!numbers.empty()) out += "\nnumbers of the message\n" + numbers;
  out += advice_text(diagnosis.advice);
  out += more_text(diagnosis);
  return out;
}

nlohmann::ordered_json json_report(const TextDiagnosis& diagnosis) {
  const OomMessage& message = diagnosis.text.messages.front();
  nlohmann::ordered_json json;
  json["schema"] = "vramtrack.oom/1";
  json["source"] = "message";
  json["recognised"] = true;
  json["library"] = message.library;
  json["form"] = message.form;
  json["device"] = message.device;
  json["line"] = message.line;
  json["raised_at"] = diagnosis.text.raised_at;
  json["device_oom"] = message.kind != MessageKind::not_memory &&
                       message.kind != MessageKind::host && message.kind != MessageKind::corrupt;
  json["masked"] = message.kind == MessageKind::masked;
  add_verdict_json(diagnosis.audit, json);
  auto& numbers = json["numbers"] = nlohmann::ordered_json::object();
  for (const auto& [kind, size] : message.sizes)
    numbers[std::string(size_name(kind))] = size_json(size);
  auto& processes = json["other_processes"] = nlohmann::ordered_json::array();
  for (const ProcessUse& process : diagnosis.other_processes) {
    auto entry = size_json(process.used);
    entry["pid"] = process.pid;
    processes.push_back(std::move(entry));
  }
  if (diagnosis.numbers.own_process)
    json["own_process"] = size_json(*diagnosis.numbers.own_process);
  json["details"] = message.details;
  json["settings_seen"] = diagnosis.text.settings;
  json["advice"] = advice_json(diagnosis.advice);
  json["further_messages"] = diagnosis.further;
  json["further_identical"] = diagnosis.identical;
  return json;
}

}  // namespace vramtrack
