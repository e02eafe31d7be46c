// The addresses of all exports, without their signatures: cuda.h is not included here.
#include <algorithm>
#include <vector>

#include "proc_address.h"

#define SIMGPU_ENTRY(exported, name, version, per_thread) extern "C" int exported();
#include "entry_points.def"
#undef SIMGPU_ENTRY

namespace simgpu {

EntryPoints entry_points() {
  static const auto* const table = [] {
    auto* entries = new std::vector<EntryPoint>{
#define SIMGPU_ENTRY(exported, name, version, per_thread) \
  {#exported, #name, version, per_thread, reinterpret_cast<void (*)()>(exported)},
#include "entry_points.def"
#undef SIMGPU_ENTRY
    };
    std::stable_sort(entries->begin(), entries->end(),
                     [](const EntryPoint& a, const EntryPoint& b) { return a.name < b.name; });
    return entries;
  }();
  return {table->data(), table->data() + table->size()};
}

}  // namespace simgpu
