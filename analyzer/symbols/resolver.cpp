#include "symbols/resolver.h"

#include <fmt/format.h>

#include "symbols/module_index.h"
#include "symbols/python_lines.h"
#include "symbols/symbol_store.h"
#include "trace/input_error.h"

namespace vramtrack {
namespace {

class StoredSymbols final : public FrameResolver {
 public:
  StoredSymbols(const RawDefinitions& definitions, SymbolStore store)
      : definitions_(definitions), modules_(definitions), store_(std::move(store)) {}

  std::vector<Frame> resolve(uint32_t stack_id, const RawFrame& frame) override {
    if (frame.python) return {python_frame(frame)};
    return native_frames(stack_id, frame.value);
  }

 private:
  [[nodiscard]] Frame python_frame(const RawFrame& raw) const {
    Frame frame;
    frame.python = true;
    const auto found = definitions_.codes.find(static_cast<uint32_t>(raw.value));
    if (found == definitions_.codes.end()) {
      frame.function = "??";
      return frame;
    }
    const RawCode& code = found->second;
    frame.function = code.name.empty() ? "??" : code.name;
    frame.file = code.file;
    frame.line = python_line(code.python_minor, code.line_table, code.first_line, raw.offset);
    if (frame.line == 0) frame.line = code.first_line;
    return frame;
  }

  [[nodiscard]] std::vector<Frame> native_frames(uint32_t stack_id, uint64_t pc) const {
    Frame frame;
    if (pc == 0) {
      frame.function = "[deeper frames were cut]";
      return {frame};
    }
    const RawModule* module = modules_.find(stack_id, pc);
    if (module == nullptr) {
      frame.function = fmt::format("?? at {:#x}", pc);
      return {frame};
    }
    if (const std::vector<Frame>* known = store_.find(module->id, pc - module->base)) return *known;
    frame.function = fmt::format("?? at {:#x}", pc - module->base);
    frame.file = module->path;
    frame.module = module->path;
    return {frame};
  }

  const RawDefinitions& definitions_;
  ModuleIndex modules_;
  SymbolStore store_;
};

bool has_native_frames(const RawDefinitions& definitions) {
  for (const RawStack& stack : definitions.stacks)
    for (const RawFrame& frame : stack.frames)
      if (!frame.python) return true;
  return false;
}

}  // namespace

std::unique_ptr<FrameResolver> make_frame_resolver(const RawDefinitions& definitions,
                                                   std::vector<std::string>& notes) {
  SymbolStore store;
  if (!definitions.symbols.empty()) {
    try {
      store = SymbolStore::parse(definitions.symbols);
    } catch (const InputError& error) {
      notes.emplace_back(error.what());
    }
  } else if (has_native_frames(definitions)) {
    notes.emplace_back(
        "native frames have no names yet: run `vramtrack symbolize FILE` where the job ran");
  }
  return std::make_unique<StoredSymbols>(definitions, std::move(store));
}

}  // namespace vramtrack
