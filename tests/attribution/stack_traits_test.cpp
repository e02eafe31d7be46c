// What single stacks say. The frames are shaped like those PyTorch really has; file and function
// names are the ones of its sources.
#include "attribution/stack_traits.h"

#include <catch2/catch.hpp>

namespace vramtrack {
namespace {

class Stacks {
 public:
  Stacks& python(const std::string& function, const std::string& file) {
    frames_.push_back(
        definitions_.intern_frame({.function = function, .file = file, .python = true}));
    return *this;
  }
  Stacks& native(const std::string& function) {
    frames_.push_back(definitions_.intern_frame({.function = function}));
    return *this;
  }
  // Frames were added innermost first.
  StackTraits traits() {
    const StackId id = definitions_.intern_stack(frames_);
    return StackTraitsCache(definitions_).of(id);
  }

 private:
  Definitions definitions_;
  std::vector<FrameId> frames_;
};

constexpr const char* kModule = "/site-packages/torch/nn/modules/module.py";

TEST_CASE("eager attention: operator, phase and modules") {
  const StackTraits traits =
      Stacks()
          .native("at::_ops::_softmax::redispatch(c10::DispatchKeySet, at::Tensor)")
          .native("at::_ops::_softmax::call(at::Tensor const&, long, bool)")
          .native("at::_ops::softmax_int::call(at::Tensor const&, long)")
          .python("Attention.forward", "train.py")
          .python("Module._call_impl", kModule)
          .native("at::_ops::unrelated::call()")
          .python("Block.forward", "train.py")
          .traits();
  CHECK(traits.activity() == Activity::forward);
  CHECK(traits.op == "_softmax");
  CHECK(traits.outer_op == "softmax_int");
  CHECK(traits.module == "Block/Attention");
  CHECK(traits.has(Trait::softmax));
  CHECK(traits.has(Trait::attention_code));
  CHECK_FALSE(traits.has(Trait::loss));
}

TEST_CASE("a backward node is named and is no forward") {
  const StackTraits traits =
      Stacks()
          .native("at::_ops::mm::call(at::Tensor const&, at::Tensor const&)")
          .native("torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)")
          .native("torch::autograd::Engine::evaluate_function(std::shared_ptr<GraphTask>&)")
          .native("torch::autograd::Engine::thread_main(std::shared_ptr<GraphTask> const&)")
          .traits();
  CHECK(traits.activity() == Activity::backward);
  CHECK(traits.backward_node == "MmBackward0");
  CHECK_FALSE(traits.has(Trait::generation));  // "generated::" is not generate()
}

TEST_CASE("checkpointing runs a forward inside the backward pass") {
  const StackTraits traits =
      Stacks()
          .native("at::_ops::addmm::call(at::Tensor const&)")
          .python("Linear.forward", "/site-packages/torch/nn/modules/linear.py")
          .python("checkpoint.<locals>.recompute_fn", "/site-packages/torch/utils/checkpoint.py")
          .native("torch::autograd::Engine::evaluate_function(std::shared_ptr<GraphTask>&)")
          .traits();
  CHECK(traits.activity() == Activity::recomputation);
}

TEST_CASE("optimizers, moves and loss are told apart") {
  CHECK(Stacks()
            .native("at::_ops::zeros_like::call(at::Tensor const&)")
            .python("AdamW._init_group", "/site-packages/torch/optim/adam.py")
            .traits()
            .has(Trait::optimizer_state_creation));
  CHECK(Stacks()
            .native("at::_ops::_to_copy::call(at::Tensor const&)")
            .python("Module.to.<locals>.convert", kModule)
            .python("Module._apply", kModule)
            .traits()
            .activity() == Activity::initialisation);
  const StackTraits loss = Stacks()
                               .native("at::_ops::_log_softmax::call(at::Tensor const&)")
                               .python("cross_entropy", "/site-packages/torch/nn/functional.py")
                               .traits();
  CHECK(loss.activity() == Activity::forward);
  CHECK(loss.has(Trait::log_softmax));
  CHECK_FALSE(loss.has(Trait::softmax));
}

TEST_CASE("a function named after the loss that calls the model is not the loss") {
  const StackTraits inside =
      Stacks()
          .native("at::_ops::addmm::call(at::Tensor const&)")
          .python("Linear.forward", "/site-packages/torch/nn/modules/linear.py")
          .python("Module._call_impl", kModule)
          .python("Trainer.compute_loss", "/transformers/trainer.py")
          .traits();
  CHECK_FALSE(inside.has(Trait::loss));
  CHECK(Stacks()
            .native("at::_ops::exp::call(at::Tensor const&)")
            .python("FocalLoss.forward", "train.py")
            .python("Module._call_impl", kModule)
            .traits()
            .has(Trait::loss));
}

TEST_CASE("an empty stack says nothing") {
  Definitions definitions;
  const StackTraitsCache cache(definitions);
  const StackTraits& traits = cache.of(0);
  CHECK(traits.empty);
  CHECK(traits.activity() == Activity::unknown);
}

}  // namespace
}  // namespace vramtrack
