// What is live when a program has made its last allocation: not leaks by themselves.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_NEVER_FREED_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_NEVER_FREED_H

#include <string>
#include <vector>

#include "replay/timeline.h"

namespace vramtrack {

// Memory that was never freed, by site. Libraries' workspaces, what the allocator
// keeps for later and the context are filed as known good.
struct NeverFreed {
  std::string site;
  StackId stack = 0;
  int16_t device = -1;
  uint64_t bytes = 0;
  uint64_t blocks = 0;
  std::string known_good;  // "cuBLAS workspace" ...; empty where nothing speaks for it
};

std::vector<NeverFreed> never_freed(const Recording& recording, const Timeline& timeline);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_NEVER_FREED_H
