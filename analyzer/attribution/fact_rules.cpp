#include "attribution/fact_rules.h"

#include <fmt/format.h>

#include "attribution/call_site.h"

namespace vramtrack {
namespace {

// The library that asked the driver, where it is none of CUDA's own: "libnccl.so.2".
std::string library_of(const Definitions& definitions, StackId stack) {
  for (const FrameId id : definitions.stack(stack)) {
    const Frame& frame = definitions.frame(id);
    if (frame.python) break;
    std::string name = file_name(frame.module);
    if (!name.empty() && !is_cuda_library(name) && !is_system_library(name)) return name;
  }
  return {};
}

}  // namespace

std::optional<Verdict> category_in(std::string_view text) {
  const std::string_view name = text.substr(0, text.find_first_of("/:"));
  const std::optional<Category> category = category_named(name);
  if (!category) return std::nullopt;
  Verdict verdict{.category = *category};
  if (name.size() < text.size() && text[name.size()] == '/') {
    const std::string_view rest = text.substr(name.size() + 1);
    verdict.sub_row = rest.substr(0, rest.find(':'));
  }
  return verdict;
}

std::optional<Verdict> by_label(const Block& block, const Scene& scene) {
  const bool later = block.label == 0;
  const StringId id = later ? scene.evidence().label_of(block.sequence) : block.label;
  if (id == 0) return std::nullopt;
  const std::string_view label = scene.definitions().string(id);
  std::optional<Verdict> verdict = category_in(label);
  if (!verdict) return std::nullopt;
  verdict->reason = fmt::format("labelled {}{}", label, later ? " later on" : "");
  verdict->confidence = 1.0;
  return verdict;
}

std::optional<Verdict> by_phase(const Block& block, const Scene& scene) {
  if (block.phase == 0) return std::nullopt;
  const std::string_view phase = scene.definitions().string(block.phase);
  std::optional<Verdict> verdict = category_in(phase);
  if (!verdict) return std::nullopt;
  verdict->reason = fmt::format("allocated in phase {}", phase);
  verdict->confidence = 0.9;
  return verdict;
}

// Beside a caching allocator, whoever goes to the driver itself is another library. In a program
// without one, everybody does, and this says nothing.
std::optional<Verdict> by_library(const Block& block, const Scene& scene) {
  if (block.origin == Block::Origin::allocator || block.device < 0) return std::nullopt;
  const DeviceTimeline* device = scene.timeline.device(block.device);
  if (device == nullptr || !device->has_blocks) return std::nullopt;
  const std::string library = library_of(scene.definitions(), block.stack);
  if (library.starts_with("libnccl")) {
    return Verdict{.category = Category::communication,
                   .sub_row = "nccl",
                   .reason = "NCCL took it from the driver",
                   .confidence = 0.95};
  }
  return Verdict{.category = Category::outside,
                 .sub_row = library,
                 .reason = library.empty() ? "taken from the driver beside the caching allocator"
                                           : fmt::format("{} took it from the driver", library),
                 .confidence = 0.9};
}

}  // namespace vramtrack
