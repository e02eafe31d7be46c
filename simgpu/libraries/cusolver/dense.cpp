// Dense linear algebra of cuSOLVER: what PyTorch's torch.linalg calls. Nothing is computed, and
// every factorisation succeeds. How much workspace the real library wants is not documented; one
// copy of the matrix (for batches, of all of them) is assumed.
#include <cstdlib>

#include "common/data_type.h"
#include "common/driver.h"
#include "common/entry.h"

namespace {

enum Status : int { kSuccess = 0, kNotInitialized = 1, kAllocationFailed = 2, kInvalidValue = 3 };

struct Handle {
  void* stream;
};

// Parameters of an algorithm that change none of what is simulated.
struct Settings {
  int unused;
};

template <class T>
int create(T** object) {
  if (!object) return kInvalidValue;
  *object = static_cast<T*>(std::calloc(1, sizeof(T)));
  return *object ? kSuccess : kAllocationFailed;
}

int destroy(void* object) {
  std::free(object);
  return kSuccess;
}

// `size` in elements for the interfaces that count so, in bytes for the others.
template <class Size>
int workspace(Size* size, std::int64_t rows, std::int64_t columns, std::size_t unit,
              std::int64_t batch = 1) {
  if (!size || rows < 0 || columns < 0 || batch < 0) return kInvalidValue;
  const std::size_t bytes = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) *
                            static_cast<std::size_t>(batch) * unit;
  *size = static_cast<Size>(bytes != 0 ? bytes : 1);
  if (simgpu_assume) simgpu_assume("workspace of cuSOLVER", 1);
  return kSuccess;
}

int workspace(std::size_t* device, std::size_t* host, std::int64_t rows, std::int64_t columns,
              int type, std::int64_t batch = 1) {
  if (!host) return kInvalidValue;
  *host = 0;
  return workspace(device, rows, columns, simgpu::data_type_bytes(type), batch);
}

// `info` becomes unknown, which reads as zero: no error.
int run(const Handle* handle, simgpu::LibraryKernel& kernel,
        std::initializer_list<const void*> operands, int* info, std::int64_t batch = 1) {
  if (!handle) return kNotInitialized;
  kernel.launch(handle->stream, operands);
  if (info && batch > 0) simgpu::forget(info, sizeof(int) * static_cast<std::size_t>(batch));
  return kSuccess;
}

}  // namespace

ENTRY(cusolverDnCreate)(Handle** handle) {
  return create(handle);
}
ENTRY(cusolverDnDestroy)(Handle* handle) {
  return destroy(handle);
}
ENTRY(cusolverDnSetStream)(Handle* handle, void* stream) {
  if (!handle) return kNotInitialized;
  handle->stream = stream;
  return kSuccess;
}
ENTRY(cusolverDnCreateParams)(Settings** settings) {
  return create(settings);
}
ENTRY(cusolverDnDestroyParams)(Settings* settings) {
  return destroy(settings);
}
ENTRY(cusolverDnCreateGesvdjInfo)(Settings** settings) {
  return create(settings);
}
ENTRY(cusolverDnDestroyGesvdjInfo)(Settings* settings) {
  return destroy(settings);
}
ENTRY(cusolverDnXgesvdjSetMaxSweeps)(Settings*, int) {
  return kSuccess;
}
ENTRY(cusolverDnXgesvdjSetSortEig)(Settings*, int) {
  return kSuccess;
}
ENTRY(cusolverDnXgesvdjSetTolerance)(Settings*, double) {
  return kSuccess;
}
ENTRY(cusolverDnCreateSyevjInfo)(Settings** settings) {
  return create(settings);
}
ENTRY(cusolverDnDestroySyevjInfo)(Settings* settings) {
  return destroy(settings);
}

// ---- any element type, by its number; sizes in bytes

ENTRY(cusolverDnXgeqrf_bufferSize)
(Handle*, Settings*, std::int64_t m, std::int64_t n, int type, const void*, std::int64_t, int,
 const void*, int, std::size_t* device, std::size_t* host) {
  return workspace(device, host, m, n, type);
}
ENTRY(cusolverDnXgeqrf)
(Handle* handle, Settings*, std::int64_t, std::int64_t, int, void* a, std::int64_t, int, void* tau,
 int, void* work, std::size_t, void*, std::size_t, int* info) {
  static simgpu::LibraryKernel kernel("cusolverDnXgeqrf", 4);
  return run(handle, kernel, {a, tau, work, info}, info);
}

