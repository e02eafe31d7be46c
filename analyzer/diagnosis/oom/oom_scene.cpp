#include "diagnosis/oom/oom_scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "attribution/call_site.h"
#include "attribution/rules.h"
#include "trace/input_error.h"

namespace vramtrack {
namespace {

constexpr size_t kStepsShown = 8;
constexpr size_t kStackShown = 16;

struct Choice {
  int16_t device = -1;
  const OomEvent* event = nullptr;  // nullptr: no OOM
};

Choice choose(const Timeline& timeline, int16_t wanted) {
  Choice choice;
  uint64_t peak = 0;
  for (const auto& [ordinal, course] : timeline.devices) {
    if (wanted >= 0 ? ordinal != wanted : ordinal < 0) continue;
    if (choice.device < 0) choice.device = ordinal;
    if (!course.ooms.empty()) {
      const OomEvent& last = course.ooms.back();
      if (choice.event == nullptr || last.moment.sequence > choice.event->moment.sequence) {
        choice = {ordinal, &last};
      }
    } else if (choice.event == nullptr && course.most_allocated > peak) {
      peak = course.most_allocated;
      choice.device = ordinal;
    }
  }
  if (choice.device < 0) {
    throw InputError(wanted >= 0 ? fmt::format("the recording has no device {}", wanted)
                                 : "the recording holds no GPU memory: nothing to explain");
  }
  return choice;
}

// The event itself: the timeline keeps what all commands need, this one needs its stream, too. For
// a program without a caching allocator the last request that the driver refused is the OOM.
struct Request {
  Event event;
  bool found = false;
  bool has_history = false;
  uint64_t refused = 0;
  bool unrefused =
      false;  // the allocator gave up, the driver had refused nothing since it last gave
  std::optional<uint64_t> device_total;
};

Request find_request(const Recording& recording, const Choice& choice, bool has_blocks) {
  Request request;
  bool refused_since_last_block = false;
  recording.for_each([&](const Event& event) {
    const bool here = event.device == choice.device || event.device < 0;
    if ((event.flags & kEventReconstructed) == 0 && event.kind != EventKind::snapshot_taken) {
      request.has_history = true;
    }
    if (event.kind == EventKind::device_info && event.device == choice.device && event.size != 0) {
      request.device_total = event.size;
    }
    if (event.kind == EventKind::block_alloc && here) refused_since_last_block = false;
    if (event.kind == EventKind::physical_failed && here) {
      ++request.refused;
      refused_since_last_block = true;
      // A caching allocator gives memory back and tries again: a refusal is not yet an OOM.
      const bool counts = !has_blocks || event.memory == Memory::pinned ||
                          event.memory == Memory::managed || event.memory == Memory::registered;
      if (choice.event == nullptr && counts) {
        request.event = event;
        request.found = true;
      }
    }
    if (choice.event != nullptr && event.kind == EventKind::out_of_memory &&
        event.sequence == choice.event->moment.sequence) {
      request.event = event;
      request.found = true;
      request.unrefused = !refused_since_last_block;
    }
    return true;
  });
  return request;
}

void describe_request(const Recording& recording, const Request& request, OomScene& scene) {
  const Event& event = request.event;
  const Definitions& definitions = recording.definitions();
  scene.memory = event.memory == Memory::none ? Memory::device : event.memory;
  scene.ask = event.size;
  scene.requested = event.requested;
  scene.stream = event.stream;
  scene.request_site = call_site(definitions, event.stack);
  // Python's frames where there are any: below them is only the library's way to its allocator.
  const auto frames = definitions.stack(event.stack);
  const bool python = std::any_of(frames.begin(), frames.end(), [&](FrameId id) {
    return definitions.frame(id).python || definitions.frame(id).file.ends_with(".py");
  });
  for (const FrameId id : frames) {
    const Frame& frame = definitions.frame(id);
    if (scene.request_stack.size() == kStackShown) break;
    if (python && !frame.python && !frame.file.ends_with(".py")) continue;
    scene.request_stack.push_back(describe(frame));
  }
  const StackTraitsCache cache(definitions);
  const StackTraits& traits = cache.of(event.stack);
  scene.request_is_lasting = traits.has(Trait::module_creation) || traits.has(Trait::module_move) ||
                             traits.has(Trait::optimizer_state_creation) ||
                             traits.has(Trait::cache_update);
}

// Free memory of the device at the event: a snapshot writes it down, a trace has measurements of
// which the last is carried forward by what the ledger did since.
void measure_device(const Recording& recording, const MemoryState& state, const Request& request,
                    OomScene& scene) {
  const Event& event = request.event;
  const Outside outside = state.outside(scene.device);
  scene.total = request.device_total;
  for (const DeviceInfo& info : recording.info().devices) {
    if (info.ordinal == scene.device && info.total_bytes != 0) scene.total = info.total_bytes;
  }
  if (outside.last.valid) {
    if (outside.last.total != 0) scene.total = outside.last.total;
    const auto grown =
        static_cast<int64_t>(scene.totals.in_use) - static_cast<int64_t>(outside.last.in_use);
    const auto used = static_cast<int64_t>(outside.last.used) + grown;
    scene.free = static_cast<uint64_t>(
        std::max<int64_t>(static_cast<int64_t>(outside.last.total) - used, 0));
    scene.free_is_recorded = grown == 0;
    if (outside.last.separable) scene.others = outside.last.others_used;
  }
  if (event.kind == EventKind::out_of_memory && event.extra != 0) {
    scene.free = event.extra;
    scene.free_is_recorded = true;
  }
  if (scene.total && scene.free) {
    const uint64_t known = *scene.free + scene.totals.in_use + scene.others.value_or(0);
    scene.outside = *scene.total > known ? *scene.total - known : 0;
  }
}

void look_into_segments(const MemoryState& state, OomScene& scene) {
  FreeSpace& space = scene.space;
  const bool small = scene.ask <= (uint64_t{1} << 20);
  for (const Segment& segment : state.segments(scene.device)) {
    ++space.segments;
    space.expandable = space.expandable || segment.expandable;
    space.pending += segment.pending;
    if (segment.allocated != 0 && segment.free_bytes() != 0) ++space.split_segments;
    const bool eligible =
        segment.stream == scene.stream && segment.pool == 0 && segment.small_pool == small;
    uint64_t from = segment.address;
    const auto gap = [&](uint64_t to) {
      if (to <= from) return;
      const uint64_t bytes = to - from;
      space.total += bytes;
      ++space.pieces;
      space.largest = std::max(space.largest, bytes);
      if (eligible) space.largest_eligible = std::max(space.largest_eligible, bytes);
    };
    for (const Block* block : segment.blocks) {
      gap(block->address);
      from = std::max(from, block->end());
    }
    gap(segment.end());
  }
}

void judge_blocks(const Recording& recording, const Timeline& timeline, const MemoryState& state,
                  OomScene& scene) {
  const Scene judging(recording, timeline, state);
  struct Site {
    SiteShare share;
    std::map<std::string, uint64_t> rows;
  };
  std::unordered_map<std::string, Site> sites;
  std::unordered_map<std::string, SiteShare> direct;
  std::unordered_map<StackId, std::string> names;
  state.for_each_live(scene.device, [&](const Block& block) {
    const std::string row = judge(block, judging).row();
    scene.categories[row] += block.size;
    auto [name, is_new] = names.try_emplace(block.stack);
    if (is_new) name->second = call_site(recording.definitions(), block.stack);
    Site& site = sites[name->second];
    site.share.bytes += block.size;
    ++site.share.blocks;
    site.share.largest = std::max(site.share.largest, block.size);
    site.rows[row] += block.size;
    if (scene.has_blocks && block.origin != Block::Origin::allocator) {
      SiteShare& share = direct[name->second];
      share.site = name->second;
      share.category = row;
      share.bytes += block.size;
      ++share.blocks;
    }
    if (block.size > scene.largest_block.bytes) {
      scene.largest_block = {block.size, name->second, row,
                             block.step == state.step() || state.step() == kNoStep};
    }
  });
  for (auto& [name, site] : sites) {
    site.share.site = name;
    const auto main =
        std::max_element(site.rows.begin(), site.rows.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    site.share.category = main->first;
    scene.sites.push_back(std::move(site.share));
  }
  for (auto& [name, share] : direct) scene.direct_sites.push_back(std::move(share));
  const auto by_bytes = [](const SiteShare& a, const SiteShare& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.site < b.site;
  };
  std::sort(scene.sites.begin(), scene.sites.end(), by_bytes);
  std::sort(scene.direct_sites.begin(), scene.direct_sites.end(), by_bytes);
}

void name_holders(const Recording& recording, const Request& request, const MemoryState& state,
                  OomScene& scene) {
  const OomHolders holders(recording, request.event, state, scene.device);
  std::unordered_set<StackId> seen;
  std::unordered_map<std::string, std::vector<StackId>> stacks;
  state.for_each_live(scene.device, [&](const Block& block) {
    if (!seen.insert(block.stack).second) return;
    stacks[call_site(recording.definitions(), block.stack)].push_back(block.stack);
  });
  for (SiteShare& site : scene.sites) site.holders = holders.of(stacks[site.site]);
}

using LiveByStack = std::unordered_map<StackId, std::pair<int64_t, int64_t>>;

// The levels at the beginnings of steps before the event, and which lines grew between them.
void follow_steps(const Recording& recording, const Timeline& timeline, OomScene& scene) {
  std::vector<Moment> moments;
  for (const StepBoundary& boundary : timeline.steps) {
    if (boundary.sequence >= scene.moment.sequence) break;
    moments.push_back(
        {.sequence = boundary.sequence, .step = boundary.step, .device = scene.device});
  }
  // The first steps warm caches and make the optimizer's state: they are no growth.
  const size_t warm_up = std::min<size_t>(2, moments.size() / 3);
  moments.erase(moments.begin(), moments.begin() + static_cast<ptrdiff_t>(warm_up));
  if (moments.size() > 4 * kStepsShown) {
    moments.erase(moments.begin(), moments.end() - static_cast<ptrdiff_t>(4 * kStepsShown));
  }
  if (moments.empty()) return;
  LiveByStack first;
  LiveByStack last;
  visit_states(recording, moments, [&](size_t index, const MemoryState& state) {
    scene.steps.push_back({moments[index].step, state.totals(scene.device).live()});
    if (index != 0 && index + 1 != moments.size()) return;
    LiveByStack& live = index == 0 ? first : last;
    state.for_each_live(scene.device, [&](const Block& block) {
      auto& [bytes, count] = live[block.stack];
      bytes += static_cast<int64_t>(block.size);
      ++count;
    });
  });
  std::map<std::string, SiteGrowth> growth;
  for (const auto& [stack, now] : last) {
    const auto before = first.find(stack);
    const auto then = before == first.end() ? std::pair<int64_t, int64_t>{} : before->second;
    if (now.first <= then.first) continue;
    SiteGrowth& site = growth[call_site(recording.definitions(), stack)];
    site.bytes += now.first - then.first;
    site.blocks += now.second - then.second;
  }
  for (auto& [name, site] : growth) {
    site.site = name;
    scene.growth.push_back(site);
  }
  std::sort(scene.growth.begin(), scene.growth.end(),
            [](const SiteGrowth& a, const SiteGrowth& b) { return a.bytes > b.bytes; });
}

}  // namespace

OomScene look_at_oom(const Recording& recording, int16_t wanted) {
  const Timeline timeline = survey(recording);
  if (timeline.devices.empty() && !recording.info().notes.empty()) {
    throw InputError("nothing to explain: " + recording.info().notes.front());
  }
  const Choice choice = choose(timeline, wanted);
  const DeviceTimeline& course = *timeline.device(choice.device);
  const Request request = find_request(recording, choice, course.has_blocks);

  OomScene scene;
  scene.device = choice.device;
  scene.has_blocks = course.has_blocks;
  scene.oom_events = course.ooms.size();
  scene.refused_by_driver = request.refused;
  scene.has_history = request.has_history;
  scene.gave_up_unrefused = request.unrefused && scene.has_blocks &&
                            recording.info().source == RecordingInfo::Source::trace;
  scene.found = request.found;
  if (request.found) {
    scene.moment = {.sequence = request.event.sequence,
                    .time_ns = request.event.time_ns,
                    .device = choice.device,
                    .name = "oom"};
    describe_request(recording, request, scene);
  } else {
    scene.moment = course.allocated_peak;
  }
  const MemoryState state = state_at(recording, scene.moment);
  scene.moment.step = state.step();
  scene.totals = state.totals(scene.device);
  measure_device(recording, state, request, scene);
  look_into_segments(state, scene);
  judge_blocks(recording, timeline, state, scene);
  if (scene.found) name_holders(recording, request, state, scene);
  follow_steps(recording, timeline, scene);
  if (timeline.end.sequence > scene.moment.sequence) {
    scene.ended_later = true;
    scene.live_at_end = state_at(recording, timeline.end).totals(scene.device).live();
  } else {
    scene.live_at_end = scene.totals.live();
  }
  return scene;
}

}  // namespace vramtrack
