// The lists of tensors that PyTorch's multi_tensor_apply passes to a kernel by value: foreach
// operators and fused optimizers. A struct holds `lists` arrays of `slots` addresses; a launch
// fills as many slots of each as it has tensors, and what stands behind them is left over from
// whatever was called before. So only the filled run of each list means anything.
//
// From PyTorch's MultiTensorApply.cuh: 4 KiB of parameters hold depth_to_max_tensors slots, the
// 32 KiB of newer drivers seven times as many. Shared by the shim, which reads the runs, and the
// analyzer, which tells the lists apart.
#ifndef VRAMTRACK_TENSOR_LISTS_H
#define VRAMTRACK_TENSOR_LISTS_H

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vramtrack {

struct TensorLists {
  uint32_t lists = 0;  // 0: not such a kernel
  uint32_t slots = 0;  // where parameters are small
  bool steps = false;  // fused optimizers: a list of counters behind that of the sizes

  static constexpr uint32_t kLarge = 7;
  static constexpr size_t kSmallBytes = 4096;
};

// From the mangled name of a kernel.
inline TensorLists tensor_lists_of(std::string_view mangled) {
  constexpr uint32_t kMost = 5;
  constexpr uint32_t kSlots[kMost] = {110, 64, 48, 36, 30};
  constexpr uint32_t kSlotsBesideScalars[kMost] = {96, 64, 48, 36, 30};
  constexpr std::string_view kKernel = "multi_tensor_apply_kernel";
  constexpr std::string_view kStruct = "ListMetadataI";
  if (mangled.find(kKernel) == std::string_view::npos) return {};
  const size_t at = mangled.find(kStruct);
  if (at == std::string_view::npos) return {};
  // ILi4EE, or IfLi3EE with a type of scalars in front.
  constexpr size_t kLongestType = 8;
  std::string_view arguments = mangled;  // no substr: the shim links nothing that throws
  arguments.remove_prefix(at + kStruct.size());
  const size_t depth = arguments.find("Li");
  if (depth > kLongestType || depth + 2 >= arguments.size()) return {};
  const auto lists = static_cast<uint32_t>(arguments[depth + 2] - '0');
  if (lists < 1 || lists > kMost) return {};
  return {.lists = lists,
          .slots = depth == 0 ? kSlots[lists - 1] : kSlotsBesideScalars[lists - 1],
          .steps = std::string_view(mangled.data(), at).ends_with("FusedOptimizerTensor")};
}

}  // namespace vramtrack

#endif  // VRAMTRACK_TENSOR_LISTS_H
