#include "kernels/effects.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/distribution.h"
#include "kernels/elementwise.h"
#include "kernels/named.h"
#include "kernels/reduce.h"
#include "simgpu.h"

namespace simgpu {
namespace {

struct Effects {
  std::optional<ElementwiseKernel> elementwise;
  std::optional<ReduceKernel> reduce;
  NamedKernel named = nullptr;
  bool distribution = false;
  std::vector<std::size_t> outputs;  // parameters of other kernels that point to what they write

  const char* describe() const {
    if (named || (elementwise && elementwise->functor)) return "followed";
    if (reduce && reduce->reduction != Reduction::kOther) return "followed";
    return "forgotten";
  }
};

// A pointer to what is not const, or a structure of PyTorch's that starts with one.
bool points_to_output(std::string_view type) {
  if (type.find("const") != std::string_view::npos) return false;
  return type.ends_with('*') || type.find("TensorInfo<") != std::string_view::npos ||
         type.find("TensorAccessor") != std::string_view::npos;
}

// How much a kernel writes is not known; a block of the smallest size is what surely belongs to its
// output.
constexpr std::size_t kSmallestBlock = 512;

void forget_outputs(const Effects& effects, void* const* parameters) {
  for (const std::size_t index : effects.outputs) {
    std::uint64_t address;
    std::memcpy(&address, parameters[index], sizeof address);
    if (simgpu_is_device_address(address)) simgpu_forget(address, kSmallestBlock);
  }
}

Effects parse(const char* mangled) {
  Effects effects;
  const KernelName name = parse_kernel_name(mangled);
  effects.elementwise = parse_elementwise(name);
  if (!effects.elementwise) effects.reduce = parse_reduce(name);
  effects.named = find_named_kernel(name.text);
  effects.distribution = is_distribution(name);
  if (effects.elementwise || effects.reduce || effects.named || effects.distribution)
    return effects;
  for (std::size_t i = 0; i < name.parameters.size(); ++i) {
    if (points_to_output(name.parameters[i])) effects.outputs.push_back(i);
  }
  return effects;
}

struct Hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const {
    return std::hash<std::string_view>{}(name);
  }
};

// Kernels are launched from several threads; each name is parsed once. Never destroyed: launches go
// on at exit.
class Cache {
 public:
  const Effects& find(std::string_view name) {
    {
      std::shared_lock lock(mutex_);
      if (const auto found = effects_.find(name); found != effects_.end()) return *found->second;
    }
    auto parsed = std::make_unique<Effects>(parse(std::string(name).c_str()));
    std::unique_lock lock(mutex_);
    return *effects_.try_emplace(std::string(name), std::move(parsed)).first->second;
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<Effects>, Hash, std::equal_to<>> effects_;
};

Cache& cache() {
  static Cache* const instance = new Cache;
  return *instance;
}

}  // namespace

void apply_launch_effects(const char* name, void* const* parameters) {
  if (!name || !parameters) return;
  const Effects& effects = cache().find(name);
  // For whoever adds a kernel: what is launched, and whether it is followed.
  static const bool list = std::getenv("SIMGPU_LIST_KERNELS") != nullptr;
  if (list) std::fprintf(stderr, "%s %s\n", effects.describe(), name);
  if (effects.elementwise) apply_elementwise(*effects.elementwise, parameters);
  if (effects.reduce) apply_reduce(*effects.reduce, parameters);
  if (effects.named) effects.named(parameters);
  if (effects.distribution) apply_distribution(parameters);
  forget_outputs(effects, parameters);
}

}  // namespace simgpu
