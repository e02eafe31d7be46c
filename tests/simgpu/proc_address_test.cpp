// cuGetProcAddress against dlsym and the versions of cudaTypedefs.h.
#include <cudaTypedefs.h>
#include <dlfcn.h>

#include <string>

#include "context.h"

using namespace vramtrack::test;

namespace {

void* look_up(const char* name, int version, cuuint64_t flags = CU_GET_PROC_ADDRESS_DEFAULT,
              CUdriverProcAddressQueryResult* status = nullptr) {
  void* address = nullptr;
  OK(cuGetProcAddress(name, &address, version, flags, status));
  return address;
}

void* exported(const char* name) {
  void* address = dlsym(RTLD_DEFAULT, name);
  REQUIRE(address != nullptr);
  return address;
}

}  // namespace

TEST_CASE("a name and a version give the variant of that version") {
  SimulatedContext gpu;
  CHECK(look_up("cuMemAlloc", 3020) == exported("cuMemAlloc_v2"));
  CHECK(look_up("cuMemAlloc", 13000) == exported("cuMemAlloc_v2"));
  CHECK(look_up("cuMemAlloc", 3010) == exported("cuMemAlloc"));
  CHECK(look_up("cuCtxCreate", 3020) == exported("cuCtxCreate_v2"));
  CHECK(look_up("cuCtxCreate", 11040) == exported("cuCtxCreate_v3"));
  CHECK(look_up("cuCtxCreate", 12050) == exported("cuCtxCreate_v4"));
  CHECK(look_up("cuStreamGetCaptureInfo", 10010) == exported("cuStreamGetCaptureInfo"));
  CHECK(look_up("cuStreamGetCaptureInfo", 11030) == exported("cuStreamGetCaptureInfo_v2"));
  CHECK(look_up("cuStreamGetCaptureInfo", 12030) == exported("cuStreamGetCaptureInfo_v3"));
  CHECK(look_up("cuGetProcAddress", 11030) == exported("cuGetProcAddress"));
  CHECK(look_up("cuGetProcAddress", 12000) == exported("cuGetProcAddress_v2"));
  CHECK(look_up("cuIpcOpenMemHandle", 4010) == exported("cuIpcOpenMemHandle"));
  CHECK(look_up("cuIpcOpenMemHandle", 11000) == exported("cuIpcOpenMemHandle_v2"));
}

TEST_CASE("flags choose the kind of default stream") {
  SimulatedContext gpu;
  const cuuint64_t per_thread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  CHECK(look_up("cuMemcpyHtoD", 13000) == exported("cuMemcpyHtoD_v2"));
  CHECK(look_up("cuMemcpyHtoD", 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM) ==
        exported("cuMemcpyHtoD_v2"));
  CHECK(look_up("cuMemcpyHtoD", 13000, per_thread) == exported("cuMemcpyHtoD_v2_ptds"));
  CHECK(look_up("cuLaunchKernel", 7000, per_thread) == exported("cuLaunchKernel_ptsz"));
  // Older than the per-thread variant, or without one: the plain function.
  CHECK(look_up("cuLaunchKernel", 6000, per_thread) == exported("cuLaunchKernel"));
  CHECK(look_up("cuMemAlloc", 13000, per_thread) == exported("cuMemAlloc_v2"));
}

TEST_CASE("what is not found, and why") {
  SimulatedContext gpu;
  CUdriverProcAddressQueryResult status{};
  CHECK(look_up("cuNoSuchFunction", 13000, 0, &status) == nullptr);
  CHECK(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  CHECK(look_up("cuMemAlloc_v2", 13000, 0, &status) == nullptr);  // asked by base name only
  CHECK(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  CHECK(look_up("cuLibraryLoadData", 11000, 0, &status) == nullptr);
  CHECK(status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  CHECK(look_up("cuLibraryLoadData", 12000, 0, &status) != nullptr);
  CHECK(status == CU_GET_PROC_ADDRESS_SUCCESS);
  CHECK(look_up("", 0) == nullptr);  // the runtime's first question
  void* address = nullptr;
  CHECK(cuGetProcAddress("cuInit", &address, 99000, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGetProcAddress(nullptr, &address, 12000, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGetProcAddress("cuInit", &address, 12000, 8, nullptr) == CUDA_ERROR_INVALID_VALUE);
  // Four arguments: a fifth would be garbage, and must not be written through.
  auto four = reinterpret_cast<PFN_cuGetProcAddress_v11030>(exported("cuGetProcAddress"));
  CHECK(four("cuInit", &address, 11030, 0) == CUDA_SUCCESS);
  CHECK(address == exported("cuInit"));
  CHECK(four("cuNoSuchFunction", &address, 11030, 0) == CUDA_ERROR_NOT_FOUND);
}

TEST_CASE("what is not simulated fails with its own name, and private tables are not imitated") {
  SimulatedContext gpu;
  CUexternalMemory memory = nullptr;
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC description{};
  CHECK(cuImportExternalMemory(&memory, &description) == CUDA_ERROR_NOT_SUPPORTED);
  const void* table = &gpu;
  CUuuid id{};
  CHECK(cuGetExportTable(&table, &id) == CUDA_ERROR_NOT_FOUND);
  CHECK(table == nullptr);
}

TEST_CASE("errors have names") {
  const char* text = nullptr;
  OK(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
  CHECK(std::string(text) == "CUDA_ERROR_OUT_OF_MEMORY");
  OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
  CHECK(std::string(text) == "out of memory");
  CHECK(cuGetErrorName(static_cast<CUresult>(12345), &text) == CUDA_ERROR_INVALID_VALUE);
  CHECK(text == nullptr);
}
