// Parameters: the number of elements, the state of the generator, what draws, and what stores: a
// lambda that holds the output's address and, where the elements are evenly spaced, the bytes from
// one to the next.
#include "kernels/distribution.h"

#include <cstdint>
#include <cstring>

#include "simgpu.h"

namespace simgpu {
namespace {

enum Parameter { kCount = 0, kStore = 3 };
constexpr std::int32_t kLargestElement = 16;

}  // namespace

bool is_distribution(const KernelName& name) {
  return name.parameters.size() == 4 &&
         name.function.ends_with("::distribution_elementwise_grid_stride_kernel");
}

void apply_distribution(void* const* parameters) {
  std::int64_t count;
  std::uint64_t address;
  std::int32_t stride;
  std::memcpy(&count, parameters[kCount], sizeof count);
  std::memcpy(&address, parameters[kStore], sizeof address);
  // Elements that are not evenly spaced have a calculator of offsets in place of the address.
  if (count < 1 || !simgpu_is_device_address(address)) return;
  std::memcpy(&stride, static_cast<const char*>(parameters[kStore]) + sizeof address,
              sizeof stride);
  if (stride < 1 || stride > kLargestElement) return;
  simgpu_forget(address, static_cast<std::size_t>(count) * static_cast<std::size_t>(stride));
}

}  // namespace simgpu