ENTRY(cusolverDnXpotrf_bufferSize)
(Handle*, Settings*, int, std::int64_t n, int type, const void*, std::int64_t, int,
 std::size_t* device, std::size_t* host) {
  return workspace(device, host, n, n, type);
}
ENTRY(cusolverDnXpotrf)
(Handle* handle, Settings*, int, std::int64_t, int, void* a, std::int64_t, int, void* work,
 std::size_t, void*, std::size_t, int* info) {
  static simgpu::LibraryKernel kernel("cusolverDnXpotrf", 3);
  return run(handle, kernel, {a, work, info}, info);
}
ENTRY(cusolverDnXpotrs)
(Handle* handle, Settings*, int, std::int64_t, std::int64_t, int, const void* a, std::int64_t, int,
 void* b, std::int64_t, int* info) {
  static simgpu::LibraryKernel kernel("cusolverDnXpotrs", 3);
  return run(handle, kernel, {a, b, info}, info);
}

ENTRY(cusolverDnXsyevd_bufferSize)
(Handle*, Settings*, int, int, std::int64_t n, int type, const void*, std::int64_t, int,
 const void*, int, std::size_t* device, std::size_t* host) {
  return workspace(device, host, n, n, type);
}
ENTRY(cusolverDnXsyevd)
(Handle* handle, Settings*, int, int, std::int64_t, int, void* a, std::int64_t, int, void* w, int,
 void* work, std::size_t, void*, std::size_t, int* info) {
  static simgpu::LibraryKernel kernel("cusolverDnXsyevd", 4);
  return run(handle, kernel, {a, w, work, info}, info);
}
ENTRY(cusolverDnXsyevBatched_bufferSize)
(Handle*, Settings*, int, int, std::int64_t n, int type, const void*, std::int64_t, int,
 const void*, int, std::size_t* device, std::size_t* host, std::int64_t batch) {
  return workspace(device, host, n, n, type, batch);
}
ENTRY(cusolverDnXsyevBatched)
(Handle* handle, Settings*, int, int, std::int64_t, int, void* a, std::int64_t, int, void* w, int,
 void* work, std::size_t, void*, std::size_t, int* info, std::int64_t batch) {
  static simgpu::LibraryKernel kernel("cusolverDnXsyevBatched", 4);
  return run(handle, kernel, {a, w, work, info}, info, batch);
}

ENTRY(cusolverDnXgeev_bufferSize)
(Handle*, Settings*, int, int, std::int64_t n, int type, const void*, std::int64_t, int,
 const void*, int, const void*, std::int64_t, int, const void*, std::int64_t, int,
 std::size_t* device, std::size_t* host) {
  return workspace(device, host, n, n, type);
}
ENTRY(cusolverDnXgeev)
(Handle* handle, Settings*, int, int, std::int64_t, int, void* a, std::int64_t, int, void* w, int,
 void* vl, std::int64_t, int, void* vr, std::int64_t, int, void* work, std::size_t, void*,
 std::size_t, int* info) {
  static simgpu::LibraryKernel kernel("cusolverDnXgeev", 6);
  return run(handle, kernel, {a, w, vl, vr, work, info}, info);
}

ENTRY(cusolverDnXsytrs_bufferSize)
(Handle*, int, std::int64_t n, std::int64_t right, int type, const void*, std::int64_t,
 const std::int64_t*, int, void*, std::int64_t, std::size_t* device, std::size_t* host) {
  return workspace(device, host, n, right, type);
}
ENTRY(cusolverDnXsytrs)
(Handle* handle, int, std::int64_t, std::int64_t, int, const void* a, std::int64_t,
 const std::int64_t* pivots, int, void* b, std::int64_t, void* work, std::size_t, void*,
 std::size_t, int* info) {
  static simgpu::LibraryKernel kernel("cusolverDnXsytrs", 5);
  return run(handle, kernel, {a, pivots, b, work, info}, info);
}

// ---- one function for each element type; sizes in elements

