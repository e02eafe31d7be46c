// Which module an address of a trace lies in.
#ifndef VRAMTRACK_ANALYZER_SYMBOLS_MODULE_INDEX_H
#define VRAMTRACK_ANALYZER_SYMBOLS_MODULE_INDEX_H

#include <cstdint>
#include <vector>

#include "trace/raw_definitions.h"

namespace vramtrack {

class ModuleIndex {
 public:
  explicit ModuleIndex(const RawDefinitions& definitions);

  // The module of the frame with return address `pc` in stack `stack_id`; nullptr where there is
  // none. Where several were mapped there one after the other, the one of that stack's time.
  [[nodiscard]] const RawModule* find(uint32_t stack_id, uint64_t pc) const;

 private:
  std::vector<const RawModule*> by_begin_;
  uint64_t largest_ = 0;  // bytes of the largest module: how far back an overlap can begin
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_SYMBOLS_MODULE_INDEX_H
