// What the helper inside a Python process said of who holds memory, by the call stack that made it.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_HOLDERS_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_HOLDERS_H

#include <cstdint>
#include <string>
#include <vector>

#include "trace/recording.h"

namespace vramtrack {

struct Holder {
  std::string chain;  // "train.py:12 main(): trainer.history[17]"
  StackId stack = 0;  // that made the block
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint64_t time_ns = 0;
  uint64_t said = 1;  // how often this was said, but for the numbers in it
};

// All of a recording, in its order.
std::vector<Holder> holders_of(const Recording& recording);

// Of these stacks: one for each kind of chain, the one that was said last; most often said first.
// Chains are of one kind when they differ in numbers only.
std::vector<Holder> kinds_of_holders(const std::vector<Holder>& holders,
                                     const std::vector<StackId>& stacks);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_HOLDERS_H
