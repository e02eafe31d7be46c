// cublasLt for the simulated GPU: descriptors keep their attributes, the heuristic always knows one
// algorithm that needs no workspace, a multiplication computes nothing.
#include <cstdlib>
#include <new>

#include "common/attributes.h"
#include "common/data_type.h"
#include "common/driver.h"
#include "common/entry.h"
#include "cublas/handle.h"

namespace {

using simgpu::Attributes;

// The public layout of cublasLtMatmulHeuristicResult_t.
struct HeuristicResult {
  std::uint64_t algorithm[8];
  std::size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(HeuristicResult) == 96);

struct MatrixLayout {
  std::uint64_t rows, columns;
};

constexpr int kLayoutType = 0, kLayoutRows = 2, kLayoutColumns = 3, kLayoutLeadingDimension = 4;
constexpr int kMatmulComputeType = 0, kMatmulScaleType = 1;

Attributes* new_attributes() {
  void* memory = std::malloc(sizeof(Attributes));
  return memory ? new (memory) Attributes : nullptr;
}

int create(Attributes** out) {
  if (!out) return simgpu::kCublasInvalidValue;
  *out = new_attributes();
  return *out ? simgpu::kCublasSuccess : simgpu::kCublasAllocFailed;
}

int destroy(Attributes* attributes) {
  std::free(attributes);
  return simgpu::kCublasSuccess;
}

int set(Attributes* attributes, int attribute, const void* value, std::size_t size) {
  return attributes && attributes->set(attribute, value, size) ? simgpu::kCublasSuccess
                                                               : simgpu::kCublasInvalidValue;
}

int get(const Attributes* attributes, int attribute, void* value, std::size_t size,
        std::size_t* written) {
  return attributes && attributes->get(attribute, value, size, written)
             ? simgpu::kCublasSuccess
             : simgpu::kCublasInvalidValue;
}

// At most as many bytes as the matrix has: elements of the types up to 4 bits count as one byte.
std::size_t matrix_bytes(const Attributes& layout) {
  std::int32_t type = 0;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0;
  layout.get(kLayoutType, &type, sizeof type, nullptr);
  layout.get(kLayoutRows, &rows, sizeof rows, nullptr);
  layout.get(kLayoutColumns, &columns, sizeof columns, nullptr);
  layout.get(kLayoutLeadingDimension, &leading, sizeof leading, nullptr);
  if (rows == 0 || columns == 0 || leading < 1) return 0;
  const std::uint64_t elements = static_cast<std::uint64_t>(leading) * (columns - 1) + rows;
  return elements * simgpu::data_type_bytes(type);
}

}  // namespace

ENTRY(cublasLtCreate)(void** handle) {
  if (!handle) return simgpu::kCublasInvalidValue;
  *handle = std::calloc(1, sizeof(simgpu::CublasHandle));
  return *handle ? simgpu::kCublasSuccess : simgpu::kCublasAllocFailed;
}

ENTRY(cublasLtDestroy)(void* handle) {
  std::free(handle);
  return simgpu::kCublasSuccess;
}

extern "C" __attribute__((visibility("default"))) std::size_t cublasLtGetVersion() {
  return SIMGPU_CUBLAS_VERSION;
}
extern "C" __attribute__((visibility("default"))) std::size_t cublasLtGetCudartVersion() {
  return SIMGPU_CUBLAS_CUDART_VERSION;
}

TEXT_ENTRY(cublasLtGetStatusName)(int status) {
  return status == 0 ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_NOT_SUPPORTED";
}
TEXT_ENTRY(cublasLtGetStatusString)(int status) {
  return status == 0 ? "success" : "not simulated";
}

