#include "kernels/elementwise.h"

#include <charconv>
#include <cstring>
#include <vector>

#include "simgpu.h"

namespace simgpu {
namespace {

constexpr int kMaxTensors = 4;
constexpr int kMaxElements = 65536;  // larger tensors are data, not decisions
constexpr std::uint64_t kUnknownElementBytes = 8;

// Order of the parameters; the last two only where a kernel converts types.
enum Parameter { kCount = 0, kFunctor = 1, kPointers = 2, kLoader = 5, kStorer = 6 };

// "std::array<char*, 3ul>" (or an array type of PyTorch's own in older versions) -> 3
int array_length(std::string_view type) {
  if (type.find("char*") == std::string_view::npos) return 0;
  const std::size_t comma = type.rfind(", ");
  if (comma == std::string_view::npos) return 0;
  int length = 0;
  std::from_chars(type.data() + comma + 2, type.data() + type.size(), length);
  return length >= 1 && length <= kMaxTensors ? length : 0;
}

struct Tensor {
  std::uint64_t address;
  ScalarKind kind;
};

// LoadWithCast holds the inputs' types, StoreWithCast the output's (one ScalarType byte each, then
// sizes).
bool read_cast_types(const ElementwiseKernel& kernel, void* const* parameters, Tensor* tensors) {
  for (int i = 0; i < kernel.tensors; ++i) {
    const auto* types = static_cast<const signed char*>(parameters[i == 0 ? kStorer : kLoader]);
    const auto kind = scalar_kind(static_cast<int>(types[i == 0 ? 0 : i - 1]));
    if (!kind) return false;
    tensors[i].kind = *kind;
  }
  return true;
}

void compute(const ElementwiseKernel& kernel, void* const* parameters, const Tensor* tensors,
             int count) {
  const Functor& functor = *kernel.functor;
  std::vector<unsigned char> inputs[kMaxTensors];
  bool known = true;
  for (int i = 1; i < kernel.tensors; ++i) {
    inputs[i].resize(scalar_size(tensors[i].kind) * static_cast<std::size_t>(count));
    if (simgpu_read(tensors[i].address, inputs[i].data(), inputs[i].size()) != inputs[i].size())
      known = false;
  }
  const std::size_t output_size = scalar_size(tensors[0].kind);
  std::vector<unsigned char> output(output_size * static_cast<std::size_t>(count));
  const auto* state = static_cast<const unsigned char*>(parameters[kFunctor]);
  for (int element = 0; element < count; ++element) {
    Scalar operands[kMaxTensors] = {};
    for (int i = 1; i < kernel.tensors; ++i) {
      const std::size_t at = scalar_size(tensors[i].kind) * static_cast<std::size_t>(element);
      operands[i - 1] = load_scalar(inputs[i].data() + at, tensors[i].kind);
    }
    store_scalar(output.data() + output_size * static_cast<std::size_t>(element), tensors[0].kind,
                 apply_functor(functor, state, operands));
  }
  simgpu_write(tensors[0].address, output.data(), output.size());
  if (!known)
    simgpu_assume("element-wise operation on unknown values", static_cast<std::uint64_t>(count));
}

}  // namespace

std::optional<ElementwiseKernel> parse_elementwise(const KernelName& name) {
  std::size_t functor_at;
  if (name.function == "at::native::vectorized_elementwise_kernel") {
    functor_at = 1;
  } else if (name.function == "at::native::unrolled_elementwise_kernel") {
    functor_at = 0;
  } else {
    return std::nullopt;
  }
  if (name.arguments.size() < functor_at + 2) return std::nullopt;
  ElementwiseKernel kernel{.functor = parse_functor(name.arguments[functor_at]),
                           .tensors = array_length(name.arguments[functor_at + 1]),
                           .casts = name.text.find("LoadWithCast<") != std::string::npos};
  if (kernel.tensors == 0) return std::nullopt;
  if (kernel.functor && kernel.functor->inputs != kernel.tensors - 1) kernel.functor.reset();
  return kernel;
}

void apply_elementwise(const ElementwiseKernel& kernel, void* const* parameters) {
  int count;
  std::memcpy(&count, parameters[kCount], sizeof count);
  if (count <= 0) return;
  Tensor tensors[kMaxTensors] = {};
  for (int i = 0; i < kernel.tensors; ++i) {
    std::memcpy(&tensors[i].address, static_cast<const char*>(parameters[kPointers]) + 8 * i, 8);
    if (kernel.functor)
      tensors[i].kind = i == 0 ? kernel.functor->output : kernel.functor->input[i - 1];
  }
  const bool follow = kernel.functor && count <= kMaxElements &&
                      (!kernel.casts || read_cast_types(kernel, parameters, tensors));
  if (follow) return compute(kernel, parameters, tensors, count);
  const std::uint64_t size = kernel.functor ? scalar_size(tensors[0].kind) : kUnknownElementBytes;
  // Without the type, one block of the smallest size is what surely belongs to the tensor.
  simgpu_forget(tensors[0].address,
                kernel.functor ? size * static_cast<std::uint64_t>(count) : 512);
}

}  // namespace simgpu
