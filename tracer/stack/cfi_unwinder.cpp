// Walks the stack by cached call frame rules: a hash look-up and two loads per frame. The danger is
// a wrong rule, which would make us read anywhere; so each frame has to lie above the one before,
// aligned, and below the end of the thread's stack.
#include <pthread.h>

#include <atomic>
#include <cstring>

#include "stack/cfi_rule.h"
#include "stack/intern_table.h"
#include "stack/modules.h"
#include "stack/native_unwinder.h"

// Of the dynamic loader: where the main thread's stack began.
extern "C" void* __libc_stack_end;

namespace vramtrack {
namespace {

constinit InternTable<uint64_t> g_rules;  // address and epoch -> packed CfiRule

CfiRule look_up(uintptr_t pc) {
  Module* module = module_at(pc);
  if (module == nullptr && modules_refresh()) module = module_at(pc);
  return module == nullptr ? CfiRule{} : read_cfi_rule(*module, pc);
}

CfiRule rule_of(uintptr_t return_address, uint64_t epoch) {
  // Addresses have 47 bits. What was cached before a library was closed is never asked for again.
  bool inserted = false;
  auto* slot = g_rules.find_or_insert(return_address ^ epoch << 48, inserted);
  if (slot != nullptr)
    if (const uint64_t word = slot->value.load(std::memory_order_acquire); word != 0)
      return CfiRule::unpack(word);
  // The call, not what follows it: that may belong to another function, or to other rules.
  const CfiRule rule = look_up(return_address - 1);
  if (slot != nullptr) slot->value.store(rule.pack(), std::memory_order_release);
  return rule;
}

uintptr_t load(uintptr_t address) {
  uintptr_t value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}

// No frame of this thread lies beyond. glibc puts a thread's control block at the top of its stack.
uintptr_t stack_limit(uintptr_t sp) {
  const auto control = static_cast<uintptr_t>(pthread_self());
  constexpr uintptr_t kLargestStack = uintptr_t{1} << 33;
  if (sp < control && control - sp < kLargestStack) return control;
  const auto main_end = reinterpret_cast<uintptr_t>(__libc_stack_end);
  if (sp < main_end && main_end - sp < kLargestStack) return main_end + 4096;
  return sp + (uintptr_t{1} << 20);  // a stack that the program made: stay close
}

}  // namespace

size_t cfi_backtrace(NativeFrame* frames, size_t max) {
  // This function keeps a frame pointer (CMakeLists.txt): its frame is the start.
  const auto own = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  uintptr_t bp = load(own);
  uintptr_t pc = load(own + 8);
  uintptr_t sp = own + 16;
  const uintptr_t limit = stack_limit(sp);
  const uint64_t epoch = modules_epoch() & 0xffff;

  size_t count = 0;
  while (count < max && pc != 0) {
    const CfiRule rule = rule_of(pc, epoch);
    uintptr_t cfa = 0;
    switch (rule.cfa) {
      case CfiRule::Cfa::from_sp:
        cfa = sp + static_cast<uintptr_t>(static_cast<intptr_t>(rule.cfa_offset));
        break;
      case CfiRule::Cfa::from_bp:
        cfa = bp + static_cast<uintptr_t>(static_cast<intptr_t>(rule.cfa_offset));
        break;
      case CfiRule::Cfa::through_bp: {
        const uintptr_t at = bp + static_cast<uintptr_t>(static_cast<intptr_t>(rule.cfa_offset));
        if (at < sp || at >= limit || at % 8 != 0) return 0;
        cfa = load(at);
        break;
      }
      case CfiRule::Cfa::outermost:
        frames[count++] = {pc, limit};
        return count;
      default:
        return 0;
    }
    if (cfa <= sp || cfa > limit || cfa % 8 != 0) return 0;
    frames[count++] = {pc, cfa};
    if (rule.bp != CfiRule::Bp::same) {
      const uintptr_t base = rule.bp == CfiRule::Bp::at_cfa ? cfa : bp;
      const uintptr_t at = base + static_cast<uintptr_t>(static_cast<intptr_t>(rule.bp_offset));
      if (at < sp || at >= limit || at % 8 != 0) return 0;
      bp = load(at);
    }
    pc = load(cfa - 8);
    sp = cfa;
  }
  return count;
}

}  // namespace vramtrack
