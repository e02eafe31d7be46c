#include "kernels/functor.h"

#include <algorithm>
#include <cstring>

#include "kernels/kernel_name.h"

namespace simgpu {
namespace {

constexpr std::string_view kNative = "at::native::";

struct BinaryOperation {
  std::string_view prefix;  // of the functor's type, after at::native::
  Operation operation;
  bool has_selector;  // an int that chooses among comparisons comes first
};

constexpr BinaryOperation kBinaryOperations[] = {
    {"BitwiseAndFunctor<", Operation::kBitAnd, false},
    {"BitwiseOrFunctor<", Operation::kBitOr, false},
    {"BitwiseXorFunctor<", Operation::kBitXor, false},
    {"binary_internal::MulFunctor<", Operation::kMultiply, false},
    {"binary_internal::DivFunctor<", Operation::kDivide, false},
    {"(anonymous namespace)::CompareEqFunctor<", Operation::kCompareEqual, true},
    {"(anonymous namespace)::CompareFunctor<", Operation::kCompare, true},
    {"logical_and_kernel_cuda(", Operation::kAnd, false},
    {"logical_or_kernel_cuda(", Operation::kOr, false},
    {"logical_xor_kernel_cuda(", Operation::kXor, false},
    {"maximum_kernel_cuda(", Operation::kMaximum, false},
    {"minimum_kernel_cuda(", Operation::kMinimum, false},
};

const BinaryOperation* binary_operation(std::string_view type) {
  if (!type.starts_with(kNative)) return nullptr;
  type.remove_prefix(kNative.size());
  for (const BinaryOperation& candidate : kBinaryOperations) {
    if (type.starts_with(candidate.prefix)) return &candidate;
  }
  return nullptr;
}

int size_of(ScalarKind kind) {
  return static_cast<int>(scalar_size(kind));
}

int align_up(int offset, ScalarKind kind) {
  const int size = size_of(kind);
  return (offset + size - 1) / size * size;
}

// BinaryFunctor<A, B, R, F>, and {A,B}UnaryFunctor, where a constant of the compute type stands for
// the left or the right operand and lies behind F in the functor.
std::optional<Functor> parse_binary(std::string_view type) {
  constexpr std::string_view kShapes[] = {"at::native::AUnaryFunctor", "at::native::BUnaryFunctor",
                                          "at::native::BinaryFunctor"};
  for (int side = 0; side < 3; ++side) {
    const auto arguments = template_arguments(type, kShapes[side]);
    if (arguments.size() != 4) continue;
    const auto left = scalar_kind(arguments[0]), right = scalar_kind(arguments[1]),
               result = scalar_kind(arguments[2]);
    const BinaryOperation* inner = binary_operation(arguments[3]);
    if (!left || !right || !result || !inner) return std::nullopt;
    Functor functor{
        .operation = inner->operation, .inputs = 2, .input = {*left, *right}, .output = *result};
    functor.size = inner->has_selector ? 4 : 1;
    if (side < 2) {
      functor.inputs = 1;
      functor.input[0] = side == 0 ? *right : *left;
      functor.constant = compute_kind(side == 0 ? *left : *right);
      functor.constant_side = side;
      functor.constant_offset = align_up(functor.size, functor.constant);
      functor.size = functor.constant_offset + size_of(functor.constant);
    }
    return functor;
  }
  return std::nullopt;
}

// left + scale * right, with one operand a constant in two of the three.
std::optional<Functor> parse_add(std::string_view type) {
  constexpr std::string_view kShapes[] = {"at::native::CUDAFunctorOnOther_add",
                                          "at::native::CUDAFunctorOnSelf_add",
                                          "at::native::CUDAFunctor_add"};
  for (int side = 0; side < 3; ++side) {
    const auto arguments = template_arguments(type, kShapes[side]);
    if (arguments.size() != 1) continue;
    const auto kind = scalar_kind(arguments[0]);
    if (!kind) return std::nullopt;
    Functor functor{
        .operation = Operation::kAdd, .inputs = 2, .input = {*kind, *kind}, .output = *kind};
    functor.constant = compute_kind(*kind);
    functor.scale_offset = 0;
    functor.size = size_of(functor.constant);
    if (side < 2) {
      functor.inputs = 1;
      functor.constant_side = side;
      functor.scale_offset = size_of(functor.constant);
      functor.size = 2 * functor.scale_offset;
    }
    return functor;
  }
  return std::nullopt;
}

std::optional<Functor> parse_fill(std::string_view type) {
  const auto arguments = template_arguments(type, "at::native::FillFunctor");
  if (arguments.size() != 1 || !scalar_kind(arguments[0])) return std::nullopt;
  const ScalarKind kind = *scalar_kind(arguments[0]);
  return Functor{.operation = Operation::kFill,
                 .inputs = 0,
                 .output = kind,
                 .constant = kind,
                 .size = size_of(kind)};
}

// Functions that are lambdas of a named function.
std::optional<Functor> parse_lambda(std::string_view type) {
  struct Lambda {
    std::string_view function;
    Operation operation;
    std::size_t inputs;
  };
  constexpr Lambda kLambdas[] = {
      {"at::native::direct_copy_kernel_cuda(", Operation::kCopy, 1},
      {"at::native::bitwise_not_kernel_cuda(", Operation::kBitNot, 1},
      {"at::native::logical_not_kernel_cuda(", Operation::kNot, 1},
      {"at::native::(anonymous namespace)::where_kernel_impl(", Operation::kWhere, 3},
  };
  for (const Lambda& lambda : kLambdas) {
    if (!type.starts_with(lambda.function)) continue;
    const auto parameters = lambda_parameters(type);
    if (parameters.size() != lambda.inputs) return std::nullopt;
    Functor functor{.operation = lambda.operation, .inputs = static_cast<int>(lambda.inputs)};
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto kind = scalar_kind(parameters[i]);
      if (!kind) return std::nullopt;
      functor.input[i] = *kind;
    }
    functor.output =
        lambda.operation == Operation::kNot ? ScalarKind::kBool : functor.input[lambda.inputs - 1];
    if (lambda.operation == Operation::kBitNot && functor.output == ScalarKind::kBool) {
      functor.operation = Operation::kNot;
    }
    return functor;
  }
  return std::nullopt;
}

// A copy that converts, "converting_copy_kernel_cuda<From, To>(...)::{lambda(From)#1}".
std::optional<Functor> parse_converting_copy(std::string_view type) {
  constexpr std::string_view kName = "at::native::converting_copy_kernel_cuda";
  if (!type.starts_with(kName)) return std::nullopt;
  const auto kinds = leading_template_arguments(type.substr(kName.size()));
  if (kinds.size() != 2 || !scalar_kind(kinds[0]) || !scalar_kind(kinds[1])) return std::nullopt;
  return Functor{.operation = Operation::kCopy,
                 .inputs = 1,
                 .input = {*scalar_kind(kinds[0])},
                 .output = *scalar_kind(kinds[1])};
}

// masked_fill: a lambda of (element, mask) that holds the value.
std::optional<Functor> parse_masked_fill(std::string_view type) {
  if (!type.starts_with("at::native::(anonymous namespace)::masked_fill_kernel("))
    return std::nullopt;
  const auto parameters = lambda_parameters(type);
  if (parameters.size() != 2 || parameters[1] != "bool" || !scalar_kind(parameters[0])) {
    return std::nullopt;
  }
  const ScalarKind kind = *scalar_kind(parameters[0]);
  return Functor{.operation = Operation::kMaskedFill,
                 .inputs = 2,
                 .input = {kind, ScalarKind::kBool},
                 .output = kind,
                 .constant = kind,
                 .size = size_of(kind)};
}

// A tensor compared with a scalar: the comparison, then the scalar, are what the lambda holds.
// Compilers wrap it in a type that names the function in the middle.
std::optional<Functor> parse_compare_scalar(std::string_view type) {
  constexpr std::string_view kName = "at::native::compare_scalar_kernel<";
  const std::size_t at = type.find(kName);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = type.substr(at + kName.size());
  const auto kind = scalar_kind(rest.substr(0, rest.find('>')));
  if (!kind) return std::nullopt;
  Functor functor{
      .operation = Operation::kCompare, .inputs = 1, .input = {*kind}, .output = ScalarKind::kBool};
  functor.constant = *kind;
  functor.constant_side = 1;
  functor.constant_offset = align_up(4, *kind);
  functor.size = functor.constant_offset + size_of(*kind);
  return functor;
}

std::optional<Functor> parse_plain_compare(std::string_view type) {
  const auto arguments =
      template_arguments(type, "at::native::(anonymous namespace)::CompareFunctor");
  if (arguments.size() != 1 || !scalar_kind(arguments[0])) return std::nullopt;
  const ScalarKind kind = *scalar_kind(arguments[0]);
  return Functor{.operation = Operation::kCompare,
                 .inputs = 2,
                 .input = {kind, kind},
                 .output = ScalarKind::kBool,
                 .size = 4};
}

bool compare(int selector, Scalar left, Scalar right) {
  switch (selector) {
    case 0:
      return left >= right;
    case 1:
      return left > right;
    case 2:
      return left <= right;
    default:
      return left < right;
  }
}

std::int64_t bits(Scalar value) {
  return static_cast<std::int64_t>(value);
}

}  // namespace

