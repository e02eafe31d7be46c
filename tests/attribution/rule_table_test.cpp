// One block for each rule of the table: the rule that is meant must be the first that speaks, and
// what it says must be right. No rule may go without such a block.
#include <catch2/catch.hpp>
#include <functional>
#include <set>

#include "job.h"

namespace vramtrack {
namespace {

constexpr uint64_t kSize = 4 << 20;

struct Case {
  const char* rule;
  const char* row;
  std::function<uint64_t(Job&)> make;  // returns the address of the block that is judged
};

const std::vector<std::string> kModel = {"Block.forward@train.py:50", "GPT.forward@train.py:60"};

Call op(const std::string& name, const std::vector<std::string>& python) {
  return {{"at::_ops::" + name + "::call()"}, python};
}

const std::vector<Case> kCases = {
    {"label", "kv_cache/pool",
     [](Job& job) {
       const uint64_t block = job.alloc(kSize, op("empty", kModel));
       job.label(block, kSize, "kv_cache/pool:all requests");
       return block;
     }},
    {"phase that names a category", "parameters",
     [](Job& job) {
       job.push("parameters");
       const uint64_t block = job.alloc(kSize, op("empty", kModel));
       job.pop();
       return block;
     }},
    {"memory of another library", "outside/libthird.so.3",
     [](Job& job) {
       job.alloc(kSize, op("empty", kModel));
       return job.direct(kSize, "libthird.so.3");
     }},
    {"memory of another library", "communication/nccl",
     [](Job& job) {
       job.alloc(kSize, op("empty", kModel));
       return job.direct(kSize, "libnccl.so.2");
     }},
    {"workspace of a library", "communication",
     [](Job& job) {
       return job.alloc(kSize, {{"at::_ops::empty::call()", "c10d::Reducer::initialize_buckets()"},
                                {"DistributedDataParallel.__init__@/torch/nn/parallel/d.py"}});
     }},
    {"workspace of a library", "communication",
     [](Job& job) {
       return job.alloc(kSize,
                        op("empty", {"all_gather@/torch/distributed/fsdp/_collectives.py:90"}));
     }},
    {"workspace of a library", "workspace",
     [](Job& job) {
       return job.alloc(8519680, {{"at::cuda::getCUDABlasLtWorkspace()"}, kModel});
     }},
    {"optimizer state", "optimizer_state",
     [](Job& job) {
       return job.alloc(kSize, op("zeros_like", {"AdamW._init_group@/torch/optim/adamw.py:100"}));
     }},
    {"optimizer state", "workspace/optimizer",
     [](Job& job) {
       const uint64_t block =
           job.alloc(kSize, op("_foreach_sqrt", {"_multi_tensor_adam@/torch/optim/adam.py:700"}));
       job.free(block, kMainThread);
       job.alloc(kSize, op("addmm", kModel));
       return block;
     }},
    {"gradient scaling", "workspace/optimizer",
     [](Job& job) {
       return job.alloc(kSize, op("stack", {"clip_grad_norm_@/torch/nn/utils/clip_grad.py:40"}));
     }},
    {"keys and values", "kv_cache",
     [](Job& job) {
       return job.alloc(kSize, op("cat", {"DynamicLayer.update@/transformers/cache_utils.py:100",
                                          "LlamaAttention.forward@/transformers/llama.py:200"}));
     }},
    {"parameters", "parameters",
     [](Job& job) {
       return job.alloc(kSize, op("_to_copy", {"Module.to.<locals>.convert@/torch/nn/modules/"
                                               "module.py:1300"}));
     }},
    {"gradients", "gradients",
     [](Job& job) {
       return job.alloc(kSize,
                        {{"torch::autograd::AccumulateGrad::apply()",
                          "torch::autograd::Engine::evaluate_function()"},
                         {}},
                        kEngineThread);
     }},
    {"threads without Python", "gradients",
     [](Job& job) {
       job.alloc(kSize, {{}, kModel});
       return job.frameless(kSize);
     }},
    {"older than the recording", "parameters", [](Job& job) { return job.old(kSize); }},
    {"logits and loss", "activations/logits",
     [](Job& job) {
       return job.alloc(kSize, op("_log_softmax", {"cross_entropy@/torch/nn/functional.py:3400"}));
     }},
    {"attention", "attention",
     [](Job& job) { return job.alloc(kSize, op("_softmax", {"Attention.forward@train.py:20"})); }},
    {"keys and values of a forward pass", "activations/kv",
     [](Job& job) {
       return job.alloc(kSize, op("clone", {"repeat_kv@/transformers/llama.py:30",
                                            "LlamaAttention.forward@/transformers/llama.py:200"}));
     }},
    {"activations", "activations", [](Job& job) { return job.alloc(kSize, op("gelu", kModel)); }},
    {"inputs", "inputs",
     [](Job& job) {
       return job.alloc(kSize, op("_to_copy", {"collate@/torch/utils/data/collate.py:80"}));
     }},
    {"results outside modules", "activations",
     [](Job& job) { return job.alloc(kSize, op("argmax", {"main@train.py:12"})); }},
};

// Of the block as it was when it was made, or labelled; what came later is evidence.
void check(const Case& of) {
  Job job;
  const uint64_t address = of.make(job);
  const Timeline timeline = survey(job);
  MemoryState state;
  bool found = false;
  job.for_each([&](const Event& event) {
    if (event.kind == EventKind::block_free && event.address == address) return false;
    state.apply(event);
    return true;
  });
  const Scene scene(job, timeline, state);
  state.for_each_live(0, [&](const Block& block) {
    if (block.address != address) return;
    found = true;
    CHECK(judge(block, scene).row() == of.row);
    CHECK_FALSE(judge(block, scene).reason.empty());
    CHECK(judge(block, scene).confidence > 0);
    for (const Rule& rule : rules()) {
      if (!rule.judge(block, scene)) continue;
      CHECK(rule.name == of.rule);
      break;
    }
  });
  CHECK(found);
}

TEST_CASE("each rule speaks for a block that is its own, before any other") {
  // What kernels do with a block is told by recordings of launches, which have tests of their own.
  std::set<std::string_view> spoken = {"kernels that use it"};
  for (const Case& of : kCases) {
    INFO("rule: " << of.rule << ", row: " << of.row);
    check(of);
    spoken.insert(of.rule);
  }
  for (const Rule& rule : rules()) {
    INFO("rule without a block: " << rule.name);
    CHECK(spoken.contains(rule.name));
  }
}

TEST_CASE("what no rule explains stays other") {
  Job job;
  const uint64_t block = job.alloc(kSize, {{"anonymous()"}, {}});
  CHECK(job.verdict(block).category == Category::other);
  CHECK(job.verdict(block).confidence == 0);
}

}  // namespace
}  // namespace vramtrack
