#include "kernels/effects.h"

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "kernels/elementwise.h"
#include "kernels/reduce.h"

namespace simgpu {
namespace {

struct Effects {
  std::optional<ElementwiseKernel> elementwise;
  std::optional<ReduceKernel> reduce;
};

Effects parse(const char* mangled) {
  Effects effects;
  const KernelName name = parse_kernel_name(mangled);
  effects.elementwise = parse_elementwise(name);
  if (!effects.elementwise) effects.reduce = parse_reduce(name);
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
  if (effects.elementwise) apply_elementwise(*effects.elementwise, parameters);
  if (effects.reduce) apply_reduce(*effects.reduce, parameters);
}

}  // namespace simgpu
