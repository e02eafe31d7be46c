#include "attribution/stack_traits.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace vramtrack {
namespace {

enum class In : uint8_t { python, native };

// A frame has the trait if its function contains `function` and its file contains `file` (empty:
// any). Matching ignores case, since people write Attention, attention and ATTN.
struct Pattern {
  Trait trait;
  In in;
  std::string_view function;
  std::string_view file = {};
};

constexpr std::array kPatterns = std::to_array<Pattern>({
    // Phases.
    {Trait::backward, In::native, "torch::autograd::engine::"},
    {Trait::backward, In::native, "torch::autograd::generated::"},
    {Trait::backward, In::native, "torch::autograd::accumulategrad"},
    {Trait::backward, In::python, "backward", "torch/_tensor.py"},
    {Trait::backward, In::python, "", "torch/autograd/graph.py"},
    {Trait::accumulate_grad, In::native, "torch::autograd::accumulategrad"},
    {Trait::checkpointed, In::python, "", "torch/utils/checkpoint.py"},
    {Trait::recomputation, In::python, "recompute_fn", "torch/utils/checkpoint.py"},
    {Trait::recomputation, In::python, "unpack_hook", "torch/utils/checkpoint.py"},
    {Trait::recomputation, In::python, "backward", "torch/utils/checkpoint.py"},
    {Trait::optimizer, In::python, "", "torch/optim/"},
    {Trait::optimizer, In::python, "step", "optim"},
    {Trait::optimizer, In::python, "update", "optim"},
    {Trait::optimizer, In::python, "", "bitsandbytes/optim"},
    {Trait::optimizer, In::native, "fused_adam"},
    {Trait::optimizer_state_creation, In::python, "_init_group", "optim"},
    {Trait::optimizer_state_creation, In::python, "init_state", "optim"},
    {Trait::gradient_scaling, In::python, "", "torch/amp/grad_scaler.py"},
    {Trait::gradient_scaling, In::python, "", "torch/nn/utils/clip_grad.py"},
    {Trait::gradient_scaling, In::python, "clip_grad"},
    {Trait::module_move, In::python, "_apply", "torch/nn/modules/module.py"},
    {Trait::module_move, In::python, ".to", "torch/nn/modules/module.py"},
    {Trait::module_move, In::python, "convert", "torch/nn/modules/module.py"},
    {Trait::module_creation, In::python, "__init__", "torch/nn/modules"},
    {Trait::module_creation, In::python, "reset_parameters"},
    {Trait::module_creation, In::python, "init_weights"},
    {Trait::module_creation, In::python, "from_pretrained"},
    {Trait::module_creation, In::python, "load_state_dict"},
    {Trait::module_creation, In::python, "", "torch/nn/init.py"},
    {Trait::module_forward, In::python, "forward"},
    {Trait::module_forward, In::python, "_call_impl", "torch/nn/modules/module.py"},
    {Trait::generation, In::python, "generate"},
    {Trait::generation, In::python, "", "transformers/generation/"},
    {Trait::data_loading, In::python, "", "torch/utils/data/"},
    {Trait::data_loading, In::python, "collate"},
    {Trait::data_loading, In::python, "get_batch"},
    {Trait::data_loading, In::python, "prepare_input"},
    // Parts of a model.
    {Trait::attention_code, In::python, "attention"},
    {Trait::attention_code, In::python, "attn"},
    {Trait::dot_product_attention, In::native, "at::_ops::scaled_dot_product_attention::"},
    {Trait::selection, In::native, "at::_ops::where"},
    {Trait::fused_attention, In::native, "_scaled_dot_product_flash"},
    {Trait::fused_attention, In::native, "_scaled_dot_product_efficient"},
    {Trait::fused_attention, In::native, "_scaled_dot_product_cudnn"},
    {Trait::fused_attention, In::native, "_flash_attention"},
    {Trait::fused_attention, In::native, "_efficient_attention"},
    {Trait::fused_attention, In::native, "mha_fwd"},
    {Trait::fused_attention, In::native, "mha_varlen"},
    {Trait::fused_attention, In::python, "", "flash_attn/"},
    {Trait::fused_attention, In::python, "flash_attn"},
    {Trait::softmax, In::native, "at::_ops::_softmax::"},
    {Trait::softmax, In::native, "at::_ops::softmax"},
    {Trait::softmax, In::native, "at::_ops::_safe_softmax"},
    {Trait::softmax, In::python, "softmax"},
    {Trait::log_softmax, In::native, "log_softmax"},
    {Trait::log_softmax, In::python, "log_softmax"},
    {Trait::loss, In::native, "cross_entropy"},
    {Trait::loss, In::native, "nll_loss"},
    {Trait::loss, In::native, "nlllossbackward"},
    {Trait::loss, In::native, "logsoftmaxbackward"},
    {Trait::loss, In::python, "cross_entropy"},
    {Trait::loss, In::python, "loss"},
    {Trait::mask, In::python, "mask"},
    {Trait::mask, In::native, "at::_ops::triu"},
    {Trait::mask, In::native, "at::_ops::tril"},
    {Trait::rotary, In::python, "rotary"},
    {Trait::rotary, In::python, "rotate_half"},
    {Trait::rotary, In::python, "rope"},
    {Trait::cache_update, In::python, "", "transformers/cache_utils.py"},
    {Trait::cache_update, In::python, "cache.update"},
    {Trait::cache_update, In::python, "kv_cache"},
    {Trait::cache_update, In::python, "kvcache"},
    {Trait::key_value_copies, In::python, "repeat_kv"},
    {Trait::concatenation, In::native, "at::_ops::cat::"},
    {Trait::projection, In::native, "at::_ops::linear"},
    {Trait::projection, In::native, "at::_ops::addmm"},
    {Trait::projection, In::native, "at::_ops::mm::"},
    {Trait::projection, In::python, "forward", "torch/nn/modules/linear.py"},
    {Trait::embedding, In::native, "at::_ops::embedding"},
    {Trait::embedding, In::python, "", "torch/nn/modules/sparse.py"},
    {Trait::batched_product, In::native, "at::_ops::bmm"},
    {Trait::batched_product, In::native, "at::_ops::baddbmm"},
    {Trait::dropout, In::native, "dropout"},
    {Trait::dropout, In::python, "dropout"},
    {Trait::autocast, In::native, "at::autocast::"},
    {Trait::tensor_creation, In::native, "at::detail::empty"},
    // Libraries.
    {Trait::blas_workspace, In::native, "workspace"},
    {Trait::blas_workspace, In::native, "cublascreate"},
    {Trait::blas_workspace, In::native, "getcurrentcudablashandle"},
    {Trait::dropout_states, In::native, "init_dropout_state"},
    {Trait::cudnn, In::native, "cudnn"},
    {Trait::nccl, In::native, "nccl"},
    {Trait::gradient_buckets, In::native, "c10d::reducer"},
    {Trait::sharding, In::python, "", "torch/distributed/fsdp/"},
    {Trait::sharding, In::python, "", "torch/distributed/_composable/fsdp"},
    {Trait::graph_capture, In::python, "", "torch/cuda/graphs.py"},
    {Trait::compiled, In::python, "", "torchinductor_"},
});

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// Words that contain a pattern and mean something else.
bool is_exception(Trait trait, const std::string& function) {
  switch (trait) {
    case Trait::softmax:
      return function.find("log_softmax") != std::string::npos;
    case Trait::blas_workspace:
      return function.find("cudnn") != std::string::npos;
    case Trait::data_loading:
      return function.find("for_generation") != std::string::npos;
    case Trait::generation:
      return function.find("generated::") != std::string::npos;
    default:
      return false;
  }
}

// "at::_ops::_softmax::call(...)" -> "_softmax".
std::string_view operator_of(const Frame& frame) {
  constexpr std::string_view kPrefix = "at::_ops::";
  const std::string_view name = frame.function;
  const size_t at = name.find(kPrefix);
  if (frame.python || at == std::string_view::npos) return {};
  const std::string_view rest = name.substr(at + kPrefix.size());
  return rest.substr(0, rest.find("::"));
}

// "torch::autograd::generated::SoftmaxBackward0::apply(...)" -> "SoftmaxBackward0".
std::string_view backward_node_of(const Frame& frame) {
  constexpr std::string_view kPrefix = "torch::autograd::generated::";
  const std::string_view name = frame.function;
  const size_t at = name.find(kPrefix);
  if (frame.python || at == std::string_view::npos) return {};
  const std::string_view rest = name.substr(at + kPrefix.size());
  const std::string_view node = rest.substr(0, rest.find_first_of(":_("));
  return node.find("Backward") == std::string_view::npos ? std::string_view() : node;
}

constexpr uint64_t bit(Trait trait) {
  return uint64_t{1} << static_cast<int>(trait);
}

// What surrounds a module's forward says nothing about a tensor made inside it:
// Trainer.compute_loss calls the whole model.
constexpr uint64_t kNotAroundForward = bit(Trait::loss) | bit(Trait::mask);

// "GPT.forward" -> "GPT"; nothing for a bare "forward" (Python before 3.11 has no qualified names).
std::string_view class_of_forward(const Frame& frame) {
  constexpr std::string_view kSuffix = ".forward";
  const std::string_view name = frame.function;
  if (!frame.python || !name.ends_with(kSuffix)) return {};
  return name.substr(0, name.size() - kSuffix.size());
}

// Operators that others call to make room for their results.
bool only_makes_room(std::string_view op) {
  return op.starts_with("empty") || op.starts_with("new_empty") || op.starts_with("resize");
}

void describe_operators(StackTraits& traits, const Frame& frame, bool& in_run) {
  const std::string_view op = operator_of(frame);
  if (!op.empty() && in_run) {
    if (traits.op.empty() || only_makes_room(traits.op)) traits.op = op;
    traits.outer_op = op;
  }
  // A run of operators ends where Python, or the autograd engine, called it.
  if (frame.python || !backward_node_of(frame).empty()) in_run = in_run && traits.op.empty();
}

}  // namespace

