#include "commands/estimate_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <string>

#include "estimate/estimate_report.h"
#include "estimate/measured.h"
#include "import/open.h"
#include "trace/input_error.h"

namespace vramtrack {
namespace {

struct EstimateOptions {
  std::string config;
  std::string family = "llama";
  ModelShape shape;
  Workload work;
  std::string dtype = "bfloat16";
  std::string optimizer = "adamw";
  std::string recompute = "none";
  std::string attention = "fused";
  bool inference = false;
  bool no_cache = false;
  bool drop_output = false;
  uint64_t kv_bits = 0;
  double context_mib = 512;
  double card_gib = 0;
  std::string against;
  bool json = false;
};

ModelShape shape_of(const EstimateOptions& options) {
  if (!options.config.empty()) return read_config(options.config);
  ModelShape shape = options.shape;
  if (options.family != "gpt2" && options.family != "llama") {
    throw InputError("--family takes gpt2 or llama");
  }
  shape.name = options.family;
  shape.family = options.family == "gpt2" ? Family::gpt2 : Family::llama;
  if (shape.family == Family::gpt2) {
    shape.qkv_bias = shape.out_bias = shape.mlp_bias = true;
    if (shape.positions == 0) shape.positions = options.work.seq;
  }
  if (shape.layers == 0 || shape.hidden == 0 || shape.heads == 0 || shape.vocab == 0) {
    throw InputError("name a config.json, or give at least --layers --hidden --heads --vocab");
  }
  check_shape(shape);
  return shape;
}

Workload work_of(const EstimateOptions& options) {
  Workload work = options.work;
  work.training = !options.inference;
  work.cache_in_training = !options.no_cache;
  work.keep_output = !options.drop_output;
  const auto type = type_named(options.dtype);
  if (!type) throw InputError("--dtype takes float32, bfloat16, float16, int8 or nf4");
  work.weights = *type;
  const auto optimizer = optimizer_named(options.optimizer);
  if (!optimizer) {
    throw InputError(
        "--optimizer takes none, sgd, sgd-momentum, adamw, adamw-mixed, adamw-8bit or adafactor");
  }
  work.optimizer = *optimizer;
  if (options.recompute == "full") {
    work.recompute = Recompute::full;
  } else if (options.recompute == "selective") {
    work.recompute = Recompute::selective;
  } else if (options.recompute != "none") {
    throw InputError("--recompute takes none, selective or full");
  }
  if (options.attention != "eager" && options.attention != "fused") {
    throw InputError("--attention takes eager or fused");
  }
  work.attention = options.attention == "eager" ? AttentionKind::eager : AttentionKind::fused;
  if (options.kv_bits != 0) {
    if (options.kv_bits > 32) throw InputError("--kv-bits takes 1 to 32");
    work.kv_bits = options.kv_bits;
  }
  if (!(options.context_mib >= 0 && options.context_mib <= 1e6)) {
    throw InputError("--context takes MiB");
  }
  work.context_bytes = static_cast<uint64_t>(options.context_mib * 1024 * 1024);
  check_workload(work);
  return work;
}

void run_estimate(const EstimateOptions& options) {
  EstimateRequest request{shape_of(options), work_of(options), std::nullopt, std::nullopt};
  if (options.card_gib != 0) {
    if (!(options.card_gib > 0 && options.card_gib <= 1e6)) throw InputError("--card takes GiB");
    request.card = static_cast<Bytes>(options.card_gib) * 1024 * 1024 * 1024;
  }
  if (!options.against.empty()) {
    request.measured = measure_recording(*open_recording(options.against));
  }
  if (options.json) {
    fmt::print("{}\n", estimate_json(request).dump(
                           2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    fmt::print("{}", estimate_text(request));
  }
}

void add_shape_options(CLI::App* command, EstimateOptions& o) {
  command->add_option("--family", o.family, "Without a config: gpt2 or llama")
      ->capture_default_str();
  command->add_option("--layers", o.shape.layers, "Layers");
  command->add_option("--hidden", o.shape.hidden, "Hidden size");
  command->add_option("--heads", o.shape.heads, "Attention heads");
  command->add_option("--kv-heads", o.shape.kv_heads,
                      "Key/value heads; as many as heads if not given");
  command->add_option("--head-dim", o.shape.head_dim, "Dimension of a head");
  command->add_option("--intermediate", o.shape.intermediate,
                      "Width of the MLP; 4x hidden if not given");
  command->add_option("--vocab", o.shape.vocab, "Vocabulary");
  command->add_option("--positions", o.shape.positions, "Learned positions (gpt2)");
  command->add_option("--window", o.shape.window, "Sliding window of attention, in tokens");
  command->add_flag("--tied", o.shape.tied_embeddings, "The output layer is the embedding");
}

void add_work_options(CLI::App* command, EstimateOptions& o) {
  command->add_option("--batch", o.work.batch, "Sequences per micro-batch")->capture_default_str();
  command->add_option("--seq", o.work.seq, "Tokens per sequence")->capture_default_str();
  command->add_option("--accumulation", o.work.accumulation, "Micro-batches per step")
      ->capture_default_str();
  command->add_option("--dtype", o.dtype, "Of the weights: float32, bfloat16, float16, int8, nf4")
      ->capture_default_str();
  command->add_flag("--autocast", o.work.autocast, "float32 weights, half-precision computation");
  command
      ->add_option("--optimizer", o.optimizer,
                   "adamw, adamw-mixed, adamw-8bit, adafactor, sgd, sgd-momentum, none")
      ->capture_default_str();
  command->add_flag("--fused-optimizer", o.work.fused_optimizer, "The optimizer's fused form");
  command->add_option("--recompute", o.recompute, "none, selective, full")->capture_default_str();
  command->add_option("--attention", o.attention, "fused, eager")->capture_default_str();
  command->add_flag("--chunked-loss", o.work.chunked_loss, "Fused linear cross entropy");
  command->add_flag("--drop-output", o.drop_output, "Only the loss outlives the forward pass");
  command->add_flag("--no-cache", o.no_cache, "use_cache=False while training");
  command->add_option("--lora-rank", o.work.lora_rank, "Train adapters of this rank only");
  command
      ->add_option("--lora-targets", o.work.lora_targets,
                   "Adapted layers: of q,k,v,o,gate,up,down,qkv,fc,proj; or all")
      ->capture_default_str();
  command->add_option("--zero", o.work.zero_stage, "ZeRO stage, 0 to 3");
  command->add_option("--ranks", o.work.ranks, "Processes that ZeRO shards over");
  command->add_flag("--inference", o.inference, "No training: weights and KV cache");
  command->add_option("--requests", o.work.requests, "Concurrent requests (inference)");
  command->add_option("--kv-bits", o.kv_bits, "Bits of a cached key or value");
  command->add_option("--context", o.context_mib, "MiB of the CUDA context, assumed")
      ->capture_default_str();
}

}  // namespace

void add_estimate_command(CLI::App& app) {
  auto options = std::make_shared<EstimateOptions>();
  CLI::App* command =
      app.add_subcommand("estimate", "What a model will need, from its shape alone");
  command->add_option("CONFIG", options->config,
                      "A Hugging Face config.json; or give the shape by flags");
  add_shape_options(command, *options);
  add_work_options(command, *options);
  command->add_option("--card", options->card_gib, "GiB of a card: say what makes it fit");
  command->add_option("--against", options->against,
                      "Trace or snapshot: set the estimate beside it");
  command->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  command->callback([options] { run_estimate(*options); });
}

}  // namespace vramtrack
