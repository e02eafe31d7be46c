// Kernels. With `names`, of each thread the launch that follows an allocation is recorded, with the
// kernel's name: it is what the memory was most likely made for. With `on`, every launch that is
// given device memory is, with the addresses. Else launches only forward.
#include "hooks/capture.h"
#include "hooks/devices.h"
#include "hooks/handlers.h"
#include "hooks/kernel_accesses.h"
#include "hooks/kernel_functions.h"
#include "hooks/pending_frees.h"
#include "record/config.h"
#include "record/recorder.h"

namespace vramtrack {
namespace {

void follows_allocation(const Call& call, CUfunction function, CUstream stream, uint32_t flags) {
  t_allocated = false;
  Event event{.kind = EventKind::kernel,
              .device = current_device(),
              .stream = reinterpret_cast<uint64_t>(stream),
              .object = reinterpret_cast<uint64_t>(function),
              .text = kernel_name(function),
              .flags = flags};
  emit_without_stack(call, event);
}

// True where the launch was recorded with what it was given; then it also says what ran next.
bool record_launch(CUfunction function, CUstream stream, void** parameters, void** extra,
                   uint32_t& flags) {
  const ParameterLayout layout = parameter_layout(function);
  if (!layout.known) {
    flags |= kEventNoLayout;
    return false;
  }
  AddressList addresses;
  collect_addresses(layout, parameters, extra, addresses);
  if (addresses.count() == 0) return false;
  record_access(kernel_name(function), addresses, reinterpret_cast<uint64_t>(stream), 0);
  return true;
}

void launched(const Call& call, CUfunction function, CUstream stream, void** parameters,
              void** extra) {
  forget_event_records();  // none of them belongs to a free
  uint32_t flags = 0;
  if (config().accesses) {
    if (is_captured(stream)) {
      flags = kEventCaptured;  // it runs with its graph
    } else if (record_launch(function, stream, parameters, extra, flags)) {
      t_allocated = false;
      return;
    }
  }
  if (t_allocated && config().kernels) follows_allocation(call, function, stream, flags);
}

}  // namespace

CUresult module_get_function(const Call& /*call*/,
                             CUresult (*real)(CUfunction*, CUmodule, const char*),
                             CUfunction* function, CUmodule module, const char* name) {
  const CUresult result = real(function, module, name);
  if (result == CUDA_SUCCESS && function != nullptr) remember_function(*function, name);
  return result;
}

CUresult library_get_kernel(const Call& /*call*/,
                            CUresult (*real)(CUkernel*, CUlibrary, const char*), CUkernel* kernel,
                            CUlibrary library, const char* name) {
  const CUresult result = real(kernel, library, name);
  if (result == CUDA_SUCCESS && kernel != nullptr) remember_kernel(*kernel, name);
  return result;
}

CUresult kernel_get_function(const Call& /*call*/, CUresult (*real)(CUfunction*, CUkernel),
                             CUfunction* function, CUkernel kernel) {
  const CUresult result = real(function, kernel);
  if (result == CUDA_SUCCESS && function != nullptr) remember_function_of(kernel, *function);
  return result;
}

CUresult launch_kernel(const Call& call,
                       CUresult (*real)(CUfunction, unsigned, unsigned, unsigned, unsigned,
                                        unsigned, unsigned, unsigned, CUstream, void**, void**),
                       CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                       unsigned by, unsigned bz, unsigned shared, CUstream stream,
                       void** parameters, void** extra) {
  const CUresult result = real(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
  if (result == CUDA_SUCCESS) launched(call, function, stream, parameters, extra);
  return result;
}

CUresult launch_kernel_ex(const Call& call,
                          CUresult (*real)(const CUlaunchConfig*, CUfunction, void**, void**),
                          const CUlaunchConfig* launch, CUfunction function, void** parameters,
                          void** extra) {
  const CUresult result = real(launch, function, parameters, extra);
  if (result == CUDA_SUCCESS && launch != nullptr)
    launched(call, function, launch->hStream, parameters, extra);
  return result;
}

CUresult launch_cooperative_kernel(const Call& call,
                                   CUresult (*real)(CUfunction, unsigned, unsigned, unsigned,
                                                    unsigned, unsigned, unsigned, unsigned,
                                                    CUstream, void**),
                                   CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                   unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                   CUstream stream, void** parameters) {
  const CUresult result = real(function, gx, gy, gz, bx, by, bz, shared, stream, parameters);
  if (result == CUDA_SUCCESS) launched(call, function, stream, parameters, nullptr);
  return result;
}

}  // namespace vramtrack
