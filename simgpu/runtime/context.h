// The runtime's implicit initialisation: the driver at the first call, the primary context of the
// thread's device at the first call that works on a device.
#pragma once

#include "runtime/headers.h"

namespace simgpu {

// The driver is there and initialised.
cudaError_t enter_driver();

// A context is current in this thread: the one that the program made current through the driver
// interface, or the primary context of the thread's device.
cudaError_t enter_context();

// The device that this thread works on, without making a context.
cudaError_t current_device(int* device);

cudaError_t set_device(int device);

// Primary context of a device, retained once per process until the device is reset.
cudaError_t primary_context(int device, CUcontext* context);

cudaError_t reset_current_device();

}  // namespace simgpu
