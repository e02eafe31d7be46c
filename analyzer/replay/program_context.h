// What the program was doing: phases, steps, annotations, and which blocks still wait for the next
// kernel of their thread.
#ifndef VRAMTRACK_ANALYZER_REPLAY_PROGRAM_CONTEXT_H
#define VRAMTRACK_ANALYZER_REPLAY_PROGRAM_CONTEXT_H

#include <unordered_map>
#include <utility>
#include <vector>

#include "replay/block.h"

namespace vramtrack {

class ProgramContext {
 public:
  void push_phase(uint32_t thread, StringId name);
  void pop_phase(uint32_t thread);
  void begin_annotation(StringId name) { annotations_.push_back(name); }
  void end_annotation(StringId name);
  void begin_step(uint64_t number) { step_ = number; }

  [[nodiscard]] uint64_t step() const { return step_; }
  // The innermost phase of the thread. A thread without one (autograd's run the backward pass) does
  // the work of whoever opened the newest phase of the process. Annotations come last.
  [[nodiscard]] StringId phase(uint32_t thread) const;

  // A block was made by `thread`: the next kernel there is taken for the one it was made for.
  void await_kernel(uint32_t thread, const Block& block);
  // Calls visit(address, sequence) for each block that waited for this thread's kernel.
  template <class Visit>
  void kernel(uint32_t thread, Visit&& visit) {
    if (thread >= threads_.size()) return;
    for (const auto& [address, sequence] : threads_[thread].waiting) visit(address, sequence);
    threads_[thread].waiting.clear();
  }

 private:
  // Between two kernels of a thread few blocks are made. Where kernels are not traced at all, the
  // list must not grow with the job.
  static constexpr size_t kMostWaiting = 256;
  static constexpr size_t kMostThreads = 1 << 20;
  static constexpr size_t kMostNested = 1024;

  struct Thread {
    std::vector<StringId> phases;
    std::vector<std::pair<uint64_t, uint64_t>> waiting;  // address, sequence number
  };
  Thread* thread_of(uint32_t thread);

  std::vector<Thread> threads_;
  std::vector<std::pair<uint32_t, StringId>> open_phases_;  // of all threads, newest last
  std::vector<StringId> annotations_;
  uint64_t step_ = kNoStep;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPLAY_PROGRAM_CONTEXT_H
