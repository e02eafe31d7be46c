// The cards that can be simulated, and what each says about itself.
#ifndef SIMGPU_DRIVER_DEVICE_MODELS_H
#define SIMGPU_DRIVER_DEVICE_MODELS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api.h"

namespace simgpu {

struct DeviceModel {
  const char* key;   // as SIMGPU names it
  const char* name;  // as the card names itself
  int major, minor;  // compute capability
  int multiprocessors;
  std::uint64_t total_bytes;    // as the driver reports it, not the size on the box
  std::uint64_t context_bytes;  // ESTIMATE of what a context takes
  int l2_bytes;
  int bus_width_bits;
  int clock_khz, memory_clock_khz;
  int threads_per_multiprocessor;
  int blocks_per_multiprocessor;
  int shared_per_multiprocessor;  // bytes
  int shared_per_block_optin;     // bytes
  int index = 0;                  // among all cards of the machine
};

// What SIMGPU chooses: "h100-80g", "2x a100-40g", "8GiB", several joined by commas.
// On a word that names no card, `error` says so and the list is empty.
std::vector<DeviceModel> parse_devices(std::string_view text, std::string& error);

// What CUDA_VISIBLE_DEVICES leaves of them, in its order; nullptr leaves all.
std::vector<DeviceModel> visible_devices(const std::vector<DeviceModel>& devices,
                                         const char* visible);

// "SIMG" and the index: recognisable, and the same at every run.
void device_uuid(int index, unsigned char uuid[16]);
std::string uuid_text(int index);

// Answers one attribute; CUDA_ERROR_INVALID_VALUE for a number that is no attribute.
CUresult device_attribute(const DeviceModel& model, CUdevice_attribute attribute, int* value);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_DEVICE_MODELS_H
