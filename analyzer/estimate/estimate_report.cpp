#include "estimate/estimate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "wording/units.h"

namespace vramtrack {
namespace {

using Json = nlohmann::ordered_json;

Json whole(Bytes bytes) {
  return static_cast<int64_t>(std::llround(bytes));
}

std::string shape_text(const ModelShape& m, const Workload& w) {
  std::string out = fmt::format(
      "{}: L = {} layers, h = {} hidden, a = {} heads, g = {} key/value heads, d = {},\n"
      "  f = {} MLP, V = {} vocabulary{}\n",
      m.name, m.layers, m.hidden, m.heads, m.kv_heads, m.head_dim, m.intermediate, m.vocab,
      m.tied_embeddings ? ", output tied to the embedding" : "");
  out += fmt::format(
      "{}: b = {}, s = {}, T = b s, weights in {}{} (c = {}, r = {} bytes),\n  {} attention",
      w.training ? "training" : "inference", w.batch, w.seq, type_name(w.weights),
      w.autocast ? " under autocast" : "", compute_bytes(w), stream_bytes(w),
      w.attention == AttentionKind::fused ? "fused" : "eager");
  if (w.training) {
    out += fmt::format(", {}, recomputation {}, accumulation {}", optimizer_name(w.optimizer),
                       recompute_name(w.recompute), w.accumulation);
    if (w.lora_rank > 0) out += fmt::format(", LoRA {} on {}", w.lora_rank, w.lora_targets);
    if (w.zero_stage > 0) out += fmt::format(", ZeRO-{} over {}", w.zero_stage, w.ranks);
  } else if (w.requests > 1) {
    out += fmt::format(", {} requests", w.requests);
  }
  return out + "\n";
}

// Each source has a letter, told below the table.
std::string terms_text(const Estimate& e) {
  std::string out;
  std::vector<std::string> sources;
  for (const MemoryTerm& term : e.terms) {
    const auto known = std::find(sources.begin(), sources.end(), term.source);
    const auto letter = static_cast<char>('a' + (known - sources.begin()));
    if (known == sources.end()) sources.push_back(term.source);
    out +=
        fmt::format("  {:<20} {:>11} {} {:<16} {}\n", term.category, rounded_quantity(term.bytes),
                    letter, term.symbol.substr(0, 16), term.what.substr(0, 40));
  }
  char letter = 'a';
  for (const std::string& source : sources) out += fmt::format("  {}: {}\n", letter++, source);
  return out;
}

std::string phases_text(const Estimate& e) {
  std::string out = "\npeak of each phase (allocated by the framework)\n";
  for (const PhasePeak& phase : e.phases) {
    out += fmt::format("  {:<28}{:>12}  {}{}\n", phase.name, rounded_quantity(phase.bytes),
                       phase.name == e.peak.name ? "<- " : "   ", phase.of.substr(0, 46));
  }
  out += fmt::format("\non the device: {} + {} context (assumed) = {}\n",
                     rounded_quantity(e.peak.bytes), rounded_quantity(e.context),
                     rounded_quantity(e.device()));
  return out;
}

std::string remedies_text(const EstimateRequest& request, const Estimate& e) {
  const auto list = remedies(request.shape, request.work);
  std::string out;
  if (!list.empty()) {
    out += "\nwhat to switch on, by what it saves alone (difference of two estimates)\n";
    for (const Remedy& remedy : list) {
      out += fmt::format("  {:>11}  {:<44} {}\n", rounded_quantity(remedy.saving), remedy.name,
                         remedy.cost);
    }
  }
  if (!request.card) return out;
  if (e.device() <= *request.card) {
    return out + fmt::format("\nfits a card of {}, with {} to spare\n",
                             rounded_quantity(*request.card),
                             rounded_quantity(*request.card - e.device()));
  }
  const Plan plan = plan_to_fit(request.shape, request.work, *request.card);
  out += fmt::format("\nto fit a card of {} ({} too much)\n", rounded_quantity(*request.card),
                     rounded_quantity(e.device() - *request.card));
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    out += fmt::format("  {:>2}. {:<46} -> {}\n", i + 1, plan.steps[i],
                       rounded_quantity(plan.device[i]));
  }
  if (!plan.fits)
    out += "  nothing known is enough: a larger card, more cards, or a smaller model\n";
  return out;
}

Bytes row_of(const std::map<std::string, Bytes>& rows, const std::string& name) {
  const auto found = rows.find(name);
  return found == rows.end() ? 0 : found->second;
}

bool is_state(const std::string& row) {
  return row == "parameters" || row == "gradients" || row == "optimizer_state";
}

std::string error_text(Bytes estimated, Bytes measured) {
  if (measured == 0) return estimated == 0 ? "" : "not seen";
  return fmt::format("{:+.1f} %", static_cast<double>((estimated - measured) / measured * 100));
}

std::string against_text(const EstimateRequest& request, const Estimate& e) {
  if (!request.measured) return {};
  const Measured& m = *request.measured;
  std::string out =
      fmt::format("\nagainst {} (at its peak of allocated memory)\n  {:<22}{:>14}{:>14}{:>12}\n",
                  m.of, "", "estimated", "measured", "error");
  std::set<std::string> names;
  for (const auto& [name, bytes] : e.at_peak) names.insert(name);
  for (const auto& [name, bytes] : m.categories) names.insert(name);
  Bytes estimated_work = 0;
  Bytes measured_work = 0;
  for (const std::string& name : names) {
    const Bytes estimated = row_of(e.at_peak, name);
    const Bytes measured = row_of(m.categories, name);
    if (estimated == 0 && measured == 0) continue;
    if (!is_state(name)) {
      estimated_work += estimated;
      measured_work += measured;
    }
    out += fmt::format("  {:<22}{:>14}{:>14}{:>12}\n", name, rounded_quantity(estimated),
                       rounded_quantity(measured), error_text(estimated, measured));
  }
  out += fmt::format("  {:<22}{:>14}{:>14}{:>12}\n", "all but the states",
                     rounded_quantity(estimated_work), rounded_quantity(measured_work),
                     error_text(estimated_work, measured_work));
  out += fmt::format("  {:<22}{:>14}{:>14}{:>12}\n", "peak", rounded_quantity(e.peak.bytes),
                     rounded_quantity(m.peak), error_text(e.peak.bytes, m.peak));
  const Bytes tokens_layers =
      static_cast<Bytes>(request.work.batch) * static_cast<Bytes>(request.work.seq) *
      static_cast<Bytes>(request.shape.hidden) * static_cast<Bytes>(request.shape.layers);
  out += fmt::format("  measured, all but the states = {:.1f} bytes x b s h L\n",
                     static_cast<double>(measured_work / tokens_layers));
  return out;
}

Json terms_json(const Estimate& e) {
  Json list = Json::array();
  for (const MemoryTerm& term : e.terms) {
    list.push_back({{"category", term.category},
                    {"symbol", term.symbol},
                    {"what", term.what},
                    {"values", term.values},
                    {"bytes", whole(term.bytes)},
                    {"source", term.source}});
  }
  return list;
}

Json shape_json(const ModelShape& m) {
  return {{"model_type", m.name},
          {"layers", m.layers},
          {"hidden", m.hidden},
          {"heads", m.heads},
          {"kv_heads", m.kv_heads},
          {"head_dim", m.head_dim},
          {"intermediate", m.intermediate},
          {"vocab", m.vocab},
          {"positions", m.positions},
          {"window", m.window},
          {"tied_embeddings", m.tied_embeddings}};
}

}  // namespace

