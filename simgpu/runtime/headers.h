// NVIDIA's public headers, with the runtime's own declarations made visible: the library is
// compiled with hidden visibility, and what the header declares is what it exports. Included before
// anything else.
//
// A file that is compiled a second time with CUDA_API_PER_THREAD_DEFAULT_STREAM gets its functions
// renamed to _ptsz and _ptds by these headers themselves.
#pragma once

#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

#include <cuda.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>

#include <cstddef>
#include <cstdint>

// For functions that the public headers of this version do not declare but programs import.
#define SIMGPU_EXPORT extern "C" __attribute__((visibility("default")))
