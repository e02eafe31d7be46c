#include "diagnosis/oom/verdict_report.h"

#include <fmt/format.h>

#include <cmath>

#include "wording/lines.h"

namespace vramtrack {
namespace {

std::string saving_text(const Advice& advice) {
  if (!advice.saving) return "not quantified";
  std::string out = fmt::format("{}{} ({})", advice.at_most ? "at most " : "",
                                bytes_text(*advice.saving), basis_name(advice.basis));
  if (advice.enough) out += *advice.enough ? ": enough by itself" : ": not enough by itself";
  return out;
}

void add_size(const char* name, const std::optional<PrintedSize>& size,
              nlohmann::ordered_json& json) {
  if (size) json[name] = size_json(*size);
}

}  // namespace

std::string verdict_text(const OomAudit& audit) {
  std::string out =
      fmt::format("verdict  {} (confidence {}{})\n", verdict_name(audit.verdict),
                  confidence_name(audit.confidence), audit.on_edge ? ", on the edge" : "");
  out += paragraph("  ", audit.reason);
  if (!audit.also_possible.empty()) {
    std::string list;
    for (const OomVerdict verdict : audit.also_possible) {
      if (!list.empty()) list += ", ";
      list += verdict_name(verdict);
    }
    out += paragraph("  also possible: ", list);
  }
  for (const std::string& remark : audit.remarks) out += paragraph("  - ", remark);
  return out;
}

std::string advice_text(const std::vector<Advice>& advice) {
  if (advice.empty()) return {};
  std::string out = "\nadvice, the largest predicted saving first\n";
  for (size_t i = 0; i < advice.size(); ++i) {
    out += paragraph(fmt::format("{:>3}. ", i + 1), advice[i].change);
    out += paragraph("     saves    ", saving_text(advice[i]));
    out += paragraph("     because  ", advice[i].evidence);
    if (!advice[i].cost.empty()) out += paragraph("     costs    ", advice[i].cost);
  }
  return out;
}

nlohmann::ordered_json bytes_json(long double bytes) {
  const long double value = std::round(PrintedSize::exact(bytes).as_signed());
  constexpr long double kLimit = 9.0e18L;
  if (value >= 0 && value < 2 * kLimit) return static_cast<uint64_t>(value);
  if (value < 0 && value > -kLimit) return static_cast<int64_t>(value);
  return static_cast<double>(value);
}

nlohmann::ordered_json size_json(const PrintedSize& size) {
  nlohmann::ordered_json json;
  json["bytes"] = bytes_json(size.bytes);
  if (size.half_step > 0) json["within"] = bytes_json(std::ceil(size.half_step));
  if (size.underflowed()) json["underflowed"] = true;
  return json;
}

void add_verdict_json(const OomAudit& audit, nlohmann::ordered_json& json) {
  json["verdict"] = verdict_name(audit.verdict);
  json["confidence"] = confidence_name(audit.confidence);
  json["reason"] = audit.reason;
  json["on_edge"] = audit.on_edge;
  json["also_possible"] = nlohmann::ordered_json::array();
  for (const OomVerdict verdict : audit.also_possible) {
    json["also_possible"].push_back(verdict_name(verdict));
  }
  json["remarks"] = audit.remarks;
  auto& derived = json["derived"] = nlohmann::ordered_json::object();
  add_size("outside", audit.outside, derived);
  add_size("held", audit.held, derived);
  add_size("shortfall", audit.shortfall, derived);
  add_size("missing", audit.missing, derived);
}

nlohmann::ordered_json advice_json(const std::vector<Advice>& advice) {
  auto list = nlohmann::ordered_json::array();
  for (const Advice& piece : advice) {
    nlohmann::ordered_json json;
    json["id"] = piece.id;
    json["change"] = piece.change;
    json["evidence"] = piece.evidence;
    json["saving_bytes"] =
        piece.saving ? bytes_json(*piece.saving) : nlohmann::ordered_json(nullptr);
    json["saving_at_most"] = piece.at_most;
    json["saving_basis"] = basis_name(piece.basis);
    json["enough"] =
        piece.enough ? nlohmann::ordered_json(*piece.enough) : nlohmann::ordered_json(nullptr);
    json["cost"] = piece.cost;
    json["in_force"] = piece.in_force_known ? "no" : "unknown";
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace vramtrack
