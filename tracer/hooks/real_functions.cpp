#include "hooks/real_functions.h"
#include "record/slice.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "hooks/loaded_objects.h"
#include "record/config.h"

namespace vramtrack {
namespace {

// ---- driver

struct AddressEntry {
  void* real;
  void* wrapper;
};

struct Driver {
  void* real[kHookCount] = {};
  DriverCalls calls;
  AddressEntry by_address[kHookCount] = {};  // sorted by real
  size_t address_count = 0;
  bool simulated = false;
  SimulatedAssumptions assumptions = nullptr;
  SimulatedLibraryBytes library_bytes = nullptr;
};

constinit Driver g_driver;
// 0: not seen, 1: being looked up, 2: complete. It stays loaded for good.
constinit std::atomic<uint32_t> g_driver_state{0};
constinit DriverCalls g_no_calls;

bool is_driver(const LoadedObject& object) {
  const std::string_view name = object.name();
  return slice(name, 0, 10) == std::string_view("libcuda.so") && object.find("cuInit") != nullptr;
}

void read_driver(const LoadedObject& object) {
  Driver& d = g_driver;
  d.address_count = 0;
  for (size_t i = 0; i < kHookCount; ++i) {
    const HookInfo& info = hook_info(static_cast<Hook>(i));
    if (!info.driver) continue;
    d.real[i] = object.find(info.name);
    if (d.real[i] != nullptr)
      d.by_address[d.address_count++] = {d.real[i], reinterpret_cast<void*>(info.wrapper)};
  }
  std::sort(d.by_address, d.by_address + d.address_count,
            [](const AddressEntry& a, const AddressEntry& b) { return a.real < b.real; });
#define CALL(name) d.calls.name = reinterpret_cast<decltype(&::name)>(object.find(#name));
#include "hooks/driver_calls.def"
#undef CALL
  d.simulated = object.exports_prefix("simgpu_");
  d.assumptions = reinterpret_cast<SimulatedAssumptions>(object.find("simgpu_for_each_assumption"));
  d.library_bytes = reinterpret_cast<SimulatedLibraryBytes>(object.find("simgpu_library_bytes"));
}

// Concurrent first calls may both look; the results are the same.
bool driver_ready() {
  if (g_driver_state.load(std::memory_order_acquire) == 2) return true;
  bool found = false;
  for_each_loaded_object([&found](const LoadedObject& object) {
    if (is_ours(reinterpret_cast<const void*>(object.begin())) || !is_driver(object)) return true;
    // Under the loader's lock, so that one thread at a time writes.
    if (g_driver_state.load(std::memory_order_acquire) != 2) read_driver(object);
    g_driver_state.store(2, std::memory_order_release);
    found = true;
    return false;
  });
  return found;
}

// ---- callers

// What each call site means by each name: a table without locks, keyed by return address, hook and
// generation. An entry is replaced by clearing its key, storing the value, storing the new key; a
// reader believes a value that it finds between two equal keys.
struct CallSite {
  std::atomic<uint64_t> key{0};
  std::atomic<uint64_t> value{0};
};

constexpr size_t kCallSites = 1U << 13;
constexpr size_t kProbes = 4;
constexpr uint64_t kFromAllocator = uint64_t{1} << 63;  // no function of a process lies there

constinit CallSite g_call_sites[kCallSites];
constinit std::atomic<uint32_t> g_generation{0};  // grows when libraries go

uint64_t site_key(Hook hook, const void* caller) {
  const uint64_t generation = g_generation.load(std::memory_order_acquire);
  uint64_t h = reinterpret_cast<uint64_t>(caller) ^ (static_cast<uint64_t>(hook) << 48) ^
               (generation * 0x9e3779b97f4a7c15);
  h = (h ^ (h >> 31)) * 0xff51afd7ed558ccd;
  h ^= h >> 33;
  return h == 0 ? 1 : h;
}

bool find_site(uint64_t key, RealFunction& real) {
  for (size_t probe = 0; probe < kProbes; ++probe) {
    const CallSite& site = g_call_sites[(key + probe) % kCallSites];
    if (site.key.load(std::memory_order_acquire) != key) continue;
    const uint64_t value = site.value.load(std::memory_order_acquire);
    if (site.key.load(std::memory_order_acquire) != key) continue;
    real.address = reinterpret_cast<void*>(value & ~kFromAllocator);
    real.from_allocator = (value & kFromAllocator) != 0;
    return true;
  }
  return false;
}

void remember_site(uint64_t key, const RealFunction& real) {
  if (real.address == nullptr) return;
  CallSite* free = &g_call_sites[key % kCallSites];  // replaced where all are taken
  for (size_t probe = 0; probe < kProbes; ++probe) {
    CallSite& site = g_call_sites[(key + probe) % kCallSites];
    if (site.key.load(std::memory_order_relaxed) != 0) continue;
    free = &site;
    break;
  }
  free->key.store(0, std::memory_order_release);
  free->value.store(
      reinterpret_cast<uint64_t>(real.address) | (real.from_allocator ? kFromAllocator : 0),
      std::memory_order_release);
  free->key.store(key, std::memory_order_release);
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return slice(text, 0, prefix.size()) == prefix;
}

// Other preloaded libraries that stand in for the runtime, behind us, come before it.
bool is_preloaded(const LoadedObject& object) {
  const char* list = config().preload;
  return list != nullptr && !object.path().empty() &&
         std::string_view(list).find(object.path()) != std::string_view::npos;
}

constexpr size_t kMaxCandidates = 16;

struct Candidates {
  struct One {
    char soname[64];
    void* real;
    bool interposer;
    bool runtime;
    bool is_caller;
  } all[kMaxCandidates];
  size_t count = 0;
};

Candidates find_candidates(std::string_view name, const void* caller) {
  Candidates found;
  bool behind_us = false;
  for_each_loaded_object([&](const LoadedObject& object) {
    if (is_ours(reinterpret_cast<const void*>(object.begin()))) {
      behind_us = true;
      return true;
    }
    void* real = object.find(name);
    if (real == nullptr) return true;
    Candidates::One& one = found.all[found.count++];
    const std::string_view soname = object.name();
    const size_t length = std::min(soname.size(), sizeof one.soname - 1);
    std::memcpy(one.soname, soname.data(), length);
    one.soname[length] = '\0';
    one.real = real;
    one.runtime = starts_with(soname, "libcudart");
    one.is_caller = object.contains(caller);
    one.interposer = behind_us && !one.runtime && !one.is_caller &&
                     !starts_with(soname, "libc10") && is_preloaded(object);
    return found.count < kMaxCandidates;
  });
  return found;
}

RealFunction choose(std::string_view name, const void* caller) {
  const Candidates candidates = find_candidates(name, caller);
  RealFunction choice;
  const auto take_first = [&](auto accept) {
    for (size_t i = 0; i < candidates.count && choice.address == nullptr; ++i)
      if (accept(candidates.all[i])) choice.address = candidates.all[i].real;
  };
  using One = Candidates::One;
  take_first([](const One& c) { return c.interposer; });
  take_first([](const One& c) { return c.is_caller; });
  for_each_loaded_object([&](const LoadedObject& object) {
    if (!object.contains(caller)) return true;
    choice.from_allocator = starts_with(object.name(), "libc10_cuda.so");
    take_first([&object](const One& c) { return object.needs(c.soname); });
    return false;
  });
  take_first([](const One& c) { return c.runtime; });
  take_first([](const One&) { return true; });
  return choice;
}

}  // namespace

void* real_driver(Hook hook) {
  if (g_driver_state.load(std::memory_order_acquire) != 2 && !driver_ready()) return nullptr;
  return g_driver.real[static_cast<size_t>(hook)];
}

const DriverCalls& driver_calls() {
  return driver_ready() ? g_driver.calls : g_no_calls;
}

bool driver_is_simulated() {
  return driver_ready() && g_driver.simulated;
}

SimulatedAssumptions simulated_assumptions() {
  return driver_ready() ? g_driver.assumptions : nullptr;
}

uint64_t simulated_library_bytes(int device) {
  if (!driver_ready() || g_driver.library_bytes == nullptr) return 0;
  return g_driver.library_bytes(device);
}

void* wrapper_for(void* real) {
  if (real == nullptr || !driver_ready()) return real;
  const AddressEntry* end = g_driver.by_address + g_driver.address_count;
  const AddressEntry* found =
      std::lower_bound(static_cast<const AddressEntry*>(g_driver.by_address), end, real,
                       [](const AddressEntry& entry, void* value) { return entry.real < value; });
  return found != end && found->real == real ? found->wrapper : real;
}

RealFunction real_with_caller(Hook hook, const void* caller) {
  const uint64_t key = site_key(hook, caller);
  RealFunction real;
  if (find_site(key, real)) return real;
  real = choose(hook_info(hook).name, caller);
  remember_site(key, real);
  return real;
}

bool somebody_exports(Hook hook) {
  bool found = false;
  for_each_loaded_object([&](const LoadedObject& object) {
    found = !is_ours(reinterpret_cast<const void*>(object.begin())) &&
            object.find(hook_info(hook).name) != nullptr;
    return !found;
  });
  return found;
}

void forget_callers() {
  g_generation.fetch_add(1, std::memory_order_release);
}

}  // namespace vramtrack