std::string estimate_text(const EstimateRequest& request) {
  const Estimate e = estimate_memory(request.shape, request.work);
  std::string out = shape_text(request.shape, request.work);
  out += fmt::format("P = {} parameters, {} trained\n\n", e.parameters, e.trainable);
  out += terms_text(e);
  out += phases_text(e);
  out += remedies_text(request, e);
  out += against_text(request, e);
  out += "\nestimated from the shape; nothing was measured unless it says so\n";
  return out;
}

nlohmann::ordered_json estimate_json(const EstimateRequest& request) {
  const Estimate e = estimate_memory(request.shape, request.work);
  Json json;
  json["schema"] = "vramtrack.estimate/1";
  json["shape"] = shape_json(request.shape);
  json["parameters"] = e.parameters;
  json["trainable"] = e.trainable;
  json["terms"] = terms_json(e);
  auto& categories = json["categories"] = Json::object();
  for (const auto& [name, bytes] : e.categories) categories[name] = whole(bytes);
  auto& at_peak = json["at_peak"] = Json::object();
  for (const auto& [name, bytes] : e.at_peak) at_peak[name] = whole(bytes);
  auto& phases = json["phases"] = Json::array();
  for (const PhasePeak& phase : e.phases) {
    phases.push_back({{"name", phase.name}, {"bytes", whole(phase.bytes)}, {"of", phase.of}});
  }
  json["peak"] = {{"phase", e.peak.name}, {"bytes", whole(e.peak.bytes)}};
  json["context_bytes"] = whole(e.context);
  json["device_bytes"] = whole(e.device());
  auto& list = json["remedies"] = Json::array();
  for (const Remedy& remedy : remedies(request.shape, request.work)) {
    list.push_back(
        {{"change", remedy.name}, {"saving_bytes", whole(remedy.saving)}, {"cost", remedy.cost}});
  }
  if (request.card) {
    json["card_bytes"] = whole(*request.card);
    const Plan plan = plan_to_fit(request.shape, request.work, *request.card);
    auto& steps = json["plan"] = Json::array();
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      steps.push_back({{"change", plan.steps[i]}, {"device_bytes", whole(plan.device[i])}});
    }
    json["fits"] = plan.fits;
  }
  if (request.measured) {
    auto& measured = json["measured"] = Json::object();
    measured["file"] = request.measured->of;
    measured["peak"] = whole(request.measured->peak);
    auto& rows = measured["categories"] = Json::object();
    for (const auto& [name, bytes] : request.measured->categories) rows[name] = whole(bytes);
  }
  return json;
}

}  // namespace vramtrack
