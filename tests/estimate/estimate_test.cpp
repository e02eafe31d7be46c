// Estimates against figures that others published, and against sums done by hand.
#include <catch2/catch.hpp>
#include <fstream>

#include "estimate/estimate.h"
#include "support/scratch.h"
#include "trace/input_error.h"

namespace vramtrack {
namespace {

ModelShape from_json(const std::string& text) {
  const test::Scratch scratch;
  const auto path = scratch.folder() / "config.json";
  std::ofstream(path) << text;
  return read_config(path);
}

uint64_t parameters_of(const std::string& config) {
  return parameter_count(parameter_tensors(from_json(config)));
}

std::string llama(int layers, int hidden, int heads, int kv_heads, int intermediate, int vocab,
                  const char* more = "") {
  return "{\"model_type\": \"llama\", \"num_hidden_layers\": " + std::to_string(layers) +
         ", \"hidden_size\": " + std::to_string(hidden) +
         ", \"num_attention_heads\": " + std::to_string(heads) +
         ", \"num_key_value_heads\": " + std::to_string(kv_heads) +
         ", \"intermediate_size\": " + std::to_string(intermediate) +
         ", \"vocab_size\": " + std::to_string(vocab) + more + "}";
}

Bytes category(const Estimate& e, const char* name) {
  const auto found = e.categories.find(name);
  return found == e.categories.end() ? 0 : found->second;
}

constexpr Bytes kGi = 1024.0L * 1024 * 1024;

ModelShape llama_7b() {
  return from_json(llama(32, 4096, 32, 32, 11008, 32000));
}

}  // namespace

TEST_CASE("parameter counts are those that the models' publishers give") {
  CHECK(parameters_of(R"({"model_type": "gpt2"})") == 124439808);
  CHECK(parameters_of(R"({"model_type": "gpt2", "n_embd": 1024, "n_layer": 24, "n_head": 16})") ==
        354823168);
  CHECK(parameters_of(R"({"model_type": "gpt2", "n_embd": 1600, "n_layer": 48, "n_head": 25})") ==
        1557611200);
  CHECK(parameters_of(llama(32, 4096, 32, 32, 11008, 32000)) == 6738415616);
  CHECK(parameters_of(llama(40, 5120, 40, 40, 13824, 32000)) == 13015864320);
  CHECK(parameters_of(llama(80, 8192, 64, 8, 28672, 32000)) == 68976648192);
  CHECK(parameters_of(llama(32, 4096, 32, 8, 14336, 128256)) == 8030261248);
  CHECK(parameters_of(llama(16, 2048, 32, 8, 8192, 128256, ", \"tie_word_embeddings\": true")) ==
        1235814400);
}

TEST_CASE("the cache of a 7B model takes 512 KiB per token, a quarter of it with 8 of 32 heads") {
  Workload work;
  work.training = false;
  work.seq = 1;
  CHECK(category(estimate_memory(llama_7b(), work), "kv_cache") == 512 * 1024);
  const ModelShape grouped = from_json(llama(32, 4096, 32, 8, 11008, 32000));
  CHECK(category(estimate_memory(grouped, work), "kv_cache") == 128 * 1024);
  const ModelShape single = from_json(llama(32, 4096, 32, 1, 11008, 32000));
  CHECK(category(estimate_memory(single, work), "kv_cache") == 16 * 1024);
  work.kv_bits = 8;
  CHECK(category(estimate_memory(llama_7b(), work), "kv_cache") == 256 * 1024);
}

TEST_CASE("a window bounds the cache, requests and batch multiply it") {
  Workload work;
  work.training = false;
  work.seq = 8192;
  ModelShape shape = llama_7b();
  const Bytes whole = category(estimate_memory(shape, work), "kv_cache");
  CHECK(whole == 4 * kGi);
  shape.window = 4096;
  CHECK(category(estimate_memory(shape, work), "kv_cache") == whole / 2);
  work.requests = 3;
  work.batch = 2;
  CHECK(category(estimate_memory(shape, work), "kv_cache") == 3 * whole);
}

TEST_CASE("weights by precision, state by optimizer") {
  const ModelShape shape = llama_7b();
  const Bytes count = 6738415616;
  Workload work;
  const auto bytes = [&](const char* name) { return category(estimate_memory(shape, work), name); };
  CHECK(bytes("parameters") == 2 * count);
  CHECK(bytes("gradients") == 2 * count);
  CHECK(bytes("optimizer_state") == 4 * count);
  work.optimizer = Optimizer::adamw_mixed;
  CHECK(bytes("optimizer_state") == 12 * count);
  work.optimizer = Optimizer::sgd;
  CHECK(bytes("optimizer_state") == 0);
  work.weights = WeightType::float32;
  work.optimizer = Optimizer::adamw;
  CHECK(bytes("optimizer_state") == 8 * count);
  // 8-bit moments: a byte each, and a float per 256; a quarter and a bit of float32's.
  work.optimizer = Optimizer::adamw_8bit;
  CHECK(bytes("optimizer_state") > 2 * count);
  CHECK(bytes("optimizer_state") < 2.04L * count);
  // Factored second moments are a thousandth of the weights.
  work.optimizer = Optimizer::adafactor;
  CHECK(bytes("optimizer_state") < count / 200);
}

TEST_CASE("ZeRO shards state, then gradients, then weights") {
  const ModelShape shape = llama_7b();
  Workload work;
  work.optimizer = Optimizer::adamw_mixed;
  work.ranks = 8;
  const Bytes count = 6738415616;
  const auto states = [&](uint64_t stage) {
    work.zero_stage = stage;
    const Estimate e = estimate_memory(shape, work);
    return category(e, "parameters") + category(e, "gradients") + category(e, "optimizer_state");
  };
  CHECK(states(0) == 16 * count);
  CHECK(states(1) == 4 * count + 12 * count / 8);
  CHECK(states(2) == 2 * count + 14 * count / 8);
  CHECK(states(3) == 16 * count / 8);
}

TEST_CASE("LoRA trains r(in + out) per matrix") {
  Workload work;
  work.lora_rank = 8;
  const Estimate e = estimate_memory(llama_7b(), work);
  CHECK(e.trainable == 32ULL * 2 * 8 * (4096 + 4096));  // 4,194,304: q and v of 32 layers
  CHECK(category(e, "gradients") == 4 * static_cast<Bytes>(e.trainable));
}

TEST_CASE("eager attention is quadratic in the length, fused is linear, states are constant") {
  const ModelShape shape = llama_7b();
  Workload work;
  const auto at = [&](uint64_t seq, AttentionKind kind, const char* name) {
    work.seq = seq;
    work.attention = kind;
    return category(estimate_memory(shape, work), name);
  };
  CHECK(at(4096, AttentionKind::eager, "attention") ==
        4 * at(2048, AttentionKind::eager, "attention"));
  CHECK(at(4096, AttentionKind::fused, "attention") ==
        2 * at(2048, AttentionKind::fused, "attention"));
  CHECK(at(4096, AttentionKind::fused, "parameters") ==
        at(512, AttentionKind::fused, "parameters"));
  CHECK(at(4096, AttentionKind::fused, "activations/logits") ==
        8 * at(512, AttentionKind::fused, "activations/logits"));
}

TEST_CASE("recomputation keeps the layers' inputs") {
  const ModelShape shape = llama_7b();
  Workload work;
  work.seq = 2048;
  work.recompute = Recompute::full;
  const Activations a = training_activations(shape, work);
  CHECK(sum_of(a.layers) == Bytes{32} * 2048 * 4096 * 2);
}

TEST_CASE("remedies are ranked, and a plan ends on the card or says so") {
  const ModelShape shape = llama_7b();
  Workload work;
  work.batch = 4;
  const auto list = remedies(shape, work);
  REQUIRE(list.size() > 3);
  for (size_t i = 1; i < list.size(); ++i) CHECK(list[i - 1].saving >= list[i].saving);
  for (const Remedy& remedy : list) {
    CHECK(remedy.saving ==
          estimate_memory(shape, work).device() - estimate_memory(shape, remedy.work).device());
  }
  const Plan plan = plan_to_fit(shape, work, 24 * kGi);
  CHECK(plan.fits);
  REQUIRE_FALSE(plan.device.empty());
  CHECK(plan.device.back() <= 24 * kGi);
  CHECK_FALSE(plan_to_fit(shape, work, kGi).fits);
}

TEST_CASE("what is on is not advised") {
  Workload work;
  work.recompute = Recompute::full;
  work.attention = AttentionKind::fused;
  for (const Remedy& remedy : remedies(llama_7b(), work)) {
    CHECK(remedy.name.find("recompute") == std::string::npos);
    CHECK(remedy.name.find("fused attention") == std::string::npos);
  }
}

TEST_CASE("impossible shapes are refused") {
  CHECK_THROWS_AS(from_json("[]"), InputError);
  CHECK_THROWS_AS(from_json("{"), InputError);
  CHECK_THROWS_AS(from_json(R"({"model_type": "bert"})"), InputError);
  CHECK_THROWS_AS(from_json(llama(0, 4096, 32, 32, 11008, 32000)), InputError);
  CHECK_THROWS_AS(from_json(llama(32, 4096, 31, 31, 11008, 32000)), InputError);
  CHECK_THROWS_AS(from_json(llama(32, 4096, 32, 5, 11008, 32000)), InputError);
  CHECK_THROWS_AS(from_json(llama(2000000000, 4096, 32, 32, 11008, 32000)), InputError);
  CHECK_THROWS_AS(from_json(R"({"model_type": "gpt2", "n_embd": -3})"), InputError);
}

}  // namespace vramtrack
