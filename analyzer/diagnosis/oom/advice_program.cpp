// What the program keeps, and who else is on the card.
#include <fmt/format.h>

#include <array>

#include "diagnosis/oom/advice_rules.h"

namespace vramtrack {
namespace {

bool possible(const AdviceContext& c, OomVerdict verdict) {
  if (c.audit.verdict == verdict) return true;
  for (const OomVerdict other : c.audit.also_possible) {
    if (other == verdict) return true;
  }
  return false;
}

long double live(const AdviceContext& c, std::string_view category) {
  const auto found = c.categories.find(std::string(category));
  return found == c.categories.end() ? 0 : found->second;
}

// Advice on a category pays only where it holds a part of the card worth naming.
bool worth_it(const AdviceContext& c, long double saving) {
  const long double whole = c.numbers.allocated ? c.numbers.allocated->bytes : 0;
  return saving > 0 && saving >= whole / 50;
}

bool too_much_live(const AdviceContext& c) {
  return possible(c, OomVerdict::capacity) || possible(c, OomVerdict::transient_peak);
}

Advice piece(std::string change, std::string evidence, std::string cost) {
  Advice advice;
  advice.change = std::move(change);
  advice.evidence = std::move(evidence);
  advice.cost = std::move(cost);
  return advice;
}

std::optional<Advice> end_other_processes(const AdviceContext& c) {
  if (!c.numbers.other_processes || c.numbers.other_processes->bytes <= 0) return std::nullopt;
  if (!c.audit.shortfall || c.numbers.other_processes->bytes < c.audit.shortfall->bytes) {
    return std::nullopt;
  }
  Advice advice =
      piece("end the other processes on this device, or move the job (CUDA_VISIBLE_DEVICES)",
            fmt::format("they hold {}", bytes_text(c.numbers.other_processes->bytes)),
            "whatever they were doing");
  advice.saving = c.numbers.other_processes->bytes;
  advice.basis = Basis::measured;
  return advice;
}

std::optional<Advice> look_outside(const AdviceContext& c) {
  if (!possible(c, OomVerdict::outside) || !c.audit.outside) return std::nullopt;
  Advice advice = piece(
      "find who holds it: nvidia-smi for other processes; in this one NCCL communicators, a second "
      "framework, CUDA_MODULE_LOADING=LAZY, data loaders that touch the GPU; `vramtrack run` lists "
      "it by "
      "library",
      fmt::format(
          "{} are in use and not in the pool; a context with its libraries takes about 1 GiB",
          bytes_text(c.audit.outside->bytes)),
      "depends on the holder");
  advice.saving = c.audit.outside->bytes - threshold::kUsualOutside;
  advice.at_most = true;
  advice.basis = Basis::computed;
  return advice;
}

std::optional<Advice> checkpoint(const AdviceContext& c) {
  const long double activations = live(c, "activations") + live(c, "attention");
  if (!too_much_live(c) || !worth_it(c, activations)) return std::nullopt;
  Advice advice =
      piece("checkpoint activations (torch.utils.checkpoint, gradient_checkpointing_enable)",
            fmt::format("{} are activations saved for the backward pass", bytes_text(activations)),
            "one more forward pass: about a third more time per step");
  // A layer keeps its input (2sbh bytes of at least 34sbh in half precision).
  advice.saving = activations * 32 / 34;
  advice.at_most = true;
  advice.basis = Basis::computed;
  return advice;
}

std::optional<Advice> halve_batch(const AdviceContext& c) {
  const long double moving = live(c, "activations") + live(c, "attention") + live(c, "inputs");
  if (!too_much_live(c) || !worth_it(c, moving / 2)) return std::nullopt;
  Advice advice = piece("halve the micro-batch and double the accumulation steps",
                        fmt::format("{} grow with the batch", bytes_text(moving)),
                        "less work per launch; nothing to gain at a micro-batch of 1");
  advice.saving = moving / 2;
  advice.basis = Basis::computed;
  return advice;
}

std::optional<Advice> fused_attention(const AdviceContext& c) {
  const long double scores = live(c, "attention");
  if (!too_much_live(c) || !worth_it(c, scores)) return std::nullopt;
  Advice advice =
      piece("use fused attention (attn_implementation=\"sdpa\" or flash attention)",
            fmt::format("{} are attention scores and what comes of them", bytes_text(scores)),
            "none in most cases; some masks fall back to the plain kernel");
  advice.saving = scores;
  advice.at_most = true;
  advice.basis = Basis::computed;
  return advice;
}

std::optional<Advice> smaller_state(const AdviceContext& c) {
  const long double state = live(c, "optimizer_state");
  if (!too_much_live(c) || !worth_it(c, state)) return std::nullopt;
  Advice advice =
      piece("keep the optimizer state in 8 bit, or shard it (ZeRO-1)",
            fmt::format("{} are optimizer state", bytes_text(state)),
            "8 bit: small risk for convergence; sharding: communication, needs more cards");
  advice.saving = state * 3 / 4;
  advice.at_most = true;
  advice.basis = Basis::computed;
  return advice;
}

std::optional<Advice> chunk_logits(const AdviceContext& c) {
  const long double logits = live(c, "activations/logits");
  if (!too_much_live(c) || !worth_it(c, logits)) return std::nullopt;
  Advice advice = piece("compute the loss in chunks (fused linear cross entropy)",
                        fmt::format("{} are logits", bytes_text(logits)), "none to speak of");
  advice.saving = logits;
  advice.at_most = true;
  advice.basis = Basis::computed;
  return advice;
}

std::optional<Advice> shrink_kv_cache(const AdviceContext& c) {
  const long double cache = live(c, "kv_cache");
  if (!too_much_live(c) || !worth_it(c, cache)) return std::nullopt;
  Advice advice =
      piece("quantise the KV cache to 8 bit, or bound its length",
            fmt::format("{} are keys and values", bytes_text(cache)), "a little accuracy");
  advice.saving = cache / 2;
  advice.basis = Basis::computed;
  return advice;
}

// With no more than a message the parts are unknown; say how much has to go, and how to see the
// parts.
std::optional<Advice> measure(const AdviceContext& c) {
  if (!c.categories.empty() || c.kind != MessageKind::device) return std::nullopt;
  if (c.audit.verdict != OomVerdict::capacity && c.audit.verdict != OomVerdict::undetermined &&
      c.audit.verdict != OomVerdict::transient_peak) {
    return std::nullopt;
  }
  std::string evidence = "the message does not say what the live memory is made of";
  if (c.audit.missing && c.audit.missing->bytes > 0) {
    evidence += fmt::format("; at least {} have to go", bytes_text(c.audit.missing->bytes));
  }
  return piece(
      "run it under `vramtrack run` (or `vramtrack estimate` for the model) and see what holds the "
      "memory before changing anything; growth from step to step means a leak",
      evidence, "one more run");
}

std::optional<Advice> other_limits(const AdviceContext& c) {
  if (c.audit.verdict != OomVerdict::limit || c.kind != MessageKind::device) return std::nullopt;
  if (c.numbers.limit || !c.numbers.free) return std::nullopt;
  if (c.windows) {
    return piece(
        "raise the size of the paging file: Windows backs GPU memory with committed host memory",
        "the card has room, Windows refused", "disk space");
  }
  return piece(
      "look for a limit beside the card: address space (ulimit -v), host memory of the container, "
      "pinned "
      "memory under WSL, the paging file on Windows, a MIG slice, a vGPU quota",
      "the card has room, and the request failed all the same", "none");
}

constexpr std::array kRules = {
    AdviceRule{"other-processes", end_other_processes},
    AdviceRule{"outside", look_outside},
    AdviceRule{"checkpointing", checkpoint},
    AdviceRule{"halve-batch", halve_batch},
    AdviceRule{"fused-attention", fused_attention},
    AdviceRule{"optimizer-state", smaller_state},
    AdviceRule{"chunk-logits", chunk_logits},
    AdviceRule{"kv-cache", shrink_kv_cache},
    AdviceRule{"measure", measure},
    AdviceRule{"other-limits", other_limits},
};

}  // namespace

std::span<const AdviceRule> program_rules() {
  return kRules;
}

}  // namespace vramtrack
