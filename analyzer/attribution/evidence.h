// What a whole recording says about the blocks of some moments: how long each of them lives on,
// what the job was doing around it, which sizes belong to what. Gathered in one pass, before the
// rules.
//
// The pass sees every event of the recording, so what it does for one must be little: only blocks
// that a rule may ask about are followed, and a stack that allocates the same size again and again
// is looked at once.
#ifndef VRAMTRACK_ANALYZER_ATTRIBUTION_EVIDENCE_H
#define VRAMTRACK_ANALYZER_ATTRIBUTION_EVIDENCE_H

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "attribution/attention_calls.h"
#include "attribution/stack_traits.h"
#include "replay/timeline.h"

namespace vramtrack {

inline constexpr uint64_t kNever = ~uint64_t{0};

// From `sequence` on the job was busy with `activity`, as the stacks of its allocations show.
// Recomputation counts as backward: it happens in between.
struct ActivityChange {
  uint64_t sequence = 0;
  Activity activity = Activity::unknown;
};

// How a block that was live at the moment ended.
struct BlockEnd {
  uint64_t sequence = kNever;
  StackId stack = 0;    // of the free, where the recording has it
  uint32_t thread = 0;  // that freed it
};

class Evidence {
 public:
  // Follows the blocks of caching allocators only: what comes from the driver directly has rules of
  // its own. `traits` outlives the evidence.
  explicit Evidence(const StackTraitsCache& traits)
      : traits_(&traits), attention_(traits.definitions()) {}

  // Every event of the recording, in order; watch() at each moment that will be asked about, before
  // the first event after it; finish() at the end.
  void observe(const Event& event);
  void watch(const MemoryState& state);
  void finish();

  // All of that in a pass of its own, for the moment at which `state` stands.
  static Evidence of(const Recording& recording, const MemoryState& state,
                     const StackTraitsCache& traits);

  // Of a block that was live at a watched moment, by its identity (Block::sequence).
  [[nodiscard]] BlockEnd end_of(uint64_t block) const;
  // When the job turned from what it did at `sequence` to something else; kNever if it did not.
  [[nodiscard]] uint64_t end_of_activity(uint64_t sequence) const;
  [[nodiscard]] Activity activity_at(uint64_t sequence) const;

  // What a block that was live at a watched moment was called after it: the Python helper looks at
  // tensors now and then, and after an OOM. 0 where nothing was said.
  [[nodiscard]] StringId label_of(uint64_t block) const;

  // Whether memory without any frame is the backward pass's: only Python frames were recorded, and
  // its threads have none.
  [[nodiscard]] bool empty_stacks_go_back() const { return forward_seen_ && !native_seen_; }

  // Whether the job ever ran backwards or stepped an optimizer.
  [[nodiscard]] bool trains() const { return trains_; }

  // What a stack's call makes for an attention, by its place in the code.
  [[nodiscard]] AttentionRole attention_role(StackId stack) const {
    return attention_.role_of(stack);
  }

  // Whether the function that made it also calls a softmax.
  [[nodiscard]] bool is_near_softmax(StackId stack) const {
    return attention_.is_near_softmax(stack);
  }

  // Constructors under which torch.nn's own modules are made, by their names.
  [[nodiscard]] bool is_module_constructor(const std::string& function) const {
    return constructors_.contains(function);
  }

  // Sizes seen anywhere in the recording under such stacks.
  // Of softmax and logits only large ones count: their row sums and maxima have everybody's size.
  [[nodiscard]] bool is_softmax_size(uint64_t bytes) const {
    return bytes >= largest_softmax_ / 64 && softmax_.contains(bytes);
  }
  [[nodiscard]] bool is_logits_size(uint64_t bytes) const {
    return bytes >= largest_logits_ / 8 && logits_.contains(bytes);
  }
  [[nodiscard]] bool is_projection_size(uint64_t bytes) const {
    return projection_.contains(bytes);
  }
  // Of linear layers, wherever they stand.
  [[nodiscard]] bool is_product_size(uint64_t bytes) const { return product_.contains(bytes); }
  [[nodiscard]] bool is_activation_size(uint64_t bytes) const {
    return activation_.contains(bytes);
  }
  [[nodiscard]] bool is_parameter_size(uint64_t bytes) const { return parameter_.contains(bytes); }
  // Blocks of this size that lived before the recording began, by what ended them.
  [[nodiscard]] uint64_t kept_count(uint64_t bytes) const;      // nothing did
  [[nodiscard]] uint64_t replaced_count(uint64_t bytes) const;  // an optimizer's step
  // Whether a new value that was made at `sequence` waits at `moment` for such a block to make way.
  [[nodiscard]] bool waits_to_replace(uint64_t bytes, uint64_t sequence, uint64_t moment) const;

 private:
  struct Old {
    uint64_t block = 0;  // identity
    uint64_t size = 0;   // comparable_size
  };
  // An allocation that was looked at: the next of the same kind tells nothing new.
  struct Noted {
    uint64_t size = 0;
    StackId stack = 0;
    Activity activity = Activity::unknown;
  };

  void note_allocation(const Event& event);
  void note_size(uint64_t size, const StackTraits& traits);
  void note_activity(uint64_t sequence, Activity activity);
  void note_end(const Event& event);
  void note_label(const Event& event);
  void note_device(int16_t device);

  const StackTraitsCache* traits_;
  AttentionCalls attention_;
  std::array<Noted, 4096> noted_{};
  // Blocks that are asked about and live now: device and address -> identity.
  std::unordered_map<uint64_t, uint64_t> watched_;
  std::vector<int16_t> devices_;  // of the watched blocks: labels name none
  std::unordered_map<uint64_t, StringId> labels_;
  std::vector<Old> reconstructed_;
  std::unordered_map<uint64_t, BlockEnd> ends_;
  std::vector<ActivityChange> changes_;
  std::unordered_set<uint64_t> softmax_;
  std::unordered_set<uint64_t> logits_;
  std::unordered_set<uint64_t> projection_;
  std::unordered_set<uint64_t> product_;
  std::unordered_set<uint64_t> activation_;  // of a forward pass, casts left out
  std::unordered_set<uint64_t> parameter_;
  std::unordered_set<std::string> constructors_;
  std::unordered_map<uint64_t, uint64_t> kept_;
  std::unordered_map<uint64_t, std::vector<uint64_t>> replaced_;  // when each of them ended
  uint64_t largest_softmax_ = 0;
  uint64_t largest_logits_ = 0;
  bool trains_ = false;
  bool forward_seen_ = false;
  bool native_seen_ = false;  // a native frame, in any stack
};

// The size by which blocks are compared: what was asked for where that is known, else what it
// takes.
inline uint64_t comparable_size(const Block& block) {
  return block.requested != 0 ? block.requested : block.size;
}

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_ATTRIBUTION_EVIDENCE_H
