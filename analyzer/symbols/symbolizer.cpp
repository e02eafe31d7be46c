#include "symbols/symbolizer.h"

#include <map>
#include <set>

#include "symbols/elf_file.h"
#include "symbols/module_index.h"

namespace vramtrack {

SymbolizeResult symbolize(const RawDefinitions& definitions) {
  const ModuleIndex modules(definitions);
  std::map<const RawModule*, std::set<uint64_t>> wanted;  // offsets by module
  std::set<uint64_t> homeless;
  for (const RawStack& stack : definitions.stacks) {
    for (const RawFrame& frame : stack.frames) {
      if (frame.python || frame.value == 0) continue;
      const RawModule* module = modules.find(stack.id, frame.value);
      if (module == nullptr)
        homeless.insert(frame.value);
      else
        wanted[module].insert(frame.value - module->base);
    }
  }

  SymbolizeResult result;
  result.addresses = homeless.size();
  for (const auto& [module, offsets] : wanted) {
    result.addresses += offsets.size();
    const auto file = ElfFile::open(module->path, module->build_id);
    if (file == nullptr) {
      result.missing_modules.push_back(module->path);
      continue;
    }
    for (const uint64_t offset : offsets) {
      std::vector<Frame> frames = file->frames(offset);
      if (frames.empty()) continue;
      for (Frame& frame : frames) {
        frame.module = module->path;
        if (frame.file.empty()) frame.file = module->path;
      }
      ++result.resolved;
      result.symbols.add(module->id, module->path, offset, std::move(frames));
    }
  }
  return result;
}

}  // namespace vramtrack
