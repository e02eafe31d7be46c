// What a launch is given: the words of its parameters that are addresses of device memory. Structs
// by value are looked through, word by word; nothing is read beyond the size that the driver tells.
#ifndef VRAMTRACK_TRACER_HOOKS_KERNEL_ACCESSES_H
#define VRAMTRACK_TRACER_HOOKS_KERNEL_ACCESSES_H

#include <vramtrack/trace_format.h>

#include <cstddef>
#include <cstdint>

#include "hooks/kernel_functions.h"

namespace vramtrack {

// Different addresses in the order in which they were met, each with the word of the parameters in
// which it was met first. Large, and only what was added is
// initialised: one lies on the stack of each launch.
class AddressList {
 public:
  void add(uint64_t address, uint16_t word);

  [[nodiscard]] const uint64_t* begin() const { return addresses_; }
  [[nodiscard]] uint16_t word(uint32_t index) const { return words_[index]; }
  [[nodiscard]] uint32_t count() const { return count_; }
  [[nodiscard]] bool truncated() const { return truncated_; }

 private:
  static constexpr uint32_t kFewAddresses = 24;
  static constexpr uint32_t kPlaces = 2 * kMaxAccessAddresses;  // a power of two

  [[nodiscard]] bool has_among_few(uint64_t address) const;
  bool enter(uint64_t address, uint32_t index);  // false: it is there
  void enter_all();

  uint32_t count_ = 0;
  bool truncated_ = false;
  uint64_t addresses_[kMaxAccessAddresses];
  uint16_t words_[kMaxAccessAddresses];
  uint16_t places_[kPlaces];  // of many addresses: index + 1 by hash
};

// Either form of a launch: an array of pointers to values, or one buffer in `extra`.
void collect_addresses(const ParameterLayout& layout, void** parameters, void** extra,
                       AddressList& addresses);

// Writes the launch. `graph` is the executable graph that the kernel is part of, or 0.
void record_access(uint32_t name, const AddressList& addresses, uint64_t stream, uint64_t graph);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_HOOKS_KERNEL_ACCESSES_H
