#include "kernels/elementwise.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "kernels/offsets.h"
#include "simgpu.h"

namespace simgpu {
namespace {

constexpr int kMaxTensors = Offsets::kMaxTensors;
constexpr int kMaxElements = 16384;  // larger tensors are data, not decisions
constexpr std::size_t kSmallestBlock = 512;

// Parameters of the contiguous kernels; the last two only where a kernel converts types.
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

struct Launch {
  int count;
  Tensor tensors[kMaxTensors];
  const unsigned char* state;    // the functor
  const unsigned char* offsets;  // nullptr where contiguous
  const signed char* types[2];   // of the inputs, of the output; nullptr where the functor says
};

Launch read_launch(const ElementwiseKernel& kernel, void* const* parameters) {
  Launch launch{};
  std::memcpy(&launch.count, parameters[kCount], sizeof launch.count);
  const auto* pointers = static_cast<const unsigned char*>(parameters[kFunctor]);
  if (kernel.strided) {
    launch.offsets = pointers;
    pointers += (Offsets::size(kernel.tensors) + 7) / 8 * 8;
    launch.state = pointers + std::size_t{8} * static_cast<std::size_t>(kernel.tensors);
    if (kernel.casts && kernel.functor) {
      const auto* types = reinterpret_cast<const signed char*>(launch.state + kernel.functor->size);
      launch.types[0] = types + 1;
      launch.types[1] = types;
    }
  } else {
    launch.state = pointers;
    pointers = static_cast<const unsigned char*>(parameters[kPointers]);
    if (kernel.casts) {
      launch.types[0] = static_cast<const signed char*>(parameters[kLoader]);
      launch.types[1] = static_cast<const signed char*>(parameters[kStorer]);
    }
  }
  for (int i = 0; i < kernel.tensors; ++i)
    std::memcpy(&launch.tensors[i].address, pointers + std::ptrdiff_t{8} * i, 8);
  return launch;
}

bool read_types(const ElementwiseKernel& kernel, Launch& launch) {
  for (int i = 0; i < kernel.tensors; ++i) {
    Tensor& tensor = launch.tensors[i];
    tensor.kind = i == 0 ? kernel.functor->output : kernel.functor->input[i - 1];
    if (!kernel.casts) continue;
    const auto kind =
        scalar_kind(static_cast<int>(i == 0 ? launch.types[1][0] : launch.types[0][i - 1]));
    if (!kind) return false;
    tensor.kind = *kind;
  }
  return true;
}

// Byte offsets of an element in each tensor.
void find_offsets(const ElementwiseKernel& kernel, const Launch& launch, unsigned element,
                  std::uint64_t* offsets) {
  if (!launch.offsets) {
    for (int i = 0; i < kernel.tensors; ++i)
      offsets[i] = element * scalar_size(launch.tensors[i].kind);
    return;
  }
  Offsets(launch.offsets, kernel.tensors).find(element, offsets);
}

void compute(const ElementwiseKernel& kernel, const Launch& launch) {
  std::uint64_t assumed = 0;
  for (int element = 0; element < launch.count; ++element) {
    std::uint64_t offsets[kMaxTensors] = {};
    find_offsets(kernel, launch, static_cast<unsigned>(element), offsets);
    Scalar operands[kMaxTensors] = {};
    bool known = true;
    for (int i = 1; i < kernel.tensors; ++i) {
      const Tensor& tensor = launch.tensors[i];
      unsigned char bytes[8] = {};
      if (simgpu_read(tensor.address + offsets[i], bytes, scalar_size(tensor.kind)) !=
          scalar_size(tensor.kind)) {
        known = false;
      }
      operands[i - 1] = load_scalar(bytes, tensor.kind);
    }
    unsigned char bytes[8];
    const Tensor& output = launch.tensors[0];
    store_scalar(bytes, output.kind, apply_functor(*kernel.functor, launch.state, operands));
    simgpu_write(output.address + offsets[0], bytes, scalar_size(output.kind));
    assumed += !known;
  }
  if (assumed) simgpu_assume("element-wise operation on unknown values", assumed);
}

// The closure of a strided kernel, where the compiler spells out what it holds.
bool parse_wrapper(std::string_view type, ElementwiseKernel& kernel) {
  const auto fields = template_arguments(type, "__nv_hdl_wrapper_t");
  for (std::size_t i = 0; i + 2 < fields.size(); ++i) {
    if (!fields[i].starts_with("OffsetCalculator<")) continue;
    kernel.tensors = array_length(fields[i + 1]);
    std::string_view functor = fields[i + 2];
    if (functor.ends_with(" const")) functor.remove_suffix(6);
    kernel.functor = parse_functor(functor);
    kernel.casts = fields.size() > i + 3;
    return kernel.tensors != 0;
  }
  return false;
}

// The closure where it is named after the function that makes it:
// "gpu_kernel_impl<Functor>(...)::{lambda(int)#1}", which holds offsets, pointers, functor and,
// unless "nocast", types.
bool parse_lambda(std::string_view type, ElementwiseKernel& kernel) {
  for (const std::string_view maker :
       {"at::native::gpu_kernel_impl_nocast", "at::native::gpu_kernel_impl"}) {
    if (!type.starts_with(maker) || type.substr(maker.size()).substr(0, 1) != "<") continue;
    const auto arguments = leading_template_arguments(type.substr(maker.size()));
    if (arguments.size() != 1) return false;
    kernel.functor = parse_functor(arguments[0]);
    kernel.casts = !maker.ends_with("nocast");
    if (kernel.functor) kernel.tensors = kernel.functor->inputs + 1;
    return kernel.tensors != 0;
  }
  return false;
}

}  // namespace

std::optional<ElementwiseKernel> parse_elementwise(const KernelName& name) {
  ElementwiseKernel kernel{};
  const auto& arguments = name.arguments;
  if (name.function == "at::native::elementwise_kernel" && arguments.size() == 3) {
    kernel.strided = true;
    if (!parse_wrapper(arguments[2], kernel) && !parse_lambda(arguments[2], kernel))
      return std::nullopt;
  } else {
    const std::size_t at = name.function == "at::native::vectorized_elementwise_kernel" ? 1 : 0;
    if (at == 0 && name.function != "at::native::unrolled_elementwise_kernel") return std::nullopt;
    if (arguments.size() < at + 2) return std::nullopt;
    kernel.functor = parse_functor(arguments[at]);
    kernel.tensors = array_length(arguments[at + 1]);
    kernel.casts = name.text.find("LoadWithCast<") != std::string::npos;
    if (kernel.tensors == 0) return std::nullopt;
  }
  if (kernel.functor && kernel.functor->inputs != kernel.tensors - 1) kernel.functor.reset();
  return kernel;
}

void apply_elementwise(const ElementwiseKernel& kernel, void* const* parameters) {
  Launch launch = read_launch(kernel, parameters);
  if (launch.count <= 0) return;
  const bool understood = kernel.functor && read_types(kernel, launch);
  if (understood && launch.count <= kMaxElements) return compute(kernel, launch);
  // Without a type, a byte of each element surely belongs to the tensor; without a shape, one block
  // of the smallest size.
  const auto count = static_cast<std::size_t>(launch.count);
  std::size_t size = kSmallestBlock;
  if (!kernel.strided)
    size = understood ? scalar_size(launch.tensors[0].kind) * count : std::max(size, count);
  simgpu_forget(launch.tensors[0].address, size);
}

}  // namespace simgpu