ENTRY(cublasLtMatrixLayoutCreate)
(Attributes** layout, std::int32_t type, std::uint64_t rows, std::uint64_t columns,
 std::int64_t leading) {
  if (const int status = create(layout)) return status;
  (*layout)->set(kLayoutType, &type, sizeof type);
  (*layout)->set(kLayoutRows, &rows, sizeof rows);
  (*layout)->set(kLayoutColumns, &columns, sizeof columns);
  (*layout)->set(kLayoutLeadingDimension, &leading, sizeof leading);
  return simgpu::kCublasSuccess;
}
ENTRY(cublasLtMatrixLayoutDestroy)(Attributes* layout) {
  return destroy(layout);
}
ENTRY(cublasLtMatrixLayoutSetAttribute)
(Attributes* a, int attribute, const void* value, std::size_t size) {
  return set(a, attribute, value, size);
}
ENTRY(cublasLtMatrixLayoutGetAttribute)
(Attributes* a, int attribute, void* v, std::size_t size, std::size_t* n) {
  return get(a, attribute, v, size, n);
}

ENTRY(cublasLtMatmulDescCreate)
(Attributes** descriptor, std::int32_t compute_type, std::int32_t scale_type) {
  if (const int status = create(descriptor)) return status;
  (*descriptor)->set(kMatmulComputeType, &compute_type, sizeof compute_type);
  (*descriptor)->set(kMatmulScaleType, &scale_type, sizeof scale_type);
  return simgpu::kCublasSuccess;
}
ENTRY(cublasLtMatmulDescDestroy)(Attributes* descriptor) {
  return destroy(descriptor);
}
ENTRY(cublasLtMatmulDescSetAttribute)
(Attributes* a, int attribute, const void* value, std::size_t size) {
  return set(a, attribute, value, size);
}
ENTRY(cublasLtMatmulDescGetAttribute)
(Attributes* a, int attribute, void* v, std::size_t size, std::size_t* n) {
  return get(a, attribute, v, size, n);
}

ENTRY(cublasLtMatmulPreferenceCreate)(Attributes** preference) {
  return create(preference);
}
ENTRY(cublasLtMatmulPreferenceDestroy)(Attributes* preference) {
  return destroy(preference);
}
ENTRY(cublasLtMatmulPreferenceSetAttribute)
(Attributes* a, int attribute, const void* value, std::size_t size) {
  return set(a, attribute, value, size);
}
ENTRY(cublasLtMatmulPreferenceGetAttribute)
(Attributes* a, int attribute, void* v, std::size_t size, std::size_t* n) {
  return get(a, attribute, v, size, n);
}

ENTRY(cublasLtMatrixTransformDescCreate)(Attributes** descriptor, std::int32_t) {
  return create(descriptor);
}
ENTRY(cublasLtMatrixTransformDescDestroy)(Attributes* descriptor) {
  return destroy(descriptor);
}
ENTRY(cublasLtMatrixTransformDescSetAttribute)
(Attributes* a, int attribute, const void* value, std::size_t size) {
  return set(a, attribute, value, size);
}
ENTRY(cublasLtMatrixTransform)() {
  return simgpu::kCublasSuccess;
}

ENTRY(cublasLtMatmulAlgoGetHeuristic)
(void*, Attributes*, Attributes*, Attributes*, Attributes*, Attributes*, Attributes*, int requested,
 HeuristicResult* results, int* returned) {
  if (!results || !returned || requested < 1) return simgpu::kCublasInvalidValue;
  results[0] = HeuristicResult{.waves = 1.0F};
  *returned = 1;
  return simgpu::kCublasSuccess;
}

ENTRY(cublasLtMatmulAlgoCheck)
(void*, Attributes*, Attributes*, Attributes*, Attributes*, Attributes*, const void*,
 HeuristicResult* result) {
  if (!result) return simgpu::kCublasInvalidValue;
  *result = HeuristicResult{.waves = 1.0F};
  return simgpu::kCublasSuccess;
}

ENTRY(cublasLtMatmul)
(void*, Attributes*, const void*, const void* a, Attributes*, const void* b, Attributes*,
 const void*, const void* c, Attributes*, void* result, Attributes* layout, const void*,
 void* workspace, std::size_t, void* stream) {
  static simgpu::LibraryKernel kernel("cublasLtMatmul", 5);
  kernel.launch(stream, {a, b, c, result, workspace});
  if (result && layout) simgpu::forget(result, matrix_bytes(*layout));
  return simgpu::kCublasSuccess;
}
