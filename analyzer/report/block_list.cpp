#include "report/block_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "attribution/call_site.h"
#include "attribution/module_path.h"
#include "report/build_report.h"
#include "report/json_report.h"
#include "trace/input_error.h"
#include "wording/lines.h"
#include "wording/units.h"

namespace vramtrack {
namespace {

using Json = nlohmann::ordered_json;

struct Chosen {
  Timeline timeline;
  std::vector<int16_t> devices;
  std::vector<Moment> moments;  // one for each device
};

Chosen choose(const Recording& recording, const BlockListOptions& options) {
  Chosen chosen{.timeline = survey(recording)};
  for (const auto& [device, course] : chosen.timeline.devices) {
    if (options.device != -2 && options.device != device) continue;
    const bool elsewhere = options.at == "oom" && course.ooms.empty() && options.device == -2 &&
                           chosen.timeline.devices.size() > 1;
    if (elsewhere) continue;
    chosen.devices.push_back(device);
    chosen.moments.push_back(find_moment(chosen.timeline, options.at, device));
  }
  if (chosen.devices.empty() && options.at == "oom") {
    throw InputError("no allocation ran out of memory in this recording");
  }
  if (chosen.devices.empty() && options.device != -2) {
    throw InputError(fmt::format("the recording has no device {}", options.device));
  }
  return chosen;
}

std::string_view name_of(Block::Origin origin) {
  switch (origin) {
    case Block::Origin::allocator:
      return "allocator";
    case Block::Origin::driver:
      return "driver";
    case Block::Origin::stream_pool:
      return "stream_pool";
    case Block::Origin::vmm:
      return "vmm";
  }
  return "";
}

std::string_view name_of(Memory memory) {
  switch (memory) {
    case Memory::managed:
      return "managed";
    case Memory::pinned:
      return "pinned";
    case Memory::registered:
      return "registered";
    case Memory::array:
      return "array";
    case Memory::pool:
      return "pool";
    case Memory::graph:
      return "graph";
    case Memory::vmm_host:
      return "vmm_host";
    default:
      return "device";
  }
}

Json text_or_null(std::string_view text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json json_of(const Touch& touch, const Definitions& definitions) {
  return {{"kernel", toucher_title(definitions, touch.kernel)},
          {"time_s", static_cast<double>(touch.time_ns) * 1e-9},
          {"step", touch.step == kNoStep ? Json(nullptr) : Json(touch.step)},
          {"sequence", touch.sequence}};
}

Json json_of(const BlockTouches& touches, const Definitions& definitions) {
  return {{"count", touches.count},
          {"first", json_of(touches.first, definitions)},
          {"last", json_of(touches.last, definitions)},
          {"idle",
           {{"from", json_of(touches.idle_from, definitions)},
            {"to", json_of(touches.idle_to, definitions)},
            {"launches", touches.idle_work()}}}};
}

// How the kernel of a block is known: from what launches were given, or only from their order.
Json kernel_source(const Block& block, const BlockTouches* touches) {
  if (touches != nullptr) return "arguments";
  return block.kernel != 0 ? Json("next launch") : Json(nullptr);
}

Json json_of(const Block& block, const Verdict& verdict, const Scene& scene) {
  const Definitions& definitions = scene.definitions();
  const BlockTouches* touches = scene.touches(block);
  return {{"device", block.device},
          {"stream", block.stream},
          {"address", block.address},
          {"size", block.size},
          {"requested", block.requested == 0 ? Json(nullptr) : Json(block.requested)},
          {"pool", block.pool},
          {"origin", name_of(block.origin)},
          {"memory", name_of(block.memory)},
          {"api", text_or_null(definitions.string(block.api))},
          {"category", name_of(verdict.category)},
          {"sub_row", text_or_null(verdict.sub_row)},
          {"reason", verdict.reason},
          {"confidence", verdict.confidence},
          {"label", text_or_null(definitions.string(block.label))},
          {"phase", text_or_null(definitions.string(block.phase))},
          {"step", block.step == kNoStep ? Json(nullptr) : Json(block.step)},
          {"time_s", static_cast<double>(block.time_ns) * 1e-9},
          {"sequence", block.sequence},
          {"thread", block.thread},
          {"thread_name", text_or_null(definitions.thread_name(block.thread))},
          {"module", text_or_null(module_classes(definitions, block.stack))},
          {"module_name", text_or_null(module_name(definitions, block))},
          {"kernel", text_or_null(definitions.string(block.kernel))},
          {"kernel_source", kernel_source(block, touches)},
          {"kernel_role", text_or_null(name_of(scene.kernel_role(block)))},
          {"touches", touches != nullptr ? json_of(*touches, definitions) : Json(nullptr)},
          {"site", call_site(definitions, block.stack)},
          {"frames", json_frames(definitions, block.stack)}};
}

// Calls visit(scene, block, verdict) for each block that was asked for.
template <class Begin, class Visit>
void walk(const Recording& recording, const Chosen& chosen, const BlockListOptions& options,
          Begin&& begin, Visit&& visit) {
  visit_states(recording, chosen.moments, [&](size_t index, const MemoryState& state) {
    begin(chosen.moments[index], state);
    const Scene scene(recording, chosen.timeline, state);
    state.for_each_live(chosen.devices[index], [&](const Block& block) {
      const Verdict verdict = judge(block, scene);
      if (row_matches(verdict, options.category)) visit(scene, block, verdict);
    });
  });
}

}  // namespace

void write_blocks_json(const Recording& recording, const BlockListOptions& options, FILE* out) {
  const Chosen chosen = choose(recording, options);
  Json head = {{"schema", "vramtrack.blocks/1"}};
  head.update(json_of(recording.info()));
  head["at"] = options.at.empty() ? "default" : options.at;
  std::string text = dump(head);
  text.resize(text.rfind("\n}"));  // the blocks follow in the same object
  fmt::print(out, "{},\n  \"blocks\": [", text);
  const char* separator = "\n";
  walk(
      recording, chosen, options, [](const Moment&, const MemoryState&) {},
      [&](const Scene& scene, const Block& block, const Verdict& verdict) {
        const Json json = json_of(block, verdict, scene);
        fmt::print(out, "{}{}", separator,
                   json.dump(-1, ' ', false, Json::error_handler_t::replace));
        separator = ",\n";
      });
  fmt::print(out, "\n  ]\n}}\n");
}

void write_blocks_text(const Recording& recording, const BlockListOptions& options, FILE* out) {
  const Chosen chosen = choose(recording, options);
  struct Line {
    uint64_t size;
    std::string text;
  };
  std::vector<Line> lines;
  uint64_t blocks = 0;
  const auto flush = [&] {
    std::stable_sort(lines.begin(), lines.end(),
                     [](const Line& a, const Line& b) { return a.size > b.size; });
    const size_t shown = std::min(options.top, lines.size());
    for (size_t i = 0; i < shown; ++i) fmt::print(out, "{}\n", lines[i].text);
    if (shown < blocks) fmt::print(out, "  ... and {} more\n", grouped(blocks - shown));
    lines.clear();
    blocks = 0;
  };
  walk(
      recording, chosen, options,
      [&](const Moment& moment, const MemoryState& state) {
        flush();
        fmt::print(out, "Device {} at {} ({}): {} in use\n", moment.device, moment.name,
                   seconds(state.time_ns()), quantity(state.totals(moment.device).in_use));
        fmt::print(out, "  {:>18}{:>13}  {:<22}{:>5}  {}\n", "address", "size", "category", "sure",
                   "call site");
      },
      [&](const Scene& /*scene*/, const Block& block, const Verdict& verdict) {
        ++blocks;
        lines.push_back(
            {block.size,
             fmt::format("  {:>#18x}{:>13}  {:<22}{:>5.2f}  {}", block.address,
                         quantity(block.size), shortened(verdict.row(), 21), verdict.confidence,
                         shortened(call_site(recording.definitions(), block.stack), 28))});
      });
  flush();
}

}  // namespace vramtrack
