// Single rules on jobs that are written down here: stacks shaped like PyTorch's, sizes of a model
// with 4 sequences of 512 tokens, 8 heads of 64, a vocabulary of 8192. What is right follows from
// what the named operators do.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "job.h"

namespace vramtrack {
namespace {

constexpr uint64_t kScores = 4ull * 8 * 512 * 512 * 4;  // float32
constexpr uint64_t kHidden = 4ull * 512 * 512 * 4;
constexpr uint64_t kLogits = 4ull * 512 * 8192 * 4;  // twice the scores
const std::vector<std::string> kAttention = {"Attention.forward@train.py", "GPT.forward@train.py"};
const Call kSoftmax{{"at::_ops::_softmax::call()", "at::_ops::softmax_int::call()"}, kAttention};
const Call kProjection{
    {"at::_ops::addmm::call()", "at::_ops::linear::call()"},
    {"Linear.forward@/torch/nn/modules/linear.py", "Attention.forward@train.py"}};
const Call kWeightGradient{
    {"at::_ops::mm::call()", "torch::autograd::generated::MmBackward0::apply()",
     "torch::autograd::Engine::evaluate_function()"},
    {}};

// Where classes have no names, as in PyTorch's snapshots.
Call unnamed(const std::string& op) {
  return {{"at::_ops::" + op + "::call()"}, {"forward@train.py"}};
}

TEST_CASE("a gradient is known by who frees it, even if the optimizer allocates nothing") {
  Job job;
  const uint64_t weight = job.alloc(1 << 20, kWeightGradient, kEngineThread);
  const uint64_t passing = job.alloc(kHidden, kWeightGradient, kEngineThread);
  const size_t moment = job.now();
  job.free(passing, kEngineThread);
  job.free(weight, kMainThread);  // zero_grad
  job.alloc(kHidden, kProjection);
  CHECK(job.verdict(weight, moment).category == Category::gradients);
  CHECK(job.verdict(passing, moment).row() == "activations/backward");
}

TEST_CASE(
    "the random states of cuDNN's dropout are a library's, what a layer makes beside them is not") {
  Job job;
  const std::vector<std::string> layer = {"LSTM.forward@/torch/nn/modules/rnn.py",
                                          "Tagger.forward@train.py"};
  const uint64_t states = job.alloc(
      12976128,
      {{"at::detail::empty_cuda()", "at::empty()", "at::native::_cudnn_init_dropout_state()",
        "at::native::_cudnn_rnn()", "at::_ops::lstm_input::call()"},
       layer});
  const uint64_t reserve =
      job.alloc(kHidden, {{"at::detail::empty_cuda()", "at::empty()", "at::native::_cudnn_rnn()",
                           "at::_ops::lstm_input::call()"},
                          layer});
  CHECK(job.verdict(states).category == Category::workspace);
  CHECK(job.verdict(reserve).category == Category::activations);
}

TEST_CASE("constructors under which torch.nn's modules are made make parameters too") {
  Job job;
  job.alloc(1 << 20, {{"at::_ops::empty_memory_format::call()"},
                      {"Linear.__init__@/torch/nn/modules/linear.py", "Block.__init__@hub.py"}});
  const Call own{{"at::_ops::empty_memory_format::call()"},
                 {"Conv1D.__init__@hub.py", "Block.__init__@hub.py"}};
  const Call foreign{{"at::_ops::zeros::call()"}, {"Dataset.__init__@data.py"}};
  const uint64_t weight = job.alloc(3 << 20, own);
  const uint64_t data = job.alloc(3 << 20, foreign);
  CHECK(job.verdict(weight, job.now()).category == Category::parameters);
  CHECK(job.verdict(data, job.now()).category != Category::parameters);
}

TEST_CASE("a quarter of the scores is a mask only where an operator makes Booleans") {
  Job job;
  job.alloc(kScores, kSoftmax);
  job.alloc(kHidden, kProjection);
  const uint64_t mask = job.alloc(kScores / 4, {{"at::_ops::eq::call()"}, kAttention});
  const uint64_t copy = job.alloc(
      kScores / 4, {{"at::_ops::empty_like::call()", "at::_ops::clone::call()"}, kAttention});
  CHECK(job.verdict(mask, job.now()).category == Category::attention);
  CHECK(job.verdict(copy, job.now()).category == Category::activations);
}

TEST_CASE("a mask or a bias is made out of nothing inside an attention") {
  Job job;
  job.alloc(kHidden, kProjection);
  const auto zeros = [&](uint64_t size, const std::vector<std::string>& python) {
    return job.alloc(size, {{"at::_ops::empty::call()", "at::_ops::zeros::call()"}, python});
  };
  const uint64_t bias = zeros(kScores / 4, kAttention);  // one for the whole batch
  const uint64_t as_queries = zeros(kHidden, kAttention);
  const uint64_t elsewhere =
      zeros(kScores / 4, {"Router.forward@train.py", "GPT.forward@train.py"});
  CHECK(job.verdict(bias).category == Category::attention);
  CHECK(job.verdict(as_queries).category == Category::attention);
  CHECK(job.verdict(elsewhere).category == Category::activations);
}

TEST_CASE("a copy of the values half as large as the scores is no score") {
  Job job;
  job.alloc(kScores, kSoftmax);
  const uint64_t values = job.alloc(
      kScores / 2, {{"at::_ops::empty_like::call()", "at::_ops::clone::call()"}, kAttention});
  const uint64_t scores = job.alloc(kScores / 2, {{"at::_ops::bmm::call()"}, kAttention});
  CHECK(job.verdict(values).category == Category::activations);
  CHECK(job.verdict(scores).category == Category::attention);  // before a cast for the softmax
}

TEST_CASE("without names, what is as large as the scores is attention only beside a softmax") {
  Job job;
  const std::string block = "forward@model.py:90";
  job.alloc(kScores, {{"at::_ops::_softmax::call()"}, {"forward@model.py:20", block}});
  const uint64_t scores =
      job.alloc(kScores, {{"at::_ops::bmm::call()"}, {"forward@model.py:18", block}});
  const uint64_t wide = job.alloc(
      kScores, {{"at::_ops::mul_Tensor::call()"}, {"forward@model.py:50", "forward@model.py:91"}});
  CHECK(job.verdict(scores).category == Category::attention);
  CHECK(job.verdict(wide).category == Category::activations);
}

TEST_CASE("half the logits is no logits if a softmax or a product of scores made it") {
  Job job;
  job.alloc(kLogits,
            {{"at::_ops::_log_softmax::call()"}, {"cross_entropy@/torch/nn/functional.py"}});
  const uint64_t softmax = job.alloc(kScores, unnamed("_softmax"));
  const uint64_t scores = job.alloc(kScores, unnamed("bmm"));
  const uint64_t masked = job.alloc(kScores, unnamed("masked_fill_Scalar"));
  CHECK(job.verdict(softmax, job.now()).category == Category::attention);
  CHECK(job.verdict(scores, job.now()).category == Category::attention);
  CHECK(job.verdict(masked, job.now()).category == Category::attention);
  const Call operand{
      {"at::_ops::_to_copy::call()", "at::autocast::cached_cast()", "at::_ops::matmul::call()"},
      {"forward@train.py"}};
  const uint64_t cast = job.alloc(kScores / 2, operand);
  CHECK(job.verdict(cast, job.now()).category == Category::attention);
}

TEST_CASE("a linear layer's result, half as large as what the loss reads, is the logits") {
  Job job;
  job.alloc(kLogits,
            {{"at::_ops::_log_softmax::call()"}, {"cross_entropy@/torch/nn/functional.py"}});
  const uint64_t half = job.alloc(kLogits / 2, {{"at::_ops::addmm::call()"}, {"forward@train.py"}});
  CHECK(job.verdict(half, job.now()).row() == "activations/logits");
}

TEST_CASE("fused attention: the mask in numbers, the output, the log-sum-exp") {
  Job job;
  const std::string fused = "at::_ops::scaled_dot_product_attention::call()";
  const std::string flash = "at::_ops::_scaled_dot_product_flash_attention::call()";
  job.alloc(kHidden, {{"at::_ops::addmm::call()"}, {"forward@/torch/nn/modules/linear.py"}});
  const uint64_t mask = job.alloc(
      1 << 20, {{"at::_ops::where_self_out::call()", "at::_ops::where_self::call()", fused},
                {"forward@train.py"}});
  const uint64_t output = job.alloc(kHidden, {{flash, fused}, {"forward@train.py"}});
  const uint64_t sums = job.alloc(4ull * 8 * 512 * 4, {{flash, fused}, {"forward@train.py"}});
  CHECK(job.verdict(mask, job.now()).category == Category::attention);
  CHECK(job.verdict(output, job.now()).category == Category::activations);
  CHECK(job.verdict(sums, job.now()).category == Category::attention);
}

TEST_CASE("keys repeated for their group, and what a generation moves between two tokens") {
  Job job;
  const uint64_t repeated = job.alloc(kHidden, {{"at::_ops::clone::call()"},
                                                {"repeat_kv@/transformers/llama.py",
                                                 "LlamaAttention.forward@/transformers/llama.py"}});
  const uint64_t scores =
      job.alloc(1 << 16, {{"at::_ops::_to_copy::call()", "at::_ops::to_device::call()"},
                          {"GenerationMixin._sample@/transformers/generation/utils.py"}});
  const uint64_t prompt = job.alloc(
      1 << 16, {{"at::_ops::_to_copy::call()", "at::_ops::to_device::call()"}, {"main@serve.py"}});
  CHECK(job.verdict(repeated, job.now()).row() == "activations/kv");
  CHECK(job.verdict(scores, job.now()).category == Category::activations);
  CHECK(job.verdict(prompt, job.now()).category == Category::inputs);
}

TEST_CASE("a counter in a cache is no keys, and a batch drawn by the loss function no logits") {
  Job job;
  const std::vector<std::string> cache = {"DynamicLayer.update@/transformers/cache_utils.py",
                                          "LlamaAttention.forward@llama.py"};
  const uint64_t keys = job.alloc(kHidden, {{"at::_ops::cat::call()"}, cache});
  const uint64_t counter = job.alloc(512, {{"at::_ops::add_Tensor::call()"}, cache});
  const uint64_t batch =
      job.alloc(kHidden, {{"at::_ops::randn::call()"}, {"training_loss@train.py"}});
  CHECK(job.verdict(keys, job.now()).category == Category::kv_cache);
  CHECK(job.verdict(counter, job.now()).category != Category::kv_cache);
  CHECK(job.verdict(batch, job.now()).category == Category::inputs);
}

}  // namespace
}  // namespace vramtrack
