#include "replay/program_context.h"

#include <algorithm>

namespace vramtrack {

ProgramContext::Thread* ProgramContext::thread_of(uint32_t thread) {
  if (thread >= kMostThreads) return nullptr;
  if (thread >= threads_.size()) threads_.resize(thread + size_t{1});
  return &threads_[thread];
}

void ProgramContext::push_phase(uint32_t thread, StringId name) {
  Thread* of = thread_of(thread);
  if (of == nullptr || of->phases.size() >= kMostNested) return;
  of->phases.push_back(name);
  open_phases_.emplace_back(thread, name);
}

void ProgramContext::pop_phase(uint32_t thread) {
  Thread* of = thread_of(thread);
  if (of == nullptr || of->phases.empty()) return;
  of->phases.pop_back();
  const auto newest = std::find_if(open_phases_.rbegin(), open_phases_.rend(),
                                   [thread](const auto& open) { return open.first == thread; });
  open_phases_.erase(std::prev(newest.base()));
}

void ProgramContext::end_annotation(StringId name) {
  const auto newest = std::find(annotations_.rbegin(), annotations_.rend(), name);
  if (newest != annotations_.rend()) annotations_.erase(std::prev(newest.base()));
}

StringId ProgramContext::phase(uint32_t thread) const {
  if (thread < threads_.size() && !threads_[thread].phases.empty()) {
    return threads_[thread].phases.back();
  }
  if (!open_phases_.empty()) return open_phases_.back().second;
  return annotations_.empty() ? 0 : annotations_.back();
}

void ProgramContext::await_kernel(uint32_t thread, const Block& block) {
  Thread* of = thread_of(thread);
  if (of == nullptr || of->waiting.size() >= kMostWaiting) return;
  of->waiting.emplace_back(block.address, block.sequence);
}

}  // namespace vramtrack
