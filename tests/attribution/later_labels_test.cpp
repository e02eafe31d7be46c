// Labels that come after the moment that is looked at: the helper looks at tensors now and then.
#include <catch2/catch.hpp>
#include <vector>

#include "attribution/evidence.h"
#include "replay/timeline.h"

namespace vramtrack {
namespace {

class Script final : public Recording {
 public:
  uint64_t alloc(uint64_t address) { return add(EventKind::block_alloc, address, 0); }
  void free(uint64_t address) { add(EventKind::block_free, address, 0); }
  StringId label(uint64_t address, const char* name) {
    const StringId id = definitions_.intern(name);
    add(EventKind::label, address, id);
    return id;
  }
  [[nodiscard]] uint64_t now() const { return events_.size(); }

  void for_each(const std::function<bool(const Event&)>& visit) const override {
    for (const Event& event : events_)
      if (!visit(event)) return;
  }

 private:
  uint64_t add(EventKind kind, uint64_t address, StringId text) {
    Event event{.kind = kind, .address = address, .size = 512, .text = text};
    if (kind != EventKind::label) event.device = 0;
    event.sequence = events_.size() + 1;
    events_.push_back(event);
    return event.sequence;
  }

  std::vector<Event> events_;
};

TEST_CASE("a label names a block from its beginning, as long as it is the same block") {
  Script script;
  const uint64_t kept = script.alloc(0x1000);
  const uint64_t replaced = script.alloc(0x2000);
  const uint64_t gone = script.alloc(0x3000);
  script.free(0x3000);
  const uint64_t moment = script.now();
  const MemoryState state = state_at(script, {.sequence = moment});
  script.free(0x2000);
  const uint64_t later = script.alloc(0x2000);
  const StringId parameters = script.label(0x1000, "parameters:weight");
  script.label(0x2000, "gradients:weight");
  script.label(0x3000, "optimizer_state:exp_avg of weight");
  script.label(0x1000, "other");

  const StackTraitsCache traits(script.definitions());
  const Evidence evidence = Evidence::of(script, state, traits);
  CHECK(evidence.label_of(kept) == parameters);
  CHECK(evidence.label_of(replaced) == 0);
  CHECK(evidence.label_of(gone) == 0);
  CHECK(evidence.label_of(later) == 0);  // was not there at the moment
}

}  // namespace
}  // namespace vramtrack
