// How to step from one frame to its caller: what the call frame information says of one address,
// boiled down to what x86-64 code needs and packed into one word, so that it can be cached without
// locks.
#ifndef VRAMTRACK_TRACER_STACK_CFI_RULE_H
#define VRAMTRACK_TRACER_STACK_CFI_RULE_H

#include <cstdint>

namespace vramtrack {

struct CfiRule {
  enum class Cfa : uint8_t {
    unknown,     // beyond what we follow: ask libunwind
    outermost,   // there is no caller
    from_sp,     // rsp + cfa_offset
    from_bp,     // rbp + cfa_offset
    through_bp,  // the word at rbp + cfa_offset (functions that realign their stack)
  };
  enum class Bp : uint8_t {
    same,
    at_cfa,  // saved at CFA + bp_offset
    at_bp,   // saved at rbp + bp_offset
  };

  Cfa cfa = Cfa::unknown;
  Bp bp = Bp::same;
  int32_t cfa_offset = 0;
  int32_t bp_offset = 0;

  // Layout of the word: 4 bits cfa + 1, 2 bits bp, 30 bits cfa_offset, 28 bits bp_offset.
  // Never 0, which means that nothing is cached.
  [[nodiscard]] uint64_t pack() const {
    constexpr int32_t kMostCfa = 1 << 29;
    constexpr int32_t kMostBp = 1 << 27;
    if (cfa_offset >= kMostCfa || cfa_offset < -kMostCfa || bp_offset >= kMostBp ||
        bp_offset < -kMostBp)
      return CfiRule{}.pack();
    return (static_cast<uint64_t>(cfa) + 1) | static_cast<uint64_t>(bp) << 4 |
           (static_cast<uint64_t>(cfa_offset) & 0x3fffffff) << 6 |
           (static_cast<uint64_t>(bp_offset) & 0xfffffff) << 36;
  }
  static CfiRule unpack(uint64_t word) {
    CfiRule rule;
    rule.cfa = static_cast<Cfa>((word & 15) - 1);
    rule.bp = static_cast<Bp>(word >> 4 & 3);
    rule.cfa_offset = static_cast<int32_t>(static_cast<uint32_t>(word >> 6) << 2) >> 2;
    rule.bp_offset = static_cast<int32_t>(static_cast<uint32_t>(word >> 36) << 4) >> 4;
    return rule;
  }
};

struct Module;

// Reads the rule for `pc` from the module's .eh_frame, through the sorted table of .eh_frame_hdr.
CfiRule read_cfi_rule(const Module& module, uintptr_t pc);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_STACK_CFI_RULE_H
