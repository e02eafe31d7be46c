// Kernels of a real wheel, by their mangled names, on contents that live in a map here.
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include "kernels/effects.h"
#include "kernels/kernel_name.h"
#include "simgpu.h"

namespace {

constexpr std::uint64_t kBase = 0x7f0000000000;
std::map<std::uint64_t, unsigned char> contents;
std::uint64_t assumed;

}  // namespace

int simgpu_is_device_address(std::uint64_t address) {
  return address >= kBase && address < kBase + (1 << 20);
}
void simgpu_write(std::uint64_t address, const void* data, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i)
    contents[address + i] = static_cast<const unsigned char*>(data)[i];
}
std::size_t simgpu_read(std::uint64_t address, void* data, std::size_t size) {
  std::size_t known = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const auto found = contents.find(address + i);
    known += found != contents.end();
    static_cast<unsigned char*>(data)[i] = found != contents.end() ? found->second : 0;
  }
  return known;
}
void simgpu_forget(std::uint64_t address, std::size_t size) {
  contents.erase(contents.lower_bound(address), contents.lower_bound(address + size));
}
void simgpu_assume(const char*, std::uint64_t count) {
  assumed += count;
}

namespace {

struct Fresh {
  Fresh() {
    contents.clear();
    assumed = 0;
  }
};

template <class T>
void put(std::uint64_t address, const std::vector<T>& values) {
  simgpu_write(address, values.data(), values.size() * sizeof(T));
}

template <class T>
std::vector<T> get(std::uint64_t address, std::size_t count) {
  std::vector<T> values(count);
  REQUIRE(simgpu_read(address, values.data(), count * sizeof(T)) == count * sizeof(T));
  return values;
}

using Bytes = std::vector<std::uint8_t>;

constexpr const char* kFillBool =
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_"
    "11FillFunctorIbEESt5arrayIPcLm1EELb0EEEviT0_T1_";
constexpr const char* kOrBool =
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13BinaryFunctorIbbbNS0_"
    "16BitwiseOrFunctorIbEEEESt5arrayIPc"
    "Lm3EELb0EEEviT0_T1_";
constexpr const char* kNotBool =
    "_ZN2at6native29vectorized_elementwise_kernelILi4EZNS0_23bitwise_not_kernel_cudaERNS_"
    "18TensorIteratorBaseEEUlbE_"
    "St5arrayIPcLm2EELb0EEEviT0_T1_";
constexpr const char* kEqualLong =
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13AUnaryFunctorIllbNS0_51_GLOBAL__N__"
    "68c48bfe_18_"
    "CompareEQKernel_cu_d8008c9616CompareEqFunctorIlEEEESt5arrayIPcLm2EELb0EEEviT0_T1_";
constexpr const char* kAndLongCasting =
    "_ZN2at6native27unrolled_elementwise_kernelINS0_13BinaryFunctorIlllNS0_"
    "17BitwiseAndFunctorIlEEEESt5arrayIPcLm3EELi"
    "4E23TrivialOffsetCalculatorILi2EjES9_ILi1EjENS0_6memory12LoadWithCastILi2EEENSC_"
    "13StoreWithCastILi1EEEEEviT_T0_"
    "T2_T3_T4_T5_";
constexpr const char* kMaxLong =
    "_ZN2at6native13reduce_kernelILi128ELi4ENS0_8ReduceOpIlNS0_14func_wrapper_tIlNS0_"
    "13MaxNanFunctorIlEEEEjlLi4ELi4EEEEE"
    "vT1_";
constexpr const char* kLessFloat =
    "_ZN2at6nativeL29vectorized_elementwise_kernelILi4E18__nv_hdl_wrapper_tILb0ELb0ELb0E11__nv_dl_"
    "tagIPFvRNS_"
    "18TensorIteratorBaseENS0_50_GLOBAL__N__30bf7ff7_17_CompareKernels_cu_8f1b29aa6OpTypeEfEXadL_"
    "ZNS0_21compare_scalar_"
    "kernelIfEEvS5_S7_T_EELj1EEFbfEJNS6_14CompareFunctorIfEEfEESt5arrayIPcLm2EELb0EEEviT0_T1_";

}  // namespace

