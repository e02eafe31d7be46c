#include "symbols/module_index.h"

#include <algorithm>

namespace vramtrack {

ModuleIndex::ModuleIndex(const RawDefinitions& definitions) {
  for (const auto& [id, module] : definitions.modules) {
    if (module.begin >= module.end) continue;
    by_begin_.push_back(&module);
    largest_ = std::max(largest_, module.end - module.begin);
  }
  std::sort(by_begin_.begin(), by_begin_.end(),
            [](const RawModule* a, const RawModule* b) { return a->begin < b->begin; });
}

const RawModule* ModuleIndex::find(uint32_t stack_id, uint64_t pc) const {
  // A return address may stand just behind the last instruction of its function, or module.
  const uint64_t call = pc - 1;
  auto at = std::upper_bound(
      by_begin_.begin(), by_begin_.end(), call,
      [](uint64_t address, const RawModule* module) { return address < module->begin; });
  const RawModule* best = nullptr;
  while (at != by_begin_.begin()) {
    const RawModule* module = *--at;
    if (call - module->begin > largest_) break;
    if (call >= module->end || module->id > stack_id) continue;
    if (best == nullptr || module->id > best->id) best = module;
  }
  return best;
}

}  // namespace vramtrack