std::string_view name_of(Activity activity) {
  switch (activity) {
    case Activity::unknown:
      return "unknown";
    case Activity::initialisation:
      return "initialisation";
    case Activity::data_loading:
      return "data loading";
    case Activity::forward:
      return "forward";
    case Activity::backward:
      return "backward";
    case Activity::recomputation:
      return "recomputation";
    case Activity::optimizer:
      return "optimizer";
    case Activity::communication:
      return "communication";
  }
  return "unknown";
}

Activity StackTraits::activity() const {
  if (has(Trait::optimizer)) return Activity::optimizer;
  if (has(Trait::backward) || has(Trait::accumulate_grad) || !backward_node.empty())
    return has(Trait::recomputation) && has(Trait::module_forward) ? Activity::recomputation
                                                                   : Activity::backward;
  if (has(Trait::recomputation)) return Activity::recomputation;
  if (has(Trait::gradient_scaling)) return Activity::optimizer;
  if (has(Trait::gradient_buckets) || has(Trait::nccl)) return Activity::communication;
  if (has(Trait::module_move)) return Activity::initialisation;
  if (has(Trait::module_forward)) return Activity::forward;
  if (has(Trait::loss) || has(Trait::log_softmax)) return Activity::forward;
  if (has(Trait::module_creation)) return Activity::initialisation;
  if (has(Trait::data_loading)) return Activity::data_loading;
  return Activity::unknown;
}

