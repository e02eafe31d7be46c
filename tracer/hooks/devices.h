// Which device a call concerns, what the device is, and how full it is measured to be.
#ifndef VRAMTRACK_TRACER_HOOKS_DEVICES_H
#define VRAMTRACK_TRACER_HOOKS_DEVICES_H

#include <cstdint>

#include "hooks/cuda_api.h"
#include "hooks/emit.h"

namespace vramtrack {

inline constexpr int16_t kNoDevice = -1;

// Of the context that is current in this thread; no context is ever created for the question.
int16_t current_device();
CUcontext current_context();
// By the pointer's own attributes; the current device where the driver does not say.
int16_t device_of_pointer(CUdeviceptr pointer);

// Writes name, size and UUID when the device is seen for the first time in this file.
void see_device(int16_t device);

// While it lives, calls of this thread that could break somebody's stream capture are allowed, as
// far as the driver can allow them: our questions must not end a capture.
class RelaxedCapture {
 public:
  RelaxedCapture();
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool exchanged_ = false;
};

// cuMemGetInfo of the current context's device: now, or when the last measurement is old.
void sample_memory();
void sample_memory_if_due();
// Libraries of a simulated card take memory by estimate, without a call that a hook could see: it
// is asked before a block is cut and before a mark, where a report may stop.
void sample_changed_libraries();

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_HOOKS_DEVICES_H