std::optional<Functor> parse_functor(std::string_view type) {
  for (auto* parse : {parse_fill, parse_binary, parse_add, parse_lambda, parse_converting_copy,
                      parse_masked_fill, parse_compare_scalar, parse_plain_compare}) {
    if (const auto functor = parse(type)) return functor;
  }
  return std::nullopt;
}

Scalar apply_functor(const Functor& functor, const unsigned char* state, const Scalar* operands) {
  const auto constant = [&] {
    return load_scalar(state + functor.constant_offset, functor.constant);
  };
  Scalar left = functor.inputs > 0 ? operands[0] : 0;
  Scalar right = functor.inputs > 1 ? operands[1] : 0;
  if (functor.constant_side == 0) {
    right = left;
    left = constant();
  } else if (functor.constant_side == 1) {
    right = constant();
  }
  int selector = 0;
  if (functor.operation == Operation::kCompare || functor.operation == Operation::kCompareEqual) {
    std::memcpy(&selector, state + functor.selector_offset, sizeof selector);
  }
  switch (functor.operation) {
    case Operation::kFill:
      return constant();
    case Operation::kCopy:
      return left;
    case Operation::kNot:
      return left == 0;
    case Operation::kBitNot:
      return static_cast<Scalar>(~bits(left));
    case Operation::kBitAnd:
      return static_cast<Scalar>(bits(left) & bits(right));
    case Operation::kBitOr:
      return static_cast<Scalar>(bits(left) | bits(right));
    case Operation::kBitXor:
      return static_cast<Scalar>(bits(left) ^ bits(right));
    case Operation::kAnd:
      return left != 0 && right != 0;
    case Operation::kOr:
      return left != 0 || right != 0;
    case Operation::kXor:
      return (left != 0) != (right != 0);
    case Operation::kAdd:
      return left + load_scalar(state + functor.scale_offset, functor.constant) * right;
    case Operation::kMultiply:
      return left * right;
    case Operation::kDivide:
      return left / right;
    case Operation::kMaximum:
      return std::max(left, right);
    case Operation::kMinimum:
      return std::min(left, right);
    case Operation::kCompare:
      return compare(selector, left, right);
    case Operation::kCompareEqual:
      return selector == 0 ? left == right : left != right;
    case Operation::kMaskedFill:
      return right != 0 ? constant() : left;
    case Operation::kWhere:
      return operands[0] != 0 ? operands[1] : operands[2];
  }
  return 0;
}

}  // namespace simgpu