TEST_CASE_METHOD(Fresh, "a fill writes the constant in its functor") {
  int count = 3;
  bool value = true;
  std::uint64_t pointers[] = {kBase};
  void* parameters[] = {&count, &value, pointers};
  simgpu::apply_launch_effects(kFillBool, parameters);
  CHECK(get<std::uint8_t>(kBase, 3) == Bytes{1, 1, 1});
  CHECK(assumed == 0);
}

TEST_CASE_METHOD(
    Fresh, "a binary operation combines elements; unknown ones count as zero and as assumed") {
  put<std::uint8_t>(kBase + 512, {1, 0, 0, 1});
  put<std::uint8_t>(kBase + 1024, {0, 0, 1, 1});
  int count = 4;
  char functor = 0;
  std::uint64_t pointers[] = {kBase, kBase + 512, kBase + 1024};
  void* parameters[] = {&count, &functor, pointers};
  simgpu::apply_launch_effects(kOrBool, parameters);
  CHECK(get<std::uint8_t>(kBase, 4) == Bytes{1, 0, 1, 1});
  CHECK(assumed == 0);
  simgpu_forget(kBase + 1024, 4);
  simgpu::apply_launch_effects(kOrBool, parameters);
  CHECK(get<std::uint8_t>(kBase, 4) == Bytes{1, 0, 0, 1});
  CHECK(assumed == 4);
}

TEST_CASE_METHOD(Fresh, "bitwise not on bool is logical") {
  put<std::uint8_t>(kBase + 512, {1, 0});
  int count = 2;
  char functor = 0;
  std::uint64_t pointers[] = {kBase, kBase + 512};
  void* parameters[] = {&count, &functor, pointers};
  simgpu::apply_launch_effects(kNotBool, parameters);
  CHECK(get<std::uint8_t>(kBase, 2) == Bytes{0, 1});
}

TEST_CASE_METHOD(Fresh, "a comparison with a constant reads which one, then the constant") {
  put<std::int64_t>(kBase + 512, {7, 8, std::numeric_limits<std::int64_t>::max()});
  int count = 3;
  struct {
    int not_equal;
    std::int64_t constant;
  } functor{0, std::numeric_limits<std::int64_t>::max()};
  std::uint64_t pointers[] = {kBase, kBase + 512};
  void* parameters[] = {&count, &functor, pointers};
  simgpu::apply_launch_effects(kEqualLong, parameters);
  CHECK(get<std::uint8_t>(kBase, 3) == Bytes{0, 0, 1});
  functor.not_equal = 1;
  simgpu::apply_launch_effects(kEqualLong, parameters);
  CHECK(get<std::uint8_t>(kBase, 3) == Bytes{1, 1, 0});
}

TEST_CASE_METHOD(Fresh, "a comparison of floats with a scalar, as compilers wrap it") {
  put<float>(kBase + 512, {1.0F, INFINITY});
  int count = 2;
  struct {
    int operation;
    float constant;
  } functor{3, INFINITY};
  std::uint64_t pointers[] = {kBase, kBase + 512};
  void* parameters[] = {&count, &functor, pointers};
  simgpu::apply_launch_effects(kLessFloat, parameters);
  CHECK(get<std::uint8_t>(kBase, 2) == Bytes{1, 0});
}

TEST_CASE_METHOD(Fresh, "types that a kernel converts come from its loader and storer") {
  put<std::int64_t>(kBase + 512, {1, 1, 3});
  put<std::uint8_t>(kBase + 1024, {1, 0, 1});
  int count = 3;
  char functor = 0, trivial = 0;
  std::uint64_t pointers[] = {kBase, kBase + 512, kBase + 1024};
  signed char loader[] = {4, 11}, storer[] = {4};  // int64, bool; int64
  void* parameters[] = {&count, &functor, pointers, &trivial, &trivial, loader, storer};
  simgpu::apply_launch_effects(kAndLongCasting, parameters);
  CHECK(get<std::int64_t>(kBase, 3) == std::vector<std::int64_t>{1, 0, 1});
}

