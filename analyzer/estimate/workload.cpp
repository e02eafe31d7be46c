#include "estimate/workload.h"

#include <array>
#include <utility>

#include "trace/input_error.h"

namespace vramtrack {
namespace {

constexpr std::array<std::pair<std::string_view, WeightType>, 10> kTypes = {{
    {"float32", WeightType::float32},
    {"fp32", WeightType::float32},
    {"bfloat16", WeightType::bfloat16},
    {"bf16", WeightType::bfloat16},
    {"float16", WeightType::float16},
    {"fp16", WeightType::float16},
    {"int8", WeightType::int8},
    {"8bit", WeightType::int8},
    {"nf4", WeightType::nf4},
    {"4bit", WeightType::nf4},
}};

constexpr std::array<std::pair<std::string_view, Optimizer>, 7> kOptimizers = {{
    {"none", Optimizer::none},
    {"sgd", Optimizer::sgd},
    {"sgd-momentum", Optimizer::sgd_momentum},
    {"adamw", Optimizer::adamw},
    {"adamw-mixed", Optimizer::adamw_mixed},
    {"adamw-8bit", Optimizer::adamw_8bit},
    {"adafactor", Optimizer::adafactor},
}};

}  // namespace

uint64_t type_bytes(WeightType type) {
  switch (type) {
    case WeightType::float32:
      return 4;
    case WeightType::bfloat16:
    case WeightType::float16:
      return 2;
    case WeightType::int8:
    case WeightType::nf4:
      return 1;
  }
  return 4;
}

std::string_view type_name(WeightType type) {
  for (const auto& [name, value] : kTypes) {
    if (value == type) return name;
  }
  return "float32";
}

std::optional<WeightType> type_named(std::string_view wanted) {
  for (const auto& [name, value] : kTypes) {
    if (name == wanted) return value;
  }
  return std::nullopt;
}

std::string_view optimizer_name(Optimizer optimizer) {
  for (const auto& [name, value] : kOptimizers) {
    if (value == optimizer) return name;
  }
  return "none";
}

std::optional<Optimizer> optimizer_named(std::string_view wanted) {
  for (const auto& [name, value] : kOptimizers) {
    if (name == wanted) return value;
  }
  return std::nullopt;
}

std::string_view recompute_name(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
      return "none";
    case Recompute::selective:
      return "selective";
    case Recompute::full:
      return "full";
  }
  return "none";
}

uint64_t compute_bytes(const Workload& work) {
  return work.weights == WeightType::float32 && !work.autocast ? 4 : 2;
}

uint64_t stream_bytes(const Workload& work) {
  return work.weights == WeightType::float32 ? 4 : 2;
}

void check_workload(const Workload& w) {
  constexpr uint64_t kMostTokens = 1ULL << 32;
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw InputError(what);
  };
  require(w.batch > 0 && w.seq > 0 && w.requests > 0,
          "batch, sequence length and requests start at 1");
  require(w.batch <= kMostTokens && w.seq <= kMostTokens && w.batch * w.seq <= kMostTokens &&
              w.requests <= kMostTokens / w.seq,
          "more than 2^32 tokens at once");
  require(w.zero_stage <= 3, "--zero takes 0 to 3");
  require(w.ranks > 0 && w.ranks <= (1U << 20), "--ranks starts at 1");
  require(w.lora_rank <= (1U << 16), "--lora-rank is too large");
  require(!w.autocast || w.weights == WeightType::float32,
          "--autocast goes with float32 weights: others are in half precision already");
  const bool quantised = w.weights == WeightType::int8 || w.weights == WeightType::nf4;
  require(!quantised || !w.training || w.lora_rank > 0,
          "quantised weights cannot be trained; with --lora-rank only the adapters are");
}

}  // namespace vramtrack
