// Which of an attention's linear layers make keys and values, seen from stacks alone: for
// recordings in which no module has a name (no Python helper, imported snapshots).
//
// Code that attends is written in one order: products for Q, K and V, rotary positions for Q then
// K, then the softmax or a fused kernel, then the output's product. So among the lines of the
// function that calls the softmax, the last three with a linear layer before it are Q, K and V; two
// are Q and K with V; one makes all three. Lines count only within one function called from one
// place.
#ifndef VRAMTRACK_ANALYZER_ATTRIBUTION_ATTENTION_CALLS_H
#define VRAMTRACK_ANALYZER_ATTRIBUTION_ATTENTION_CALLS_H

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "attribution/stack_traits.h"

namespace vramtrack {

enum class AttentionRole : uint8_t {
  none,
  query,
  keys_values,  // of a linear layer
  fused,        // one linear layer before the attention: Q, K and V, if its size agrees
  rotated_keys,
  copied_keys_values,  // for the products inside scaled_dot_product_attention
};

class AttentionCalls {
 public:
  explicit AttentionCalls(const Definitions& definitions) : definitions_(&definitions) {}

  // Of each allocation in a forward pass; a stack that is known already costs one look-up.
  void note(StackId stack, const StackTraits& traits);
  void finish();  // before the first question

  [[nodiscard]] AttentionRole role_of(StackId stack) const;

  // Whether the code that made it is the function that calls a softmax, or calls the function that
  // does, or is called by it: scores are made there, an MLP is not. Where no Python is known, true.
  [[nodiscard]] bool is_near_softmax(StackId stack) const;

 private:
  // A function called from one place: its code and everything outside of it.
  struct Place {
    std::string code;  // file and function
    uint64_t outside = 0;
    uint32_t line = 0;
  };
  struct Calls {
    std::map<uint32_t, std::vector<StackId>> by_line;
  };
  using Key = std::pair<uint64_t, std::string>;
  // Of the innermost two functions that are a model's own.
  struct Surroundings {
    bool known = false;
    Key inner, outer;
  };

  // The Python frames of a stack, innermost first.
  [[nodiscard]] std::vector<Place> places_of(StackId stack) const;
  [[nodiscard]] Surroundings surroundings_of(StackId stack) const;
  void find_projections();
  void find_rotations();
  void find_copies();

  const Definitions* definitions_;
  std::unordered_set<StackId> known_;
  std::vector<StackId> attending_;                    // softmax and fused kernels
  std::vector<std::pair<StackId, size_t>> rotating_;  // and the index of the rotary frame's place
  std::map<uint64_t, std::vector<StackId>> copies_;   // by the Python frames, in order
  std::map<Key, Calls> projections_;                  // by the place that calls the layer
  std::unordered_map<StackId, AttentionRole> roles_;
  std::set<Key> softmax_inner_, softmax_outer_;
  bool softmax_unknown_ = false;  // one without a function of the model
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_ATTRIBUTION_ATTENTION_CALLS_H