// A ReduceOp over int64: operation and identity in 16 bytes, the configuration, the calculators,
// the pointers.
struct ReduceOp {
  std::uint64_t operation = 0, identity = 0;
  int element = 8, inputs = 0, outputs = 0, more[13] = {1, 1, 1};
  struct {
    int dimensions = 0;
    unsigned sizes[25][3] = {}, strides[25] = {};
  } input;
  struct {
    int dimensions = 0;
    unsigned sizes[25][3] = {}, strides[25][2] = {};
  } output;
  std::uint64_t source = kBase + 512, destination = kBase;
};
static_assert(offsetof(ReduceOp, source) == 992, "as in a launch of the wheel");

TEST_CASE_METHOD(Fresh, "a reduction of all elements to one") {
  put<std::int64_t>(kBase + 512, {0, 5, -2});
  ReduceOp op{.inputs = 3, .outputs = 1};
  op.input = {.dimensions = 1, .sizes = {{3}}, .strides = {8}};
  void* parameters[] = {&op};
  simgpu::apply_launch_effects(kMaxLong, parameters);
  CHECK(get<std::int64_t>(kBase, 1)[0] == 5);
  CHECK(assumed == 0);
}

TEST_CASE_METHOD(Fresh, "a reduction of the columns of a matrix") {
  put<std::int64_t>(kBase + 512, {1, 9, 4, 2, 3, 7});  // two rows of three
  ReduceOp op{.inputs = 2, .outputs = 3};
  op.input = {.dimensions = 1, .sizes = {{2}}, .strides = {24}};
  op.output = {.dimensions = 1, .sizes = {{3}}, .strides = {{8, 8}}};
  void* parameters[] = {&op};
  simgpu::apply_launch_effects(kMaxLong, parameters);
  CHECK(get<std::int64_t>(kBase, 3) == std::vector<std::int64_t>{2, 9, 7});
}

TEST_CASE_METHOD(Fresh, "the scale of a GradScaler") {
  put<float>(kBase, {1024.0F});
  put<int>(kBase + 512, {1});
  put<float>(kBase + 1024, {0.0F});
  std::uint64_t scale = kBase, steps = kBase + 512, infinity = kBase + 1024;
  double growth = 2, backoff = 0.5;
  int interval = 2;
  void* parameters[] = {&scale, &steps, &infinity, &growth, &backoff, &interval};
  const char* kernel = "_ZN2at6native28amp_update_scale_cuda_kernelEPfPiPKfddi";
  simgpu::apply_launch_effects(kernel, parameters);
  CHECK(get<float>(kBase, 1)[0] == 2048.0F);
  CHECK(get<int>(kBase + 512, 1)[0] == 0);
  put<float>(kBase + 1024, {1.0F});
  simgpu::apply_launch_effects(kernel, parameters);
  CHECK(get<float>(kBase, 1)[0] == 1024.0F);
}

TEST_CASE_METHOD(Fresh, "what is not followed in full makes its output unknown") {
  put<std::uint8_t>(kBase, {9, 9, 9, 9});
  int count = 1 << 20;
  bool value = true;
  std::uint64_t pointers[] = {kBase};
  void* parameters[] = {&count, &value, pointers};
  simgpu::apply_launch_effects(kFillBool, parameters);
  CHECK(contents.empty());
  simgpu::apply_launch_effects("_Z3fooPf", parameters);
  simgpu::apply_launch_effects("no C++ name", parameters);
}

TEST_CASE("kernel names are taken apart at their outermost commas") {
  const auto parts = simgpu::split_arguments("4, at::Functor<bool, long>, std::array<char*, 2ul>");
  REQUIRE(parts.size() == 3);
  CHECK(parts[1] == "at::Functor<bool, long>");
  CHECK(
      simgpu::lambda_parameters("f(int)::{lambda()#1}::operator()() const::{lambda(bool, long)#2}")
          .size() == 2);
  CHECK(simgpu::parse_kernel_name(kMaxLong).function == "at::native::reduce_kernel");
}
