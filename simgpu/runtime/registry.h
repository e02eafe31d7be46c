// What nvcc's generated code registers at load time: fat binaries, and which host addresses stand
// for which kernels and variables in them.
//
// A large program registers tens of thousands of kernels before main and launches a few:
// registering is a push onto a list, the index is made at the first look-up, and an image goes to
// the driver at the first use of something in it. Names and images stay the program's memory;
// nothing is copied.
//
// The danger: registration runs inside dlopen, and unregistration inside exit, when static objects
// of this library may be gone. The registry is therefore never destroyed.
#pragma once

#include <vector>

#include "runtime/headers.h"

namespace simgpu {

struct FatBinary;

struct Variable {
  FatBinary* binary;
  const void* host;  // the address that stands for it; for a managed variable, of its pointer
  const char* name;
  size_t size;
  bool managed;
};

FatBinary* register_binary(void* wrapper);
void register_function(FatBinary* binary, const void* host, const char* name);
void register_variable(const Variable& variable);
void unregister_binary(FatBinary* binary);

// Puts the addresses of managed variables where the program reads them; constant time where there
// are none.
cudaError_t prepare_managed(FatBinary* binary);

// The kernel that a host address stands for, or that is such a handle itself. Loads the image.
cudaError_t find_kernel(const void* host, CUkernel* kernel);

// The host address that stands for a kernel, or the handle itself where there is none.
void* host_of(CUkernel kernel);

// The same for a function of some context, which a driver may give in place of the kernel it came
// from.
void* host_of(CUfunction function);

// Handles that the program got from a library may be given to cudaLaunchKernel as well.
void remember_kernel(CUkernel kernel);

cudaError_t find_variable(const void* host, void** address, size_t* size);

}  // namespace simgpu
