#include "kernels/named.h"

#include <cmath>
#include <cstring>

#include "simgpu.h"

namespace simgpu {
namespace {

template <class T>
T parameter(void* const* parameters, int index) {
  T value;
  std::memcpy(&value, parameters[index], sizeof value);
  return value;
}

// GradScaler.update(): the scale shrinks after an infinity, and grows after so many steps without
// one. Parameters: scale, steps so far, infinity found, growth factor, backoff factor, interval.
void update_scale(void* const* parameters) {
  const auto scale_at = parameter<std::uint64_t>(parameters, 0),
             steps_at = parameter<std::uint64_t>(parameters, 1);
  float scale = 0, infinity = 0;
  int steps = 0;
  std::size_t known = simgpu_read(scale_at, &scale, sizeof scale);
  known += simgpu_read(steps_at, &steps, sizeof steps);
  known += simgpu_read(parameter<std::uint64_t>(parameters, 2), &infinity, sizeof infinity);
  if (infinity != 0) {
    scale *= static_cast<float>(parameter<double>(parameters, 4));
    steps = 0;
  } else if (++steps == parameter<int>(parameters, 5)) {
    const float grown = scale * static_cast<float>(parameter<double>(parameters, 3));
    if (std::isfinite(grown)) scale = grown;
    steps = 0;
  }
  simgpu_write(scale_at, &scale, sizeof scale);
  simgpu_write(steps_at, &steps, sizeof steps);
  if (known != sizeof scale + sizeof steps + sizeof infinity)
    simgpu_assume("scale of a GradScaler", 1);
}

}  // namespace

NamedKernel find_named_kernel(std::string_view text) {
  if (text ==
      "at::native::amp_update_scale_cuda_kernel(float*, int*, float const*, double, double, int)") {
    return update_scale;
  }
  return nullptr;
}

}  // namespace simgpu
