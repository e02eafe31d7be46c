// cuInit, versions, fork, time.
#include "driver.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tables.h"

namespace simgpu {

namespace {

std::atomic<std::uint32_t> g_not_ready{0};
std::atomic<bool> g_ever_ready{false};
std::mutex g_init_mutex;

constexpr int kDefaultVersion = 13020;

// A word that a child of fork, _Fork or clone finds cleared; nullptr where the kernel refuses.
std::atomic<std::uint32_t>* wiped_word() {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  madvise(page, 4096, MADV_WIPEONFORK);
  return new (page) std::atomic<std::uint32_t>{0};
}

int version_from_environment() {
  const char* text = std::getenv("SIMGPU_DRIVER_VERSION");
  if (text == nullptr || *text == 0) return kDefaultVersion;
  int major = 0, minor = 0;
  if (std::sscanf(text, "%d.%d", &major, &minor) == 2) return major * 1000 + minor * 10;
  int plain = std::atoi(text);
  return plain >= 10000 ? plain : kDefaultVersion;
}

std::uint64_t late_seed_from_environment() {
  const char* text = std::getenv("SIMGPU_EVENTS");
  if (text == nullptr || std::strncmp(text, "late", 4) != 0) return 0;
  std::uint64_t seed = text[4] == ':' ? std::strtoull(text + 5, nullptr, 10) : 1;
  return seed == 0 ? 1 : seed;
}

std::vector<DeviceModel> models_from_environment(std::string& error) {
  const char* text = std::getenv("SIMGPU");
  std::vector<DeviceModel> models = parse_devices(text == nullptr ? "" : text, error);
  if (const char* mib = std::getenv("SIMGPU_CONTEXT_MIB"))
    for (DeviceModel& model : models)
      model.context_bytes = std::min(std::strtoull(mib, nullptr, 10) << 20, 1ULL << 40);
  return models;
}

CUresult initialise() {
  std::string error;
  std::vector<DeviceModel> models = models_from_environment(error);
  if (models.empty()) std::fprintf(stderr, "simgpu: %s\n", error.c_str());
  models = visible_devices(models, std::getenv("CUDA_VISIBLE_DEVICES"));
  if (models.empty()) return CUDA_ERROR_NO_DEVICE;
  auto* state = new Driver;
  state->tables = new Tables;
  state->version = version_from_environment();
  state->late_seed = late_seed_from_environment();
  for (const DeviceModel& model : models) {
    auto device = std::make_unique<Device>(static_cast<int>(state->devices.size()), model);
    device->primary = state->contexts.create();
    if (device->primary == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    device->primary->device = device.get();
    device->primary->primary = true;
    state->devices.push_back(std::move(device));
  }
  g_driver = state;
  for (auto& device : state->devices) create_default_pool(device.get());
  return CUDA_SUCCESS;
}

}  // namespace

Driver* g_driver = nullptr;
std::atomic<const std::atomic<std::uint32_t>*> g_ready{&g_not_ready};
thread_local ThreadState t_state = {};

CUresult why_not_ready() {
  return CUDA_ERROR_NOT_INITIALIZED;
}

CUresult find_device(CUdevice ordinal, Device*& device) {
  SIMGPU_TRY(require_init());
  auto& devices = driver().devices;
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= devices.size())
    return CUDA_ERROR_INVALID_DEVICE;
  device = devices[static_cast<std::size_t>(ordinal)].get();
  return CUDA_SUCCESS;
}

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> id{0};
  return id.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::uint64_t next_timestamp() {
  static std::atomic<std::uint64_t> last{0};
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  auto time =
      static_cast<std::uint64_t>(now.tv_sec) * 1000000000 + static_cast<std::uint64_t>(now.tv_nsec);
  std::uint64_t before = last.load(std::memory_order_relaxed);
  std::uint64_t mine;
  do {
    // Half a microsecond is the resolution that cuEventElapsedTime documents.
    mine = std::max(time, before + 1000);
  } while (!last.compare_exchange_weak(before, mine, std::memory_order_relaxed));
  return mine;
}

}  // namespace simgpu

using namespace simgpu;

CUresult cuInit(unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (require_init() == CUDA_SUCCESS) return CUDA_SUCCESS;
  // A child of a process that has used CUDA: refused, as the real driver does.
  if (g_ever_ready.load()) return CUDA_ERROR_NOT_INITIALIZED;
  std::lock_guard lock(g_init_mutex);
  if (require_init() == CUDA_SUCCESS) return CUDA_SUCCESS;
  SIMGPU_TRY(initialise());
  std::atomic<std::uint32_t>* word = wiped_word();
  if (word == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  word->store(1, std::memory_order_release);
  g_ready.store(word, std::memory_order_release);
  g_ever_ready.store(true);
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = g_driver != nullptr ? driver().version : version_from_environment();
  return CUDA_SUCCESS;
}

// ---- what NVML tells without CUDA: asking must not initialise the driver, or a later fork would
// find it initialised

int simgpu_describe_count(void) {
  std::string error;
  return static_cast<int>(models_from_environment(error).size());
}

int simgpu_describe(int index, struct simgpu_description* description) {
  std::string error;
  std::vector<DeviceModel> models = models_from_environment(error);
  if (description == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (index < 0 || static_cast<std::size_t>(index) >= models.size())
    return CUDA_ERROR_INVALID_DEVICE;
  const DeviceModel& model = models[static_cast<std::size_t>(index)];
  *description = {};
  std::snprintf(description->model, sizeof description->model, "%s", model.key);
  std::snprintf(description->name, sizeof description->name, "%s", model.name);
  description->total = model.total_bytes;
  description->ordinal = -1;
  std::vector<DeviceModel> visible = visible_devices(models, std::getenv("CUDA_VISIBLE_DEVICES"));
  for (std::size_t i = 0; i < visible.size(); ++i)
    if (visible[i].index == index) description->ordinal = static_cast<int>(i);
  description->major = model.major;
  description->minor = model.minor;
  description->multiprocessors = model.multiprocessors;
  description->clock_khz = model.clock_khz;
  description->memory_clock_khz = model.memory_clock_khz;
  description->driver_version = version_from_environment();
  device_uuid(index, description->uuid);
  return CUDA_SUCCESS;
}
