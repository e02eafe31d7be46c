// Who touches which block: addresses resolved against what is live at that moment.
#include "replay/touches.h"

#include <vramtrack/tensor_lists.h>

#include <catch2/catch.hpp>

namespace vramtrack {
namespace {

constexpr uint64_t MiB = 1 << 20;

// Events made by hand; kernels by name, lists of addresses by number.
class Made : public Recording {
 public:
  void for_each(const std::function<bool(const Event&)>& visit) const override {
    for (const Event& event : events_)
      if (!visit(event)) return;
  }
  uint64_t add(Event event) {
    event.sequence = events_.size() + 1;
    event.time_ns = event.sequence * 1000;
    events_.push_back(event);
    return event.sequence;
  }
  uint64_t alloc(uint64_t address) {
    return add({.kind = EventKind::physical_alloc,
                .memory = Memory::device,
                .device = 0,
                .address = address,
                .size = MiB});
  }
  void free(uint64_t address) {
    add({.kind = EventKind::physical_free_begin, .address = address});
    add({.kind = EventKind::physical_free_end, .address = address});
  }
  uint64_t launch(const char* kernel, const std::vector<uint64_t>& addresses, uint64_t graph = 0) {
    const StringId name = definitions_.intern(kernel);
    definitions_.define_access(++lists_, {.kernel = name, .addresses = addresses});
    return add({.kind = EventKind::kernel_access,
                .object = graph,
                .extra = lists_,
                .text = name,
                .flags = graph != 0 ? kEventGraphNode : 0U});
  }

 private:
  std::vector<Event> events_;
  uint32_t lists_ = 0;
};

// The touches of every block that was ever live, by what the ledger said after the last event.
BlockTouches touches_of(const Made& recording, uint64_t block) {
  MemoryState state;
  TouchLedger ledger(recording.definitions());
  recording.for_each([&](const Event& event) {
    state.apply(event);
    ledger.apply(event, state);
    return true;
  });
  const BlockTouches* touches = ledger.of(block);
  return touches != nullptr ? *touches : BlockTouches{};
}

std::string name_of(const Made& recording, const Touch& touch) {
  return toucher_title(recording.definitions(), touch.kernel);
}

}  // namespace

TEST_CASE("an address means the block that is live there at that moment") {
  Made recording;
  const uint64_t first = recording.alloc(16 * MiB);
  recording.launch("one", {16 * MiB, 16 * MiB + 512});  // twice the same block: one touch
  recording.free(16 * MiB);
  recording.launch("nobody", {16 * MiB});
  const uint64_t second = recording.alloc(16 * MiB);
  recording.launch("two", {17 * MiB - 1});
  recording.launch("three", {17 * MiB, 16 * MiB});  // one past the end is not inside
  CHECK(touches_of(recording, first).count == 1);
  CHECK(name_of(recording, touches_of(recording, first).last) == "one");
  const BlockTouches touches = touches_of(recording, second);
  CHECK(touches.count == 2);
  CHECK(name_of(recording, touches.first) == "two");
  CHECK(name_of(recording, touches.last) == "three");
}

TEST_CASE("copies and sets touch, too, and the longest stretch is measured in launches") {
  Made recording;
  const uint64_t block = recording.alloc(16 * MiB);
  recording.alloc(32 * MiB);
  recording.add({.kind = EventKind::memset_call, .address = 16 * MiB, .size = MiB});
  for (int i = 0; i < 7; ++i) recording.launch("other", {32 * MiB});
  recording.add({.kind = EventKind::memcpy_call, .address = 32 * MiB, .extra = 16 * MiB});
  recording.launch("other", {32 * MiB});
  recording.launch("last", {16 * MiB});
  const BlockTouches touches = touches_of(recording, block);
  CHECK(touches.count == 3);
  CHECK(name_of(recording, touches.first) == "memset");
  CHECK(name_of(recording, touches.idle_to) == "memcpy");
  CHECK(touches.idle_work() == 8);
}

TEST_CASE("a graph touches at its launches what it was made with") {
  Made recording;
  const uint64_t block = recording.alloc(16 * MiB);
  recording.add({.kind = EventKind::graph_instantiate, .object = 7});
  recording.launch("node", {16 * MiB}, 7);
  CHECK(touches_of(recording, block).count == 0);
  recording.add({.kind = EventKind::graph_launch, .object = 7});
  recording.add({.kind = EventKind::graph_launch, .object = 8});
  recording.add({.kind = EventKind::graph_launch, .object = 7});
  CHECK(touches_of(recording, block).count == 2);
  recording.add({.kind = EventKind::graph_exec_destroy, .object = 7});
  recording.add({.kind = EventKind::graph_launch, .object = 7});
  CHECK(touches_of(recording, block).count == 2);
}

TEST_CASE("beyond the lists of a file each address is an event") {
  Made recording;
  const uint64_t block = recording.alloc(16 * MiB);
  recording.add({.kind = EventKind::kernel_access, .address = 16 * MiB + 8, .text = 0});
  CHECK(touches_of(recording, block).count == 1);
}

TEST_CASE("the index of a moment knows the whole life of what is live then") {
  Made recording;
  const uint64_t early = recording.alloc(16 * MiB);
  recording.launch("made", {16 * MiB});
  recording.free(16 * MiB);
  const uint64_t block = recording.alloc(32 * MiB);
  const uint64_t moment = recording.launch("made", {32 * MiB});
  recording.launch("later", {32 * MiB});
  recording.free(32 * MiB);
  const TouchIndex index(recording, moment);
  CHECK(index.of({.sequence = early}) == nullptr);
  REQUIRE(index.of({.sequence = block}) != nullptr);
  CHECK(name_of(recording, index.of({.sequence = block})->last) == "later");
}

TEST_CASE("names of kernels for people") {
  Made recording;
  const auto title = [&](const char* name) {
    recording.launch(name, {});
    StringId id = 0;
    recording.for_each([&](const Event& event) { return (id = event.text) != 0; });
    return toucher_title(recording.definitions(), id);
  };
  CHECK(title("_ZN8launches5scaleIdEEvPT_S1_") == "launches::scale<double>");
  CHECK(title("_Z4fillPfi") == "fill");
  CHECK(title("triton_poi_fused_add_0") == "triton_poi_fused_add_0");
}

TEST_CASE("PyTorch's lists of tensors are told by the kernel's name") {
  const std::string kernel = "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_";
  const TensorLists plain = tensor_lists_of(kernel + "18TensorListMetadataILi2EEENS1_1F");
  CHECK(plain.lists == 2);
  CHECK(plain.slots == 64);
  CHECK(!plain.steps);
  const TensorLists scalars =
      tensor_lists_of(kernel + "28TensorListScalarListMetadataIfLi1EEENS1_1F");
  CHECK(scalars.lists == 1);
  CHECK(scalars.slots == 96);
  const TensorLists fused =
      tensor_lists_of(kernel + "32FusedOptimizerTensorListMetadataILi4EEENS1_1F");
  CHECK(fused.lists == 4);
  CHECK(fused.slots == 36);
  CHECK(fused.steps);
  CHECK(tensor_lists_of("_Z4fillPfi").lists == 0);
  CHECK(tensor_lists_of(kernel + "18TensorListMetadataI").lists == 0);
}

}  // namespace vramtrack
