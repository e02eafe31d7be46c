// What a whole recording says about the blocks of one moment: how long each of them lives on, what
// the job was doing around it, which sizes belong to what. Gathered in one pass, before the rules.
#ifndef VRAMTRACK_ANALYZER_ATTRIBUTION_EVIDENCE_H
#define VRAMTRACK_ANALYZER_ATTRIBUTION_EVIDENCE_H

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

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
  // One pass over the recording; `moment` is a sequence number. Follows the blocks of caching
  // allocators only: what comes from the driver directly has rules of its own.
  Evidence(const Recording& recording, uint64_t moment, const StackTraitsCache& traits);

  // Of a block that is live at the moment, by its identity (Block::sequence).
  [[nodiscard]] BlockEnd end_of(uint64_t block) const;
  // When the job turned from what it did at `sequence` to something else; kNever if it did not.
  [[nodiscard]] uint64_t end_of_activity(uint64_t sequence) const;
  [[nodiscard]] Activity activity_at(uint64_t sequence) const;

  // What a block that was live at the moment was called after it: the Python helper looks at
  // tensors now and then, and after an OOM. 0 where nothing was said.
  [[nodiscard]] StringId label_of(uint64_t block) const;

  // Whether the job ever ran backwards or stepped an optimizer.
  [[nodiscard]] bool trains() const { return trains_; }

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
  // Whether a new value that was made at `sequence` waits at the moment for such a block to make
  // way.
  [[nodiscard]] bool waits_to_replace(uint64_t bytes, uint64_t sequence) const;

 private:
  void note_allocation(const Event& event, const StackTraits& traits);
  void note_activity(uint64_t sequence, Activity activity);
  void note_end(const Event& event, uint64_t moment);
  void note_label(const Event& event, uint64_t moment);
  void count_reconstructed(const StackTraitsCache& traits);

  struct Live {
    uint64_t block = 0;  // identity
    uint64_t size = 0;   // comparable_size
    bool reconstructed = false;
  };

  std::unordered_map<uint64_t, Live> live_;    // by device and address, while the pass runs
  std::unordered_map<uint64_t, uint64_t> at_;  // address -> identity: labels name no device
  std::unordered_map<uint64_t, StringId> labels_;
  std::vector<Live> reconstructed_;
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
  uint64_t moment_ = 0;
  uint64_t largest_softmax_ = 0;
  uint64_t largest_logits_ = 0;
  bool trains_ = false;
};

// The size by which blocks are compared: what was asked for where that is known, else what it
// takes.
inline uint64_t comparable_size(const Block& block) {
  return block.requested != 0 ? block.requested : block.size;
}

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_ATTRIBUTION_EVIDENCE_H
