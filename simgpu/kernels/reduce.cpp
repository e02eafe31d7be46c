// The one parameter is a ReduceOp: the operation and its identity (of a size that depends on both),
// the configuration of sixteen words (element size, number of inputs and outputs, steps, ...), the
// offset calculators of input and output, then the pointers to source and destination.
#include "kernels/reduce.h"

#include <algorithm>
#include <cstring>

#include "kernels/offsets.h"
#include "simgpu.h"

namespace simgpu {
namespace {

constexpr std::int64_t kMaxElements = 65536;
constexpr std::size_t kConfigSearched = 48, kConfigSize = 64;

struct Layout {
  int inputs, outputs;  // inputs of each output
  Offsets input, output;
  std::uint64_t source, destination;
};

// The configuration is found by what it starts with: the size of what is accumulated (of a few
// numbers where the operation is an index or a pair), then five counts that are at least one.
std::optional<std::size_t> find_config(const ReduceKernel& kernel, const unsigned char* op) {
  const int size = kernel.accumulated ? static_cast<int>(scalar_size(*kernel.accumulated)) : 0;
  for (std::size_t at = 4; at <= kConfigSearched; at += 4) {
    int numbers[6];
    std::memcpy(numbers, op + at, sizeof numbers);
    const bool plausible = numbers[0] >= 1 && numbers[0] <= 32;
    if ((size ? numbers[0] == size : plausible) && *std::min_element(numbers + 1, numbers + 6) >= 1)
      return at;
  }
  return std::nullopt;
}

std::optional<Layout> read_layout(const ReduceKernel& kernel, const unsigned char* op) {
  const auto config = find_config(kernel, op);
  if (!config) return std::nullopt;
  const std::size_t input = *config + kConfigSize, output = input + Offsets::size(1);
  const std::size_t pointers = (output + Offsets::size(2) + 7) / 8 * 8;
  Layout layout{.inputs = 0, .outputs = 0, .input{op + input, 1}, .output{op + output, 2}};
  std::memcpy(&layout.inputs, op + *config + 4, 8);
  std::memcpy(&layout.source, op + pointers, 8);
  std::memcpy(&layout.destination, op + pointers + 8, 8);
  if (!simgpu_is_device_address(layout.source) || !simgpu_is_device_address(layout.destination))
    return std::nullopt;
  return layout;
}

bool floating(ScalarKind kind) {
  return kind >= ScalarKind::kHalf;
}

Scalar combine(Reduction reduction, Scalar left, Scalar right) {
  switch (reduction) {
    case Reduction::kSum:
      return left + right;
    case Reduction::kMaximum:
      return std::max(left, right);
    case Reduction::kMinimum:
      return std::min(left, right);
    case Reduction::kAny:
      return left != 0 || right != 0;
    case Reduction::kAll:
      return left != 0 && right != 0;
    case Reduction::kOther:
      break;
  }
  return 0;
}

struct Result {
  Scalar value;
  int known;
};

Result reduce_one(const ReduceKernel& kernel, const Layout& layout, std::uint64_t source) {
  Result result{0, 0};
  const std::size_t size = scalar_size(*kernel.input);
  for (int i = 0; i < layout.inputs; ++i) {
    std::uint64_t offset;
    layout.input.find(static_cast<std::uint32_t>(i), &offset);
    unsigned char bytes[8];
    result.known += simgpu_read(source + offset, bytes, size) == size;
    const Scalar value = load_scalar(bytes, *kernel.input);
    const bool logical = kernel.reduction == Reduction::kAny || kernel.reduction == Reduction::kAll;
    result.value = i > 0     ? combine(kernel.reduction, result.value, value)
                   : logical ? value != 0
                             : value;
  }
  // A sum of unknown floats stands for one: PyTorch refuses to draw from probabilities that sum to
  // zero.
  if (result.known == 0 && kernel.reduction == Reduction::kSum && floating(*kernel.input))
    result.value = 1;
  return result;
}

}  // namespace

std::optional<ReduceKernel> parse_reduce(const KernelName& name) {
  if (name.function != "at::native::reduce_kernel" || name.arguments.size() != 3)
    return std::nullopt;
  const auto op = template_arguments(name.arguments[2], "at::native::ReduceOp");
  if (op.size() < 4 || op[2] != "unsigned int") return std::nullopt;
  ReduceKernel kernel{
      .reduction = Reduction::kOther, .input = scalar_kind(op[0]), .output = scalar_kind(op[3])};
  const auto wrapped = template_arguments(op[1], "at::native::func_wrapper_t");
  if (wrapped.size() != 2) return kernel;
  kernel.accumulated = scalar_kind(wrapped[0]);
  if (!kernel.accumulated || !kernel.input || !kernel.output) return kernel;
  constexpr std::pair<std::string_view, Reduction> kOperations[] = {
      {"at::native::MaxNanFunctor<", Reduction::kMaximum},
      {"at::native::MinNanFunctor<", Reduction::kMinimum},
      {"at::native::sum_functor<", Reduction::kSum},
      {"at::native::or_kernel_cuda(", Reduction::kAny},
      {"at::native::and_kernel_cuda(", Reduction::kAll},
  };
  for (const auto& [prefix, reduction] : kOperations) {
    if (wrapped[1].starts_with(prefix)) kernel.reduction = reduction;
  }
  return kernel;
}

void apply_reduce(const ReduceKernel& kernel, void* const* parameters) {
  const auto layout = read_layout(kernel, static_cast<const unsigned char*>(parameters[0]));
  if (!layout || layout->outputs > kMaxElements) return;
  const bool many = std::int64_t{layout->inputs} * layout->outputs > kMaxElements;
  const bool sum =
      kernel.reduction == Reduction::kSum && floating(kernel.input.value_or(ScalarKind::kInt64));
  std::uint64_t assumed = 0;
  for (int i = 0; i < layout->outputs; ++i) {
    std::uint64_t offsets[2];  // into the destination, into the source
    layout->output.find(static_cast<std::uint32_t>(i), offsets);
    const std::uint64_t destination = layout->destination + offsets[0];
    if (kernel.reduction == Reduction::kOther || (many && !sum)) {
      simgpu_forget(destination, kernel.output ? scalar_size(*kernel.output) : 1);
      continue;
    }
    const Result result =
        many ? Result{1, 0} : reduce_one(kernel, *layout, layout->source + offsets[1]);
    unsigned char bytes[8];
    store_scalar(bytes, *kernel.output, result.value);
    simgpu_write(destination, bytes, scalar_size(*kernel.output));
    assumed += result.known < layout->inputs;
  }
  if (assumed) simgpu_assume("reduction of unknown values", assumed);
}

}  // namespace simgpu
