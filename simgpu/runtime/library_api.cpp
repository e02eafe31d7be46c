// Libraries that a program loads itself, and symbols of registered ones.
#include "runtime/call.h"
#include "runtime/registry.h"

using namespace simgpu;

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* jitOptions,
                                void** jitOptionsValues, unsigned int numJitOptions,
                                cudaLibraryOption* libraryOptions, void** libraryOptionValues,
                                unsigned int numLibraryOptions) {
  return in_driver(&DriverTable::LibraryLoadData, library, code, jitOptions, jitOptionsValues,
                   numJitOptions, libraryOptions, libraryOptionValues, numLibraryOptions);
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* fileName,
                                    cudaJitOption* jitOptions, void** jitOptionsValues,
                                    unsigned int numJitOptions, cudaLibraryOption* libraryOptions,
                                    void** libraryOptionValues, unsigned int numLibraryOptions) {
  return in_driver(&DriverTable::LibraryLoadFromFile, library, fileName, jitOptions,
                   jitOptionsValues, numJitOptions, libraryOptions, libraryOptionValues,
                   numLibraryOptions);
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return in_driver(&DriverTable::LibraryUnload, library);
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* pKernel, cudaLibrary_t library, const char* name) {
  const cudaError_t error = in_driver(&DriverTable::LibraryGetKernel, pKernel, library, name);
  if (error == cudaSuccess) remember_kernel(*pKernel);
  return error;
}

cudaError_t cudaLibraryGetGlobal(void** dptr, size_t* bytes, cudaLibrary_t library,
                                 const char* name) {
  return in_context(&DriverTable::LibraryGetGlobal, dptr, bytes, library, name);
}

cudaError_t cudaLibraryGetManaged(void** dptr, size_t* bytes, cudaLibrary_t library,
                                  const char* name) {
  return in_context(&DriverTable::LibraryGetManaged, dptr, bytes, library, name);
}

cudaError_t cudaLibraryGetUnifiedFunction(void** fptr, cudaLibrary_t library, const char* symbol) {
  return in_context(&DriverTable::LibraryGetUnifiedFunction, fptr, library, symbol);
}

cudaError_t cudaLibraryGetKernelCount(unsigned int* count, cudaLibrary_t lib) {
  return in_driver(&DriverTable::LibraryGetKernelCount, count, lib);
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned int numKernels,
                                        cudaLibrary_t lib) {
  const cudaError_t error =
      in_driver(&DriverTable::LibraryEnumerateKernels, kernels, numKernels, lib);
  for (unsigned int i = 0; error == cudaSuccess && i < numKernels; ++i) remember_kernel(kernels[i]);
  return error;
}

namespace {

cudaError_t symbol_in_context(const void* symbol, void** address, size_t* size) {
  const cudaError_t error = enter_context();
  return error != cudaSuccess ? error : find_variable(symbol, address, size);
}

}  // namespace

cudaError_t cudaGetSymbolAddress(void** devPtr, const void* symbol) {
  size_t size = 0;
  if (devPtr == nullptr) return record(cudaErrorInvalidValue);
  return record(symbol_in_context(symbol, devPtr, &size));
}

cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  void* address = nullptr;
  if (size == nullptr) return record(cudaErrorInvalidValue);
  return record(symbol_in_context(symbol, &address, size));
}
