#include "trace/recording.h"

namespace vramtrack {

Definitions::Definitions() {
  frames_.push_back(Frame{.function = "??"});  // id 0: unknown
}

std::string_view Definitions::string(StringId id) const {
  const auto found = strings_.find(id);
  return found == strings_.end() ? std::string_view() : std::string_view(found->second);
}

std::span<const FrameId> Definitions::stack(StackId id) const {
  const auto found = stacks_.find(id);
  return found == stacks_.end() ? std::span<const FrameId>() : std::span(found->second);
}

std::string_view Definitions::thread_name(uint32_t thread) const {
  const auto found = thread_names_.find(thread);
  return found == thread_names_.end() ? std::string_view() : std::string_view(found->second);
}

const KernelAccess* Definitions::access(uint64_t id) const {
  const auto found = accesses_.find(id);
  return found == accesses_.end() ? nullptr : &found->second;
}

StringId Definitions::intern(std::string_view text) {
  if (text.empty()) return 0;
  const auto [entry, added] = string_ids_.try_emplace(std::string(text), next_string_);
  if (added) define_string(next_string_, text);
  return entry->second;
}

FrameId Definitions::intern_frame(const Frame& frame) {
  std::string key = frame.function;
  for (const std::string_view part :
       {std::string_view(frame.file), std::string_view(frame.module)}) {
    key.push_back('\0');
    key.append(part);
  }
  key.push_back('\0');
  key.append(std::to_string(frame.line));
  key.push_back(frame.python ? 'p' : 'n');
  key.push_back(frame.inlined ? 'i' : 'o');
  const auto [entry, added] = frame_ids_.try_emplace(std::move(key), frames_.size());
  if (added) frames_.push_back(frame);
  return entry->second;
}

StackId Definitions::intern_stack(std::span<const FrameId> frames) {
  if (frames.empty()) return 0;
  std::string key(reinterpret_cast<const char*>(frames.data()), frames.size_bytes());
  const auto [entry, added] = stack_ids_.try_emplace(std::move(key), next_stack_);
  if (added) define_stack(next_stack_, std::vector<FrameId>(frames.begin(), frames.end()));
  return entry->second;
}

void Definitions::define_string(StringId id, std::string_view text) {
  strings_.insert_or_assign(id, std::string(text));
  if (id >= next_string_) next_string_ = id + 1;
}

void Definitions::define_stack(StackId id, std::vector<FrameId> frames) {
  stacks_.insert_or_assign(id, std::move(frames));
  if (id >= next_stack_) next_stack_ = id + 1;
}

void Definitions::define_thread(uint32_t thread, std::string_view name) {
  thread_names_.insert_or_assign(thread, std::string(name));
}

void Definitions::define_access(uint32_t id, KernelAccess access) {
  accesses_.insert_or_assign(id, std::move(access));
}

}  // namespace vramtrack
