// What a model's forward pass makes: attention intermediates, keys and values, logits, activations;
// and what libraries take for themselves.
#include <fmt/format.h>

#include "attribution/torch_rules.h"

namespace vramtrack {
namespace {

// PyTorch's default cuBLAS workspace, ":4096:2:16:8": 2 x 4 MiB and 8 x 16 KiB.
constexpr uint64_t kBlasWorkspace = 2 * 4096 * 1024 + 8 * 16 * 1024;

// Operators whose result is Boolean, one byte an element.
bool makes_booleans(std::string_view op) {
  for (const std::string_view name : {"eq", "ne", "lt", "le", "gt", "ge", "is", "logical",
                                      "bitwise", "native_dropout", "triu", "tril", "ones", "full"})
    if (op.starts_with(name)) return true;
  return op.find("dropout") != std::string_view::npos;
}

// Scores are batch x heads x length x length; half as large in half precision or twice as large
// before a cast, and a quarter as large where single precision becomes a Boolean mask.
bool is_score_sized(uint64_t bytes, const StackTraits& traits, const Evidence& evidence) {
  const std::string_view op = traits.op;
  if (evidence.is_softmax_size(bytes)) return true;
  // A plain copy keeps its type: one half as large is of something else, of values for example.
  const bool keeps_type =
      (op.starts_with("clone") || op.starts_with("contiguous") || op.starts_with("reshape")) &&
      !traits.has(Trait::autocast);
  if (!keeps_type && (evidence.is_softmax_size(bytes * 2) || evidence.is_softmax_size(bytes / 2)))
    return true;
  return (op.empty() || makes_booleans(op)) && evidence.is_softmax_size(bytes * 4);
}

// Filled with one number inside an attention: a mask, or a bias of the scores. Its size says
// nothing: one for a whole batch may be as large as the queries.
bool is_mask_or_bias(const StackTraits& traits) {
  for (const std::string_view name : {"zeros", "ones", "full"})
    if (traits.outer_op.starts_with(name)) return true;
  return false;
}

// Operators that make a tensor out of nothing or of host memory.
bool brings_data(std::string_view op) {
  for (const std::string_view name : {"to", "_to_copy", "copy", "rand", "tensor", "arange", "zeros",
                                      "ones", "full", "empty", "eye"})
    if (op.starts_with(name)) return true;
  return false;
}

// Operators between the product of Q and K and that of the weights and V.
bool works_on_scores(const StackTraits& traits) {
  if (traits.has(Trait::batched_product) || traits.has(Trait::dropout)) return true;
  for (const std::string_view name : {"masked_fill", "where", "mul", "div", "add", "tril", "triu"})
    if (traits.op.starts_with(name)) return true;
  return false;
}

// Parts of attention, by operators that nothing else calls.
bool is_attention_operator(const StackTraits& traits, bool score_sized) {
  return traits.has(Trait::fused_attention) || traits.has(Trait::dot_product_attention) ||
         traits.has(Trait::softmax) || (score_sized && works_on_scores(traits));
}

}  // namespace

std::optional<Verdict> library_workspace(const Block& block, const Scene& scene) {
  const StackTraits& traits = scene.traits.of(block.stack);
  if (traits.has(Trait::nccl) || traits.has(Trait::gradient_buckets))
    return Verdict{Category::communication, "", "made by NCCL or by DDP's reducer", 0.9};
  if (traits.has(Trait::sharding)) return Verdict{Category::communication, "", "made by FSDP", 0.8};
  if (traits.has(Trait::blas_workspace))
    return Verdict{Category::workspace, "", "workspace of a BLAS library", 0.95};
  if (traits.has(Trait::dropout_states))
    return Verdict{Category::workspace, "", "random states of cuDNN's dropout", 0.95};
  if (comparable_size(block) == kBlasWorkspace)
    return Verdict{Category::workspace, "",
                   "has exactly the size of PyTorch's cuBLAS workspace (8,519,680 bytes)", 0.9};
  if (traits.has(Trait::cudnn) && !traits.has(Trait::tensor_creation))
    return Verdict{Category::workspace, "", "made by cuDNN", 0.85};
  return std::nullopt;
}

std::optional<Verdict> logits(const Block& block, const Scene& scene) {
  const StackTraits& traits = scene.traits.of(block.stack);
  if (!is_forward(traits)) return std::nullopt;
  // A training loop's own function may be called after the loss and draw the batch.
  const bool draws = !traits.has(Trait::module_forward) &&
                     (traits.outer_op.starts_with("rand") || traits.outer_op.starts_with("arange"));
  if (draws)
    return Verdict{Category::inputs, "",
                   fmt::format("drawn by {}, outside any module", traits.outer_op), 0.7};
  if (traits.has(Trait::log_softmax) || traits.has(Trait::loss))
    return Verdict{Category::activations, "logits", "made by the loss over the vocabulary", 0.93};
  const uint64_t size = comparable_size(block);
  // In half precision before they are cast: then a linear layer has made them.
  const bool before_cast = (traits.op.empty() || traits.has(Trait::projection)) &&
                           scene.evidence().is_logits_size(size * 2);
  const bool logit_sized = scene.evidence().is_logits_size(size) || before_cast;
  if (logit_sized && !traits.has(Trait::attention_code) &&
      !is_attention_operator(traits, scene.evidence().is_softmax_size(size)))
    return Verdict{Category::activations, "logits",
                   "has the size of the logits that the loss reads", 0.85};
  return std::nullopt;
}

std::optional<Verdict> attention(const Block& block, const Scene& scene) {
  const StackTraits& traits = scene.traits.of(block.stack);
  if (!is_forward(traits)) return std::nullopt;
  const uint64_t size = comparable_size(block);
  if (traits.has(Trait::mask)) return Verdict{Category::attention, "", "an attention mask", 0.85};
  if (traits.has(Trait::fused_attention)) {
    // The fused kernels make their output, which is an activation like any other, and the
    // log-sum-exp and scratch, which are smaller by a factor of the head size.
    if (scene.evidence().is_product_size(size))
      return Verdict{Category::activations, "", "output of fused attention", 0.9};
    return Verdict{Category::attention, "", "log-sum-exp or scratch of fused attention", 0.85};
  }
  if (traits.has(Trait::dot_product_attention) && traits.has(Trait::selection))
    return Verdict{Category::attention, "", "an attention mask, made ready for the kernel", 0.9};
  if (traits.has(Trait::softmax) && !traits.has(Trait::loss))
    return Verdict{Category::attention, "", "result of the attention's softmax", 0.95};
  // Where classes have no names (PyTorch's snapshots), the operator and the size are all there is.
  if (!traits.has(Trait::attention_code)) {
    // Autocast halves what the product with V reads.
    const bool cast = traits.has(Trait::autocast) &&
                      (traits.outer_op == "matmul" || traits.outer_op == "bmm") &&
                      scene.evidence().is_softmax_size(size * 2);
    const bool same = cast || (scene.evidence().is_softmax_size(size) && works_on_scores(traits));
    if (!same || scene.evidence().is_product_size(size)) return std::nullopt;
    // A model's MLP may be as wide as a row of scores is long.
    if (!scene.evidence().is_near_softmax(block.stack)) return std::nullopt;
    return Verdict{Category::attention, "", "as large as the scores, by an operator used on them",
                   0.75};
  }
  if (is_mask_or_bias(traits))
    return Verdict{Category::attention, "", "a mask or bias, made inside an attention", 0.8};
  const bool projected = traits.has(Trait::projection) && !traits.has(Trait::batched_product);
  if (is_score_sized(size, traits, scene.evidence()) && !projected) {
    const bool ambiguous = scene.evidence().is_projection_size(size);
    return Verdict{Category::attention, "", "made in attention code, as large as the scores",
                   ambiguous ? 0.6 : 0.92};
  }
  return std::nullopt;
}

std::optional<Verdict> activations(const Block& block, const Scene& scene) {
  const StackTraits& traits = scene.traits.of(block.stack);
  if (!is_forward(traits)) return std::nullopt;
  const uint64_t size = comparable_size(block);
  if (traits.has(Trait::autocast) && scene.evidence().is_parameter_size(size * 2) &&
      !scene.evidence().is_activation_size(size * 2))
    return Verdict{Category::activations, "autocast",
                   "a parameter cast for autocast, kept until the region ends", 0.75};
  if (traits.activity() == Activity::recomputation)
    return Verdict{Category::activations, "", "made again for the backward pass", 0.9};
  return Verdict{Category::activations, "", "made in a module's forward", 0.88};
}

std::optional<Verdict> inputs(const Block& block, const Scene& scene) {
  const StackTraits& traits = scene.traits.of(block.stack);
  if (traits.activity() == Activity::data_loading)
    return Verdict{Category::inputs, "", "made where data is loaded", 0.9};
  // Between the forward passes of a generation, results are moved and cast, not brought.
  if (traits.activity() == Activity::unknown && !traits.has(Trait::generation) &&
      brings_data(traits.outer_op))
    return Verdict{Category::inputs, "",
                   fmt::format("brought to the device or drawn there by {}, outside any module",
                               traits.outer_op),
                   0.7};
  return std::nullopt;
}

std::optional<Verdict> results_outside_modules(const Block& block, const Scene& scene) {
  const StackTraits& traits = scene.traits.of(block.stack);
  if (traits.activity() != Activity::unknown || traits.op.empty()) return std::nullopt;
  return Verdict{Category::activations, "",
                 fmt::format("result of {}, outside any module", traits.outer_op), 0.6};
}

}  // namespace vramtrack