uint64_t StackTraitsCache::bits_of(FrameId id) const {
  const auto [entry, added] = frames_.try_emplace(id, 0);
  if (!added) return entry->second;
  const Frame& frame = definitions_->frame(id);
  const std::string function = lower(frame.function);
  const std::string file = lower(frame.file);
  for (const Pattern& pattern : kPatterns) {
    if ((pattern.in == In::python) != frame.python) continue;
    if (function.find(pattern.function) == std::string::npos) continue;
    if (file.find(pattern.file) == std::string::npos) continue;
    if (is_exception(pattern.trait, function)) continue;
    entry->second |= bit(pattern.trait);
  }
  return entry->second;
}

const StackTraits& StackTraitsCache::of(StackId stack) const {
  constexpr StackId kMostById = 1 << 20;  // an id beyond may come from a damaged file
  if (stack < by_id_.size() && by_id_[stack] != nullptr) return *by_id_[stack];
  const auto [entry, added] = stacks_.try_emplace(stack);
  StackTraits& traits = entry->second;
  if (stack < kMostById) {
    if (stack >= by_id_.size()) by_id_.resize(stack + size_t{1});
    by_id_[stack] = &traits;
  }
  if (!added) return traits;
  bool in_run = true;
  bool in_forward = false;
  for (const FrameId id : definitions_->stack(stack)) {
    const Frame& frame = definitions_->frame(id);
    traits.empty = false;
    traits.native = traits.native || !frame.python;
    const uint64_t bits = bits_of(id);
    traits.bits |= in_forward && frame.python ? bits & ~kNotAroundForward : bits;
    in_forward = in_forward || (bits & bit(Trait::module_forward)) != 0;
    describe_operators(traits, frame, in_run);
    if (traits.backward_node.empty()) traits.backward_node = backward_node_of(frame);
    if (frame.python && traits.function.empty()) traits.function = frame.function;
    if (frame.python && frame.function.ends_with("__init__")) traits.constructor = frame.function;
    if (const std::string_view module = class_of_forward(frame); !module.empty())
      traits.module =
          traits.module.empty() ? std::string(module) : std::string(module) + "/" + traits.module;
  }
  return traits;
}

}  // namespace vramtrack
