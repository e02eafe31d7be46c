#include "attribution/module_path.h"

#include <vector>

namespace vramtrack {

std::string_view module_in_label(std::string_view label) {
  std::string_view parameter;
  for (const std::string_view prefix : {"parameters:", "gradients:"})
    if (label.starts_with(prefix)) parameter = label.substr(prefix.size());
  constexpr std::string_view kOf = " of ";
  if (label.starts_with("optimizer_state:")) {
    const size_t of = label.rfind(kOf);
    if (of != std::string_view::npos) parameter = label.substr(of + kOf.size());
  }
  // What is no parameter of a module is called "param_groups[0][3]".
  if (parameter.find_first_of("[] ") != std::string_view::npos) return {};
  const size_t dot = parameter.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : parameter.substr(0, dot);
}

std::string_view module_name(const Definitions& definitions, const Block& block) {
  if (block.label != 0) {
    const std::string_view owner = module_in_label(definitions.string(block.label));
    if (!owner.empty()) return owner;
  }
  return definitions.string(block.module);
}

std::string module_classes(const Definitions& definitions, StackId stack) {
  constexpr std::string_view kForward = ".forward";
  std::vector<std::string_view> classes;
  for (const FrameId id : definitions.stack(stack)) {
    const Frame& frame = definitions.frame(id);
    const std::string_view function = frame.function;
    if (frame.python && function.ends_with(kForward)) {
      classes.push_back(function.substr(0, function.size() - kForward.size()));
    }
  }
  std::string path;
  for (auto at = classes.rbegin(); at != classes.rend(); ++at) {
    if (!path.empty()) path += '/';
    path += *at;
  }
  return path;
}

std::string module_path(const Definitions& definitions, const Block& block) {
  const std::string_view name = module_name(definitions, block);
  return name.empty() ? module_classes(definitions, block.stack) : std::string(name);
}

}  // namespace vramtrack
