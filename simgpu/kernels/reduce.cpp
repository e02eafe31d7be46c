// The one parameter is a ReduceOp: the operation, its identity, the configuration (element size,
// number of inputs and outputs, ...), the offset calculators, then the pointers to source and
// destination. Where in the structure these lie differs between instances: the configuration is
// found by the element size that it starts with, the pointers as the first two device addresses.
#include "kernels/reduce.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "simgpu.h"

namespace simgpu {
namespace {

constexpr int kMaxElements = 65536;
constexpr int kConfigSearched = 64;
constexpr int kSearched = 1152;  // bytes of ReduceOp up to and with its pointers

struct Layout {
  int inputs, outputs;
  std::uint64_t source, destination;
};

std::optional<Layout> read_layout(const ReduceKernel& kernel, const unsigned char* op) {
  Layout layout{};
  const int element = static_cast<int>(scalar_size(kernel.input.value_or(ScalarKind::kFloat)));
  for (int at = 4; at <= kConfigSearched && layout.inputs == 0; at += 4) {
    int numbers[5];  // element size, inputs, outputs, then steps that are at least one
    std::memcpy(numbers, op + at, sizeof numbers);
    if (numbers[0] != element || numbers[3] < 1 || numbers[4] < 1) continue;
    layout.inputs = std::max(numbers[1], 0);
    layout.outputs = std::max(numbers[2], 0);
  }
  if (layout.inputs == 0 || layout.outputs == 0) return std::nullopt;
  int found = 0;
  for (int at = 16; at < kSearched && found < 2; at += 8) {
    std::uint64_t word;
    std::memcpy(&word, op + at, sizeof word);
    if (!simgpu_is_device_address(word)) continue;
    (found++ == 0 ? layout.source : layout.destination) = word;
  }
  if (found != 2) return std::nullopt;
  return layout;
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

bool floating(ScalarKind kind) {
  return kind >= ScalarKind::kHalf;
}

void write_assumed(const ReduceKernel& kernel, const Layout& layout, Scalar value) {
  const std::size_t size = scalar_size(*kernel.output);
  std::vector<unsigned char> output(size * static_cast<std::size_t>(layout.outputs));
  for (std::size_t at = 0; at < output.size(); at += size)
    store_scalar(output.data() + at, *kernel.output, value);
  simgpu_write(layout.destination, output.data(), output.size());
  simgpu_assume("reduction of unknown values", static_cast<std::uint64_t>(layout.outputs));
}

}  // namespace

std::optional<ReduceKernel> parse_reduce(const KernelName& name) {
  if (name.function != "at::native::reduce_kernel" || name.arguments.size() != 3)
    return std::nullopt;
  const auto op = template_arguments(name.arguments[2], "at::native::ReduceOp");
  if (op.size() < 4) return std::nullopt;
  ReduceKernel kernel{
      .reduction = Reduction::kOther, .input = scalar_kind(op[0]), .output = scalar_kind(op[3])};
  const auto wrapped = template_arguments(op[1], "at::native::func_wrapper_t");
  if (wrapped.size() != 2) return kernel;
  kernel.accumulator = scalar_kind(wrapped[0]);
  constexpr std::pair<std::string_view, Reduction> kOperations[] = {
      {"at::native::MaxNanFunctor<", Reduction::kMaximum},
      {"at::native::MinNanFunctor<", Reduction::kMinimum},
      {"at::native::sum_functor<", Reduction::kSum},
      {"at::native::or_kernel_cuda(", Reduction::kAny},
      {"at::native::and_kernel_cuda(", Reduction::kAll},
  };
  for (const auto& [prefix, reduction] : kOperations) {
    if (wrapped[1].starts_with(prefix) && kernel.input && kernel.output && kernel.accumulator) {
      kernel.reduction = reduction;
    }
  }
  return kernel;
}

void apply_reduce(const ReduceKernel& kernel, void* const* parameters) {
  const auto layout = read_layout(kernel, static_cast<const unsigned char*>(parameters[0]));
  if (!layout) return;
  if (kernel.reduction == Reduction::kOther || layout->outputs > kMaxElements) {
    const std::uint64_t size = kernel.output ? scalar_size(*kernel.output) : 1;
    return simgpu_forget(layout->destination, size * static_cast<std::uint64_t>(layout->outputs));
  }
  const std::size_t size = scalar_size(*kernel.input);
  std::vector<unsigned char> input;
  std::size_t known = 0;
  if (layout->inputs <= kMaxElements && layout->outputs == 1) {
    input.resize(size * static_cast<std::size_t>(layout->inputs));
    known = simgpu_read(layout->source, input.data(), input.size());
  }
  if (known == 0) {
    // A sum of unknown floats stands for one: PyTorch refuses to draw from probabilities that sum
    // to zero.
    const bool one = kernel.reduction == Reduction::kSum && floating(*kernel.input);
    return write_assumed(kernel, *layout, one ? 1 : 0);
  }
  Scalar result = load_scalar(input.data(), *kernel.input);
  if (kernel.reduction == Reduction::kAny || kernel.reduction == Reduction::kAll)
    result = result != 0;
  for (std::size_t at = size; at < input.size(); at += size) {
    result = combine(kernel.reduction, result, load_scalar(input.data() + at, *kernel.input));
  }
  if (known < input.size()) return write_assumed(kernel, *layout, result);
  unsigned char output[8];
  store_scalar(output, *kernel.output, result);
  simgpu_write(layout->destination, output, scalar_size(*kernel.output));
}

}  // namespace simgpu
