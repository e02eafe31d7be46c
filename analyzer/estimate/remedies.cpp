// What to switch on first. Each remedy changes the workload; its saving is the difference of two
// estimates, never a rule of thumb.
#include <algorithm>
#include <array>

#include "estimate/estimate.h"

namespace vramtrack {
namespace {

struct Switch {
  const char* name;
  const char* cost;
  bool (*apply)(const ModelShape& shape, Workload& work);  // false: does not apply or is on already
};

bool quantised(const Workload& w) {
  return w.weights == WeightType::int8 || w.weights == WeightType::nf4;
}

bool full_recompute(const ModelShape&, Workload& w) {
  if (!w.training || w.recompute == Recompute::full) return false;
  w.recompute = Recompute::full;
  return true;
}

bool selective_recompute(const ModelShape&, Workload& w) {
  if (!w.training || w.recompute != Recompute::none || w.attention == AttentionKind::fused)
    return false;
  w.recompute = Recompute::selective;
  return true;
}

bool fused_attention(const ModelShape&, Workload& w) {
  if (w.attention == AttentionKind::fused) return false;
  w.attention = AttentionKind::fused;
  return true;
}

bool chunked_loss(const ModelShape&, Workload& w) {
  if (!w.training || w.chunked_loss) return false;
  w.chunked_loss = true;
  return true;
}

bool drop_output(const ModelShape&, Workload& w) {
  if (!w.training || !w.keep_output || w.chunked_loss) return false;
  w.keep_output = false;
  return true;
}

bool halve_batch(const ModelShape&, Workload& w) {
  if (!w.training || w.batch < 2) return false;
  w.batch = (w.batch + 1) / 2;
  w.accumulation *= 2;
  return true;
}

bool halve_requests(const ModelShape&, Workload& w) {
  if (w.training || w.requests < 2) return false;
  w.requests = (w.requests + 1) / 2;
  return true;
}

bool eight_bit_state(const ModelShape&, Workload& w) {
  if (!w.training || (w.optimizer != Optimizer::adamw && w.optimizer != Optimizer::adamw_mixed)) {
    return false;
  }
  w.optimizer = Optimizer::adamw_8bit;
  return true;
}

bool factored_state(const ModelShape&, Workload& w) {
  if (!w.training || w.optimizer == Optimizer::adafactor || w.optimizer == Optimizer::none ||
      w.optimizer == Optimizer::sgd) {
    return false;
  }
  w.optimizer = Optimizer::adafactor;
  return true;
}

bool fused_update(const ModelShape&, Workload& w) {
  if (!w.training || w.fused_optimizer) return false;
  w.fused_optimizer = true;
  return true;
}

bool half_weights(const ModelShape&, Workload& w) {
  if (w.weights != WeightType::float32) return false;
  w.weights = WeightType::bfloat16;
  w.autocast = false;
  return true;
}

bool adapters(const ModelShape&, Workload& w) {
  if (!w.training || w.lora_rank > 0) return false;
  w.lora_rank = 16;
  w.lora_targets = "q,v,qkv";
  w.autocast = false;
  return true;
}

bool four_bit_weights(const ModelShape&, Workload& w) {
  if (quantised(w) || (w.training && w.lora_rank == 0)) return false;
  w.weights = WeightType::nf4;
  w.autocast = false;
  return true;
}

bool eight_bit_cache(const ModelShape&, Workload& w) {
  if (w.training || w.kv_bits.value_or(16) <= 8) return false;
  w.kv_bits = 8;
  return true;
}

template <int stage>
bool shard(const ModelShape&, Workload& w) {
  if (!w.training || w.ranks < 2 || w.zero_stage >= stage) return false;
  w.zero_stage = stage;
  return true;
}

constexpr std::array kSwitches = {
    Switch{"recompute activations (full checkpointing)", "about a third more time per step",
           full_recompute},
    Switch{"recompute attention only (selective)", "a few percent more time", selective_recompute},
    Switch{"fused attention", "none in most cases", fused_attention},
    Switch{"loss in chunks (fused linear cross entropy)", "none to speak of", chunked_loss},
    Switch{"drop the model's output before the backward", "none: keep only the loss", drop_output},
    Switch{"half the micro-batch, twice the accumulation", "less work per launch", halve_batch},
    Switch{"half the concurrent requests", "half the throughput at full load", halve_requests},
    Switch{"optimizer state in 8 bit", "a small risk for convergence", eight_bit_state},
    Switch{"Adafactor instead of AdamW", "other convergence, other learning rates", factored_state},
    Switch{"fused AdamW (fused=True)", "none", fused_update},
    Switch{"weights in bfloat16", "precision of weights and state", half_weights},
    Switch{"LoRA of rank 16 on q and v", "trains 0.1 % of the weights", adapters},
    Switch{"weights in 4 bit", "some quality; slower matrix products", four_bit_weights},
    Switch{"KV cache in 8 bit", "a little accuracy", eight_bit_cache},
    Switch{"ZeRO-1: shard the optimizer state", "one more gather per step", shard<1>},
    Switch{"ZeRO-2: shard gradients, too", "as ZeRO-1", shard<2>},
    Switch{"ZeRO-3 / FSDP: shard weights, too", "half as much communication again", shard<3>},
};

}  // namespace

std::vector<Remedy> remedies(const ModelShape& shape, const Workload& work) {
  const Bytes now = estimate_memory(shape, work).device();
  std::vector<Remedy> list;
  for (const Switch& entry : kSwitches) {
    Remedy remedy{entry.name, entry.cost, work, 0};
    if (!entry.apply(shape, remedy.work)) continue;
    remedy.saving = now - estimate_memory(shape, remedy.work).device();
    if (remedy.saving > 0) list.push_back(std::move(remedy));
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Remedy& a, const Remedy& b) { return a.saving > b.saving; });
  return list;
}

Plan plan_to_fit(const ModelShape& shape, const Workload& work, Bytes card) {
  constexpr size_t kMostSteps = 16;
  Plan plan;
  Workload now = work;
  plan.fits = estimate_memory(shape, now).device() <= card;
  while (!plan.fits && plan.steps.size() < kMostSteps) {
    const auto list = remedies(shape, now);
    if (list.empty()) break;
    now = list.front().work;
    plan.steps.push_back(list.front().name);
    plan.device.push_back(estimate_memory(shape, now).device());
    plan.fits = plan.device.back() <= card;
  }
  return plan;
}

}  // namespace vramtrack
