// The one subscriber, and what it is called for: entries and exits of driver functions. The runtime
// and resource domains can be enabled and stay silent.
#include <cstring>

#include "cupti/state.h"

// An incomplete type in the header.
struct CUpti_Subscriber_st {};

namespace simgpu {
namespace {

struct DriverFunction {
  const char* name;
  CUpti_CallbackId id;
};

#define DRIVER_FUNCTION(name) {#name, CUPTI_DRIVER_TRACE_CBID_##name},
constexpr DriverFunction kDriverFunctions[] = {
#include "cupti/driver_functions.def"
};
#undef DRIVER_FUNCTION

constexpr std::size_t kFunctions = sizeof kDriverFunctions / sizeof kDriverFunctions[0];

CUpti_Subscriber_st g_subscriber;
std::atomic<CUpti_CallbackFunc> g_callback{nullptr};
std::atomic<void*> g_user{nullptr};
std::atomic<bool> g_enabled[CUPTI_DRIVER_TRACE_CBID_SIZE];  // of the driver's domain

bool is_subscriber(CUpti_SubscriberHandle subscriber) {
  return subscriber == &g_subscriber && g_callback.load() != nullptr;
}

bool is_domain(CUpti_CallbackDomain domain) {
  return domain > CUPTI_CB_DOMAIN_INVALID && domain < CUPTI_CB_DOMAIN_SIZE;
}

void enable_driver_domain(bool enable) {
  for (auto& function : g_enabled) function.store(enable, std::memory_order_relaxed);
}

CUptiResult subscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* user) {
  if (subscriber == nullptr || callback == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!connect()) return CUPTI_ERROR_NOT_INITIALIZED;
  CUpti_CallbackFunc nobody = nullptr;
  if (!g_callback.compare_exchange_strong(nobody, callback))
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  g_user.store(user);
  *subscriber = &g_subscriber;
  return CUPTI_SUCCESS;
}

thread_local std::uint64_t t_correlation_data;

}  // namespace

CUpti_CallbackId driver_callback_id(const char* function) {
  for (const DriverFunction& known : kDriverFunctions)
    if (std::strcmp(known.name, function) == 0) return known.id;
  return 0;
}

void tell_subscriber(const simgpu_activity& activity) {
  const CUpti_CallbackFunc callback = g_callback.load(std::memory_order_acquire);
  if (callback == nullptr) return;
  const CUpti_CallbackId id = driver_callback_id(activity.function);
  if (id == 0 || !g_enabled[id].load(std::memory_order_relaxed)) return;
  CUresult result = static_cast<CUresult>(activity.result);
  CUpti_CallbackData data{};
  const bool begins = activity.kind == SIMGPU_CALL_BEGINS;
  data.callbackSite = begins ? CUPTI_API_ENTER : CUPTI_API_EXIT;
  data.functionName = activity.function;
  data.functionReturnValue = begins ? nullptr : &result;
  data.context = static_cast<CUcontext>(activity.context_handle);
  data.contextUid = activity.context;
  data.correlationData = &t_correlation_data;
  data.correlationId = activity.correlation;
  callback(g_user.load(), CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
}

}  // namespace simgpu

using namespace simgpu;

ENTRY(cuptiSubscribe)
(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* userdata) {
  return subscribe(subscriber, callback, userdata);
}

#if CUPTI_API_VERSION >= 130000
ENTRY(cuptiSubscribe_v2)
(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* userdata,
 CUpti_SubscriberParams*) {
  return subscribe(subscriber, callback, userdata);
}
#endif

ENTRY(cuptiUnsubscribe)(CUpti_SubscriberHandle subscriber) {
  if (!is_subscriber(subscriber)) return CUPTI_ERROR_INVALID_PARAMETER;
  enable_driver_domain(false);
  g_callback.store(nullptr);
  return CUPTI_SUCCESS;
}

ENTRY(cuptiEnableCallback)
(std::uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
 CUpti_CallbackId cbid) {
  if (!is_subscriber(subscriber) || !is_domain(domain)) return CUPTI_ERROR_INVALID_PARAMETER;
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API) return CUPTI_SUCCESS;
  if (cbid >= CUPTI_DRIVER_TRACE_CBID_SIZE) return CUPTI_ERROR_INVALID_PARAMETER;
  g_enabled[cbid].store(enable != 0);
  return CUPTI_SUCCESS;
}

ENTRY(cuptiEnableDomain)
(std::uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain) {
  if (!is_subscriber(subscriber) || !is_domain(domain)) return CUPTI_ERROR_INVALID_PARAMETER;
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) enable_driver_domain(enable != 0);
  return CUPTI_SUCCESS;
}

ENTRY(cuptiEnableAllDomains)(std::uint32_t enable, CUpti_SubscriberHandle subscriber) {
  if (!is_subscriber(subscriber)) return CUPTI_ERROR_INVALID_PARAMETER;
  enable_driver_domain(enable != 0);
  return CUPTI_SUCCESS;
}

ENTRY(cuptiGetCallbackState)
(std::uint32_t* enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
 CUpti_CallbackId cbid) {
  if (enable == nullptr || !is_subscriber(subscriber) || !is_domain(domain))
    return CUPTI_ERROR_INVALID_PARAMETER;
  *enable = domain == CUPTI_CB_DOMAIN_DRIVER_API && cbid < CUPTI_DRIVER_TRACE_CBID_SIZE &&
                    g_enabled[cbid].load()
                ? 1
                : 0;
  return CUPTI_SUCCESS;
}

ENTRY(cuptiGetCallbackName)(CUpti_CallbackDomain domain, std::uint32_t cbid, const char** name) {
  if (name == nullptr || !is_domain(domain)) return CUPTI_ERROR_INVALID_PARAMETER;
  *name = "";
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API)
    for (std::size_t i = 0; i < kFunctions; ++i)
      if (kDriverFunctions[i].id == cbid) *name = kDriverFunctions[i].name;
  return CUPTI_SUCCESS;
}