#define FAMILY(name)                                                                              \
  ENTRY(name##geqrf_bufferSize)(Handle*, int m, int n, void*, int, int* size) {                   \
    return workspace(size, m, n, 1);                                                              \
  }                                                                                               \
  ENTRY(name##geqrf)                                                                              \
  (Handle * handle, int, int, void* a, int, void* tau, void* work, int, int* info) {              \
    static simgpu::LibraryKernel kernel(#name "geqrf", 4);                                        \
    return run(handle, kernel, {a, tau, work, info}, info);                                       \
  }                                                                                               \
  ENTRY(name##getrf_bufferSize)(Handle*, int m, int n, void*, int, int* size) {                   \
    return workspace(size, m, n, 1);                                                              \
  }                                                                                               \
  ENTRY(name##getrf)                                                                              \
  (Handle * handle, int, int, void* a, int, void* work, int* pivots, int* info) {                 \
    static simgpu::LibraryKernel kernel(#name "getrf", 4);                                        \
    return run(handle, kernel, {a, work, pivots, info}, info);                                    \
  }                                                                                               \
  ENTRY(name##getrs)                                                                              \
  (Handle * handle, int, int, int, const void* a, int, const int* pivots, void* b, int,           \
   int* info) {                                                                                   \
    static simgpu::LibraryKernel kernel(#name "getrs", 4);                                        \
    return run(handle, kernel, {a, pivots, b, info}, info);                                       \
  }                                                                                               \
  ENTRY(name##potrf_bufferSize)(Handle*, int, int n, void*, int, int* size) {                     \
    return workspace(size, n, n, 1);                                                              \
  }                                                                                               \
  ENTRY(name##potrf)(Handle * handle, int, int, void* a, int, void* work, int, int* info) {       \
    static simgpu::LibraryKernel kernel(#name "potrf", 3);                                        \
    return run(handle, kernel, {a, work, info}, info);                                            \
  }                                                                                               \
  ENTRY(name##potrfBatched)(Handle * handle, int, int, void* a, int, int* info, int batch) {      \
    static simgpu::LibraryKernel kernel(#name "potrfBatched", 2);                                 \
    return run(handle, kernel, {a, info}, info, batch);                                           \
  }                                                                                               \
  ENTRY(name##potrs)                                                                              \
  (Handle * handle, int, int, int, const void* a, int, void* b, int, int* info) {                 \
    static simgpu::LibraryKernel kernel(#name "potrs", 3);                                        \
    return run(handle, kernel, {a, b, info}, info);                                               \
  }                                                                                               \
  ENTRY(name##potrsBatched)                                                                       \
  (Handle * handle, int, int, int, const void* a, int, void* b, int, int* info, int) {            \
    static simgpu::LibraryKernel kernel(#name "potrsBatched", 3);                                 \
    return run(handle, kernel, {a, b, info}, info);                                               \
  }                                                                                               \
  ENTRY(name##gesvd_bufferSize)(Handle*, int m, int n, int* size) {                               \
    return workspace(size, m, n, 1);                                                              \
  }                                                                                               \
  ENTRY(name##gesvd)                                                                              \
  (Handle * handle, signed char, signed char, int, int, void* a, int, void* s, void* u, int,      \
   void* v, int, void* work, int, void*, int* info) {                                             \
    static simgpu::LibraryKernel kernel(#name "gesvd", 6);                                        \
    return run(handle, kernel, {a, s, u, v, work, info}, info);                                   \
  }                                                                                               \
  ENTRY(name##gesvdj_bufferSize)                                                                  \
  (Handle*, int, int, int m, int n, const void*, int, const void*, const void*, int, const void*, \
   int, int* size, Settings*) {                                                                   \
    return workspace(size, m, n, 1);                                                              \
  }                                                                                               \
  ENTRY(name##gesvdj)                                                                             \
  (Handle * handle, int, int, int, int, void* a, int, void* s, void* u, int, void* v, int,        \
   void* work, int, int* info, Settings*) {                                                       \
    static simgpu::LibraryKernel kernel(#name "gesvdj", 6);                                       \
    return run(handle, kernel, {a, s, u, v, work, info}, info);                                   \
  }                                                                                               \
  ENTRY(name##gesvdjBatched_bufferSize)                                                           \
  (Handle*, int, int m, int n, const void*, int, const void*, const void*, int, const void*, int, \
   int* size, Settings*, int batch) {                                                             \
    return workspace(size, m, n, 1, batch);                                                       \
  }                                                                                               \
  ENTRY(name##gesvdjBatched)                                                                      \
  (Handle * handle, int, int, int, void* a, int, void* s, void* u, int, void* v, int, void* work, \
   int, int* info, Settings*, int batch) {                                                        \
    static simgpu::LibraryKernel kernel(#name "gesvdjBatched", 6);                                \
    return run(handle, kernel, {a, s, u, v, work, info}, info, batch);                            \
  }                                                                                               \
  ENTRY(name##gesvdaStridedBatched_bufferSize)                                                    \
  (Handle*, int, int, int m, int n, const void*, int, long long, const void*, long long,          \
   const void*, int, long long, const void*, int, long long, int* size, int batch) {              \
    return workspace(size, m, n, 1, batch);                                                       \
  }                                                                                               \
  ENTRY(name##gesvdaStridedBatched)                                                               \
  (Handle * handle, int, int, int, int, const void* a, int, long long, void* s, long long,        \
   void* u, int, long long, void* v, int, long long, void* work, int, int* info, double* norms,   \
   int batch) {                                                                                   \
    static simgpu::LibraryKernel kernel(#name "gesvdaStridedBatched", 6);                         \
    for (int i = 0; norms && i < batch; ++i) norms[i] = 0;                                        \
    return run(handle, kernel, {a, s, u, v, work, info}, info, batch);                            \
  }                                                                                               \
  ENTRY(name##sytrf_bufferSize)(Handle*, int n, void*, int, int* size) {                          \
    return workspace(size, n, n, 1);                                                              \
  }                                                                                               \
  ENTRY(name##sytrf)                                                                              \
  (Handle * handle, int, int, void* a, int, int* pivots, void* work, int, int* info) {            \
    static simgpu::LibraryKernel kernel(#name "sytrf", 4);                                        \
    return run(handle, kernel, {a, pivots, work, info}, info);                                    \
  }

// Their names differ between real and complex types.
#define ORTHOGONAL(generate, multiply)                                                          \
  ENTRY(generate##_bufferSize)                                                                  \
  (Handle*, int m, int n, int, const void*, int, const void*, int* size) {                      \
    return workspace(size, m, n, 1);                                                            \
  }                                                                                             \
  ENTRY(generate)                                                                               \
  (Handle * handle, int, int, int, void* a, int, const void* tau, void* work, int, int* info) { \
    static simgpu::LibraryKernel kernel(#generate, 4);                                          \
    return run(handle, kernel, {a, tau, work, info}, info);                                     \
  }                                                                                             \
  ENTRY(multiply##_bufferSize)                                                                  \
  (Handle*, int, int, int m, int n, int, const void*, int, const void*, const void*, int,       \
   int* size) {                                                                                 \
    return workspace(size, m, n, 1);                                                            \
  }                                                                                             \
  ENTRY(multiply)                                                                               \
  (Handle * handle, int, int, int, int, int, const void* a, int, const void* tau, void* c, int, \
   void* work, int, int* info) {                                                                \
    static simgpu::LibraryKernel kernel(#multiply, 5);                                          \
    return run(handle, kernel, {a, tau, c, work, info}, info);                                  \
  }

#define EIGENVALUES(single, jacobi, batched)                                                       \
  ENTRY(single##_bufferSize)                                                                       \
  (Handle*, int, int, int n, const void*, int, const void*, int* size) {                           \
    return workspace(size, n, n, 1);                                                               \
  }                                                                                                \
  ENTRY(single)                                                                                    \
  (Handle * handle, int, int, int, void* a, int, void* w, void* work, int, int* info) {            \
    static simgpu::LibraryKernel kernel(#single, 4);                                               \
    return run(handle, kernel, {a, w, work, info}, info);                                          \
  }                                                                                                \
  ENTRY(jacobi##_bufferSize)                                                                       \
  (Handle*, int, int, int n, const void*, int, const void*, int* size, Settings*) {                \
    return workspace(size, n, n, 1);                                                               \
  }                                                                                                \
  ENTRY(jacobi)                                                                                    \
  (Handle * handle, int, int, int, void* a, int, void* w, void* work, int, int* info, Settings*) { \
    static simgpu::LibraryKernel kernel(#jacobi, 4);                                               \
    return run(handle, kernel, {a, w, work, info}, info);                                          \
  }                                                                                                \
  ENTRY(batched##_bufferSize)                                                                      \
  (Handle*, int, int, int n, const void*, int, const void*, int* size, Settings*, int batch) {     \
    return workspace(size, n, n, 1, batch);                                                        \
  }                                                                                                \
  ENTRY(batched)                                                                                   \
  (Handle * handle, int, int, int, void* a, int, void* w, void* work, int, int* info, Settings*,   \
   int batch) {                                                                                    \
    static simgpu::LibraryKernel kernel(#batched, 4);                                              \
    return run(handle, kernel, {a, w, work, info}, info, batch);                                   \
  }

FAMILY(cusolverDnS)
FAMILY(cusolverDnD)
FAMILY(cusolverDnC)
FAMILY(cusolverDnZ)
ORTHOGONAL(cusolverDnSorgqr, cusolverDnSormqr)
ORTHOGONAL(cusolverDnDorgqr, cusolverDnDormqr)
ORTHOGONAL(cusolverDnCungqr, cusolverDnCunmqr)
ORTHOGONAL(cusolverDnZungqr, cusolverDnZunmqr)
EIGENVALUES(cusolverDnSsyevd, cusolverDnSsyevj, cusolverDnSsyevjBatched)
EIGENVALUES(cusolverDnDsyevd, cusolverDnDsyevj, cusolverDnDsyevjBatched)
EIGENVALUES(cusolverDnCheevd, cusolverDnCheevj, cusolverDnCheevjBatched)
EIGENVALUES(cusolverDnZheevd, cusolverDnZheevj, cusolverDnZheevjBatched)
