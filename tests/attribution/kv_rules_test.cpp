// Keys and values of a forward pass in training, with names of modules and without. What is right
// follows from what the layers are for; the code is laid out as that of well-known models.
#include <catch2/catch.hpp>

#include "job.h"

namespace vramtrack {
namespace {

constexpr uint64_t kHidden = 4ull * 512 * 512 * 4;
constexpr const char* kLinear = "Linear.forward@/torch/nn/modules/linear.py:134";
constexpr const char* kCall = "Module._call_impl@/torch/nn/modules/module.py:1800";

// A linear layer called on this line of an attention's forward, itself called by one block.
Call layer(int line, const std::string& module = "") {
  return {{"at::_ops::addmm::call()", "at::_ops::linear::call()"},
          {kLinear, kCall, "Attention.forward@model.py:" + std::to_string(line), kCall,
           "Block.forward@model.py:90"},
          module};
}

Call attends(int line) {
  return {{"at::_ops::_softmax::call()"},
          {"attend@helpers.py:5", "Attention.forward@model.py:" + std::to_string(line), kCall,
           "Block.forward@model.py:90"}};
}

Call rotation(const std::string& function, int line, int caller) {
  return {
      {"at::_ops::add_Tensor::call()"},
      {function + "@model.py:" + std::to_string(line),
       "Attention.forward@model.py:" + std::to_string(caller), kCall, "Block.forward@model.py:90"}};
}

TEST_CASE("the name of a layer says that it makes keys or values") {
  Job job;
  const uint64_t queries = job.alloc(kHidden, layer(10, "layers.0.attn.q_proj"));
  const uint64_t keys = job.alloc(kHidden, layer(10, "layers.0.attn.k_proj"));
  const uint64_t values = job.alloc(kHidden, layer(10, "encoder.0.attention.value"));
  const uint64_t wrapped = job.alloc(kHidden, layer(10, "layers.0.attn.v_proj.base_layer"));
  const uint64_t narrow = job.alloc(8192, layer(10, "layers.0.attn.v_proj.lora_A.default"));
  CHECK(job.verdict(queries).row() == "activations");
  CHECK(job.verdict(keys).row() == "activations/kv");
  CHECK(job.verdict(keys).confidence >= 0.9);
  CHECK(job.verdict(values).row() == "activations/kv");
  CHECK(job.verdict(wrapped).row() == "activations/kv");
  CHECK(job.verdict(narrow).row() == "activations");
}

TEST_CASE("one product for all three is mostly keys and values, unless queries share them") {
  Job job;
  const uint64_t all = job.alloc(3 * kHidden, layer(10, "h.0.attn.c_attn"));
  const uint64_t shared = job.alloc(kHidden + kHidden / 2, layer(10, "h.1.attn.qkv_proj"));
  job.alloc(kHidden, layer(30, "h.0.attn.c_proj"));
  CHECK(job.verdict(all).row() == "activations/kv");
  CHECK(job.verdict(shared).row() == "activations");
}

TEST_CASE("without names, the place before the attention says what a layer makes") {
  Job job;
  const uint64_t queries = job.alloc(kHidden, layer(10));
  const uint64_t keys = job.alloc(kHidden, layer(11));
  const uint64_t values = job.alloc(kHidden, layer(12));
  job.alloc(1 << 22, attends(20));
  const uint64_t output = job.alloc(kHidden, layer(25));
  CHECK(job.verdict(queries).row() == "activations");
  CHECK(job.verdict(keys).row() == "activations/kv");
  CHECK(job.verdict(values).row() == "activations/kv");
  CHECK(job.verdict(keys).confidence < 0.9);  // a place is no proof
  CHECK(job.verdict(output).row() == "activations");
}

TEST_CASE("without names, one layer before the attention is all three if its size agrees") {
  for (const uint64_t parts : {uint64_t{3}, uint64_t{2}}) {
    Job job;
    const uint64_t first = job.alloc(parts * kHidden, layer(10));
    job.alloc(1 << 22, attends(20));
    job.alloc(kHidden, layer(25));
    CHECK(job.verdict(first).row() == (parts == 3 ? "activations/kv" : "activations"));
  }
}

TEST_CASE("layers that no attention follows make no keys") {
  Job job;
  const uint64_t gate = job.alloc(kHidden, layer(10));
  const uint64_t up = job.alloc(kHidden, layer(11));
  const uint64_t down = job.alloc(kHidden, layer(12));
  // The attention of another function of the same file, called from elsewhere.
  job.alloc(1 << 22, {{"at::_ops::_softmax::call()"},
                      {"Attention.forward@model.py:20", kCall, "Block.forward@model.py:80"}});
  for (const uint64_t block : {gate, up, down}) CHECK(job.verdict(block).row() == "activations");
}

TEST_CASE("of two that are rotated the second is keys") {
  Job job;
  const uint64_t queries = job.alloc(kHidden, rotation("apply_rotary_pos_emb", 60, 14));
  const uint64_t keys = job.alloc(kHidden, rotation("apply_rotary_pos_emb", 61, 14));
  CHECK(job.verdict(queries).row() == "activations");
  CHECK(job.verdict(keys).row() == "activations/kv");
  Job one_by_one;  // a function that rotates one tensor, called twice
  const uint64_t first = one_by_one.alloc(kHidden, rotation("rotary", 60, 14));
  const uint64_t second = one_by_one.alloc(kHidden, rotation("rotary", 60, 15));
  CHECK(one_by_one.verdict(first).row() == "activations");
  CHECK(one_by_one.verdict(second).row() == "activations/kv");
}

}  // namespace
}  // namespace vramtrack
