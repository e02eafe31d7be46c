#include "hooks/devices.h"

#include <atomic>
#include <cstring>

#include "hooks/real_functions.h"
#include "record/config.h"
#include "record/guard.h"
#include "record/metadata.h"
#include "record/process.h"
#include "record/recorder.h"
#include "record/text.h"

namespace vramtrack {
namespace {

constexpr int kMaxDevices = 64;

struct Device {
  std::atomic<uint32_t> seen_in_epoch{0};
  std::atomic<uint32_t> sampled_in_epoch{0};
  std::atomic<uint64_t> sampled_ns{0};
  std::atomic<uint64_t> sampled_libraries{0};  // what simulated libraries held then
};

constinit Device g_devices[kMaxDevices];
constinit std::atomic<uint32_t> g_described_in_epoch{0};

bool is_known(int16_t device) {
  return device >= 0 && device < kMaxDevices;
}

bool libraries_changed(int16_t device) {
  return simulated_library_bytes(device) !=
         g_devices[device].sampled_libraries.load(std::memory_order_relaxed);
}

void define_uuid(int16_t device, const CUuuid& uuid) {
  static constexpr char kHex[] = "0123456789abcdef";
  FixedText<64> key;
  key.add("device.").add(static_cast<uint64_t>(device)).add(".uuid");
  FixedText<64> value;
  value.add("GPU-");
  for (int i = 0; i < 16; ++i) {
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    const char digits[2] = {kHex[byte >> 4], kHex[byte & 15]};
    value.add({digits, 2});
    if (i == 3 || i == 5 || i == 7 || i == 9) value.add("-");
  }
  define_metadata(key.view(), value.view());
}

// What is true of the driver as a whole, with the first device.
void describe_driver() {
  const uint32_t epoch = recording_epoch();
  if (g_described_in_epoch.exchange(epoch, std::memory_order_relaxed) == epoch) return;
  const DriverCalls& driver = driver_calls();
  int version = 0;
  if (driver.cuDriverGetVersion != nullptr && driver.cuDriverGetVersion(&version) == CUDA_SUCCESS) {
    FixedText<32> text;
    text.add(static_cast<uint64_t>(version / 1000)).add(".");
    text.add(static_cast<uint64_t>(version % 1000 / 10));
    define_metadata("cuda_driver", text.view());
  }
  if (driver_is_simulated()) define_metadata("simulated", "true");
}

void write_assumption(const char* operation, uint64_t count, void* /*unused*/) {
  FixedText<160> key;
  key.add("assumed: ").add(operation);
  FixedText<32> value;
  value.add(count);
  define_metadata(key.view(), value.view());
}

// Which values a simulated GPU had to assume is known at the end, while the driver still is. The
// recording is finished after this.
__attribute__((destructor)) void write_assumptions() {
  const Guard guard;
  if (output_path()[0] == '\0' || !is_running()) return;
  if (const SimulatedAssumptions visit = simulated_assumptions(); visit != nullptr)
    visit(write_assumption, nullptr);
}

}  // namespace

CUcontext current_context() {
  const DriverCalls& driver = driver_calls();
  CUcontext context = nullptr;
  if (driver.cuCtxGetCurrent == nullptr || driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS)
    return nullptr;
  return context;
}

int16_t current_device() {
  const DriverCalls& driver = driver_calls();
  CUdevice device = kNoDevice;
  if (current_context() == nullptr || driver.cuCtxGetDevice == nullptr ||
      driver.cuCtxGetDevice(&device) != CUDA_SUCCESS)
    return kNoDevice;
  return static_cast<int16_t>(device);
}

int16_t device_of_pointer(CUdeviceptr pointer) {
  const DriverCalls& driver = driver_calls();
  int device = kNoDevice;
  if (driver.cuPointerGetAttribute != nullptr &&
      driver.cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) ==
          CUDA_SUCCESS &&
      device >= 0)
    return static_cast<int16_t>(device);
  return current_device();
}

void see_device(int16_t device) {
  if (!is_known(device)) return;
  const uint32_t epoch = recording_epoch();
  Device& d = g_devices[device];
  if (epoch != 0 && d.seen_in_epoch.load(std::memory_order_relaxed) == epoch) return;
  const DriverCalls& driver = driver_calls();
  char name[256] = {};
  size_t total = 0;
  if (driver.cuDeviceGetName != nullptr) driver.cuDeviceGetName(name, sizeof name - 1, device);
  if (driver.cuDeviceTotalMem_v2 != nullptr) driver.cuDeviceTotalMem_v2(&total, device);
  Event event{.kind = EventKind::device_info, .device = device, .size = total};
  event.text = intern_string({name, strnlen(name, sizeof name)});
  record(event);
  d.seen_in_epoch.store(recording_epoch(), std::memory_order_relaxed);
  describe_driver();
  CUuuid uuid{};
  if (driver.cuDeviceGetUuid != nullptr && driver.cuDeviceGetUuid(&uuid, device) == CUDA_SUCCESS)
    define_uuid(device, uuid);
}

RelaxedCapture::RelaxedCapture() {
  const auto exchange = driver_calls().cuThreadExchangeStreamCaptureMode;
  exchanged_ = exchange != nullptr && exchange(&mode_) == CUDA_SUCCESS;
}

RelaxedCapture::~RelaxedCapture() {
  if (exchanged_) driver_calls().cuThreadExchangeStreamCaptureMode(&mode_);
}

void sample_memory() {
  const DriverCalls& driver = driver_calls();
  const int16_t device = current_device();
  size_t free = 0;
  size_t total = 0;
  const RelaxedCapture relaxed;
  if (!is_known(device) || driver.cuMemGetInfo_v2 == nullptr ||
      driver.cuMemGetInfo_v2(&free, &total) != CUDA_SUCCESS)
    return;
  see_device(device);
  const uint64_t libraries = simulated_library_bytes(device);
  Event event{.kind = EventKind::memory_sample,
              .device = device,
              .size = free,
              .requested = libraries,
              .extra = total};
  record(event);
  g_devices[device].sampled_libraries.store(libraries, std::memory_order_relaxed);
  g_devices[device].sampled_ns.store(trace_time_ns(), std::memory_order_relaxed);
  g_devices[device].sampled_in_epoch.store(recording_epoch(), std::memory_order_relaxed);
}

void sample_changed_libraries() {
  if (!driver_is_simulated()) return;
  const int16_t device = current_device();
  if (is_known(device) && libraries_changed(device)) sample_memory();
}

void sample_memory_if_due() {
  const int16_t device = current_device();
  if (!is_known(device)) return;
  const Device& d = g_devices[device];
  const bool never = d.sampled_in_epoch.load(std::memory_order_relaxed) != recording_epoch();
  const uint64_t interval = uint64_t{config().sample_seconds} * 1'000'000'000;
  if (never || libraries_changed(device) ||
      trace_time_ns() - d.sampled_ns.load(std::memory_order_relaxed) >= interval)
    sample_memory();
}

}  // namespace vramtrack
