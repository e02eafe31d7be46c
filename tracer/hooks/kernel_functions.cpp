#include "hooks/kernel_functions.h"

#include <atomic>
#include <cstring>

#include "hooks/real_functions.h"
#include "record/config.h"
#include "record/recorder.h"

namespace vramtrack {
namespace {

// Handles of unloaded code may come again for something else: a look-up by name overwrites the
// name, and a layout is of the generation in which it was asked.
struct Function {
  std::atomic<uint64_t> handle{0};
  std::atomic<uint64_t> epoch_and_name{0};
  std::atomic<bool> is_kernel{false};
  std::atomic<uint64_t> layout{0};   // generation 16 bits, count 16, first place 32
  std::atomic<uint32_t> tensors{0};  // of the same generation: lists 8 bits, slots 16, steps 1
};

constexpr size_t kFunctions = 1U << 14;
constexpr size_t kMaxProbes = 16;
constexpr uint32_t kPlaces = 1U << 19;
constexpr uint32_t kMaxParameters = 1024;
constexpr uint64_t kUnknownCount = 0xffff;

constinit Function g_functions[kFunctions];
constinit ParameterPlace g_places[kPlaces];
constinit std::atomic<uint32_t> g_next_place{0};
constinit std::atomic<uint32_t> g_generation{1};

// Never 0, which an empty entry has.
uint64_t generation() {
  return g_generation.load(std::memory_order_relaxed) % 0xffff + 1;
}

uint64_t pack(uint32_t id) {
  return (static_cast<uint64_t>(recording_epoch()) << 32) | id;
}

size_t first_entry(uint64_t handle) {
  return static_cast<size_t>((handle * 0x9e3779b97f4a7c15) >> 50);
}

Function* entry_for(const void* handle_pointer) {
  const auto handle = reinterpret_cast<uint64_t>(handle_pointer);
  for (size_t probe = 0; probe < kMaxProbes; ++probe) {
    Function& entry = g_functions[(first_entry(handle) + probe) % kFunctions];
    uint64_t seen = entry.handle.load(std::memory_order_relaxed);
    if (seen == 0 && entry.handle.compare_exchange_strong(seen, handle)) return &entry;
    if (seen == handle) return &entry;
  }
  return nullptr;
}

uint32_t known_name(const Function& entry) {
  const uint64_t value = entry.epoch_and_name.load(std::memory_order_acquire);
  return value >> 32 == recording_epoch() ? static_cast<uint32_t>(value) : 0;
}

void set_name(Function& entry, uint32_t id) {
  entry.epoch_and_name.store(pack(id), std::memory_order_release);
}

const char* ask_name(CUfunction function) {
  const DriverCalls& driver = driver_calls();
  const char* name = nullptr;
  if (driver.cuFuncGetName != nullptr && driver.cuFuncGetName(&name, function) == CUDA_SUCCESS &&
      name != nullptr)
    return name;
  if (driver.cuKernelGetName != nullptr &&
      driver.cuKernelGetName(&name, reinterpret_cast<CUkernel>(function)) == CUDA_SUCCESS)
    return name;
  return nullptr;
}

#if CUDA_VERSION >= 12040
CUresult ask_place(CUfunction function, bool is_kernel, size_t index, size_t& offset,
                   size_t& bytes) {
  const DriverCalls& driver = driver_calls();
  CUresult result = CUDA_ERROR_NOT_SUPPORTED;
  if (!is_kernel && driver.cuFuncGetParamInfo != nullptr)
    result = driver.cuFuncGetParamInfo(function, index, &offset, &bytes);
  if ((is_kernel || result == CUDA_ERROR_INVALID_HANDLE) && driver.cuKernelGetParamInfo != nullptr)
    result =
        driver.cuKernelGetParamInfo(reinterpret_cast<CUkernel>(function), index, &offset, &bytes);
  return result;
}
#else
CUresult ask_place(CUfunction, bool, size_t, size_t&, size_t&) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
#endif

// Asks for one parameter after the other until there are no more: how many there are only newer
// drivers tell. False where the driver does not know.
bool ask_layout(CUfunction function, bool is_kernel, ParameterPlace* places, uint32_t& count) {
  for (uint32_t i = 0; i < kMaxParameters; ++i) {
    size_t offset = 0;
    size_t bytes = 0;
    const CUresult result = ask_place(function, is_kernel, i, offset, bytes);
    if (result == CUDA_ERROR_INVALID_VALUE) return true;  // no more
    if (result != CUDA_SUCCESS || offset > UINT16_MAX || bytes > UINT16_MAX) return false;
    places[i] = {static_cast<uint16_t>(offset), static_cast<uint16_t>(bytes)};
    if (bytes >= sizeof(uint64_t)) count = i + 1;
  }
  return false;
}

// Threads may ask at the same time, each for itself: the table only ever grows.
uint64_t new_layout(const Function& entry, CUfunction function) {
  ParameterPlace places[kMaxParameters];
  uint32_t count = 0;
  uint32_t first = 0;
  bool known = ask_layout(function, entry.is_kernel.load(std::memory_order_relaxed), places, count);
  if (known && count != 0) {
    first = g_next_place.fetch_add(count, std::memory_order_relaxed);
    known = first < kPlaces && count <= kPlaces - first;
    if (!known) g_next_place.store(kPlaces, std::memory_order_relaxed);  // full
  }
  if (known && count != 0) std::memcpy(&g_places[first], places, count * sizeof(ParameterPlace));
  return generation() << 48 | (known ? uint64_t{count} : kUnknownCount) << 32 | first;
}

uint32_t pack(const TensorLists& tensors) {
  return tensors.lists | tensors.slots << 8 | static_cast<uint32_t>(tensors.steps) << 24;
}

TensorLists unpack(uint32_t tensors) {
  return {.lists = tensors & 0xff, .slots = tensors >> 8 & 0xffff, .steps = tensors >> 24 != 0};
}

TensorLists ask_tensors(CUfunction function) {
  const char* name = ask_name(function);
  return name != nullptr ? tensor_lists_of(name) : TensorLists{};
}

void remember(const void* handle, const char* name, bool is_kernel) {
  if (!config().kernels || handle == nullptr) return;
  Function* entry = entry_for(handle);
  if (entry == nullptr) return;
  entry->is_kernel.store(is_kernel, std::memory_order_relaxed);
  // Before the file exists there is nothing to define the name in: then the driver is asked later.
  if (recording_epoch() != 0 && name != nullptr) set_name(*entry, intern_string(name));
}

}  // namespace

void remember_kernel(CUkernel kernel, const char* name) {
  remember(kernel, name, true);
}

void remember_function(CUfunction function, const char* name) {
  remember(function, name, false);
}

void remember_function_of(CUkernel kernel, CUfunction function) {
  if (!config().kernels || recording_epoch() == 0) return;
  const Function* of_kernel = entry_for(kernel);
  const uint32_t id = of_kernel != nullptr ? known_name(*of_kernel) : 0;
  Function* of_function = id != 0 ? entry_for(function) : nullptr;
  if (of_function == nullptr) return;
  of_function->is_kernel.store(false, std::memory_order_relaxed);
  set_name(*of_function, id);
}

void forget_kernels() {
  g_generation.fetch_add(1, std::memory_order_relaxed);
}

uint32_t kernel_name(CUfunction function) {
  Function* entry = entry_for(function);
  if (entry != nullptr)
    if (const uint32_t id = known_name(*entry)) return id;
  const char* name = ask_name(function);
  if (name == nullptr) return 0;
  const uint32_t id = intern_string(name);
  if (entry != nullptr) set_name(*entry, id);
  return id;
}

ParameterLayout parameter_layout(CUfunction function) {
  Function* entry = entry_for(function);
  if (entry == nullptr) return {};
  uint64_t layout = entry->layout.load(std::memory_order_acquire);
  if (layout >> 48 != generation()) {
    layout = new_layout(*entry, function);
    entry->tensors.store(pack(ask_tensors(function)), std::memory_order_relaxed);
    entry->layout.store(layout, std::memory_order_release);
  }
  const uint64_t count = layout >> 32 & 0xffff;
  if (count == kUnknownCount) return {};
  return {&g_places[static_cast<uint32_t>(layout)], static_cast<uint32_t>(count), true,
          unpack(entry->tensors.load(std::memory_order_relaxed))};
}

}  // namespace vramtrack
