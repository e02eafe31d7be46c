// CUPTI for the simulated GPU: the Activity and Callback API as far as a memory witness and
// torch.profiler's kineto use them. Records come from the simulated driver; nothing was measured on
// a card. The real library must not be reached here: it wants private tables of the driver.
#include <cstring>

#include "cupti/state.h"

using namespace simgpu;

namespace {

struct ResultName {
  CUptiResult result;
  const char* name;
};

// What was set can be read back; there are no buffers on the device that it would concern.
constexpr unsigned kAttributes = 32;
constexpr std::size_t kAttributeBytes = 8;
std::uint8_t attributes[kAttributes][kAttributeBytes];

constexpr ResultName kResultNames[] = {
    {CUPTI_SUCCESS, "CUPTI_SUCCESS"},
    {CUPTI_ERROR_INVALID_PARAMETER, "CUPTI_ERROR_INVALID_PARAMETER"},
    {CUPTI_ERROR_INVALID_KIND, "CUPTI_ERROR_INVALID_KIND"},
    {CUPTI_ERROR_INVALID_OPERATION, "CUPTI_ERROR_INVALID_OPERATION"},
    {CUPTI_ERROR_MAX_LIMIT_REACHED, "CUPTI_ERROR_MAX_LIMIT_REACHED"},
    {CUPTI_ERROR_NOT_COMPATIBLE, "CUPTI_ERROR_NOT_COMPATIBLE"},
    {CUPTI_ERROR_NOT_INITIALIZED, "CUPTI_ERROR_NOT_INITIALIZED"},
    {CUPTI_ERROR_NOT_SUPPORTED, "not simulated"},
    {CUPTI_ERROR_QUEUE_EMPTY, "CUPTI_ERROR_QUEUE_EMPTY"},
    {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
     "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"},
};

}  // namespace

// Says that this library is a stand-in: a tracer looks for the name before it trusts a library
// beside the simulated driver.
extern "C" __attribute__((visibility("default"))) int simgpu_cupti() {
  return 1;
}

ENTRY(cuptiGetVersion)(std::uint32_t* version) {
  if (version == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *version = CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}

ENTRY(cuptiGetResultString)(CUptiResult result, const char** text) {
  if (text == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *text = "CUPTI_ERROR_UNKNOWN";
  for (const ResultName& known : kResultNames)
    if (known.result == result) *text = known.name;
  return CUPTI_SUCCESS;
}

ENTRY(cuptiGetLastError)() {
  return CUPTI_SUCCESS;
}

ENTRY(cuptiActivitySetAttribute)
(CUpti_ActivityAttribute attribute, std::size_t* size, void* value) {
  if (size == nullptr || value == nullptr || attribute >= kAttributes || *size > kAttributeBytes)
    return CUPTI_ERROR_INVALID_PARAMETER;
  std::memcpy(attributes[attribute], value, *size);
  return CUPTI_SUCCESS;
}

ENTRY(cuptiActivityGetAttribute)
(CUpti_ActivityAttribute attribute, std::size_t* size, void* value) {
  if (size == nullptr || value == nullptr || attribute >= kAttributes || *size > kAttributeBytes)
    return CUPTI_ERROR_INVALID_PARAMETER;
  std::memcpy(value, attributes[attribute], *size);
  return CUPTI_SUCCESS;
}

// Taken, and without effect: memory records name no library.
ENTRY(cuptiActivityEnableAllocationSource)(std::uint8_t) {
  return CUPTI_SUCCESS;
}

ENTRY(cuptiActivityEnableRuntimeApi)(CUpti_CallbackId, std::uint8_t) {
  return CUPTI_SUCCESS;
}

ENTRY(cuptiActivityFlushPeriod)(std::uint32_t) {
  return CUPTI_SUCCESS;
}

ENTRY(cuptiActivityEnableLatencyTimestamps)(std::uint8_t) {
  return CUPTI_SUCCESS;
}

ENTRY(cuptiFinalize)() {
  return CUPTI_SUCCESS;
}
