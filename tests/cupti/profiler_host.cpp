// A program that profiles itself with CUPTI, and says on stdout what CUPTI gave it. Watched or not,
// it must be the same.
//
//   late PLUGIN     uses the GPU first, CUPTI then: a tracer's witness has to make room
//   looked-up PLUGIN  likewise, but with functions that it asks dlsym for
//   first PLUGIN    subscribes before the GPU is used
//   foreign PLUGIN  another tool has subscribed, in a way that no hook can see
//   hidden PLUGIN   no CUPTI of its own: memory that only the driver sees
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace {

struct Api {
  decltype(&::cuptiSubscribe) subscribe = ::cuptiSubscribe;
  decltype(&::cuptiUnsubscribe) unsubscribe = ::cuptiUnsubscribe;
  decltype(&::cuptiEnableDomain) enable_domain = ::cuptiEnableDomain;
  decltype(&::cuptiActivityRegisterCallbacks) register_callbacks = ::cuptiActivityRegisterCallbacks;
  decltype(&::cuptiActivityEnable) enable = ::cuptiActivityEnable;
  decltype(&::cuptiActivityDisable) disable = ::cuptiActivityDisable;
  decltype(&::cuptiActivityFlushAll) flush = ::cuptiActivityFlushAll;
  decltype(&::cuptiActivityGetNextRecord) next = ::cuptiActivityGetNextRecord;
};

Api g_api;
int g_callbacks = 0;

template <class Function>
void look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) std::printf("missing %s\n", name);
}

void look_up_all() {
  void* library = dlopen("libcupti.so.13", RTLD_NOW);
  look_up(library, "cuptiSubscribe", g_api.subscribe);
  look_up(library, "cuptiUnsubscribe", g_api.unsubscribe);
  look_up(library, "cuptiEnableDomain", g_api.enable_domain);
  look_up(library, "cuptiActivityRegisterCallbacks", g_api.register_callbacks);
  look_up(library, "cuptiActivityEnable", g_api.enable);
  look_up(library, "cuptiActivityDisable", g_api.disable);
  look_up(library, "cuptiActivityFlushAll", g_api.flush);
  look_up(library, "cuptiActivityGetNextRecord", g_api.next);
}

// Numbers in the order in which they appear: absolute ones belong to the process.
uint32_t renumbered(uint32_t correlation) {
  static std::map<uint32_t, uint32_t> seen;
  return seen.emplace(correlation, static_cast<uint32_t>(seen.size())).first->second;
}

void say(const CUpti_Activity* record) {
  if (record->kind == CUPTI_ACTIVITY_KIND_MEMORY2) {
    const auto& memory = *reinterpret_cast<const CUpti_ActivityMemory4*>(record);
    std::printf("memory %d kind %d bytes %llu correlation %u\n", memory.memoryOperationType,
                memory.memoryKind, static_cast<unsigned long long>(memory.bytes),
                renumbered(memory.correlationId));
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const auto& set = *reinterpret_cast<const CUpti_ActivityMemset4*>(record);
    std::printf("memset bytes %llu correlation %u\n", static_cast<unsigned long long>(set.bytes),
                renumbered(set.correlationId));
  } else if (record->kind == CUPTI_ACTIVITY_KIND_DRIVER) {
    const auto& call = *reinterpret_cast<const CUpti_ActivityAPI*>(record);
    std::printf("call %u result %u correlation %u\n", call.cbid, call.returnValue,
                renumbered(call.correlationId));
  } else {
    std::printf("record of kind %d\n", record->kind);
  }
}

void CUPTIAPI request(uint8_t** buffer, size_t* size, size_t* most) {
  *size = 4096;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
  *most = 0;
}

void CUPTIAPI complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (g_api.next(buffer, valid, &record) == CUPTI_SUCCESS) say(record);
  std::free(buffer);
}

void CUPTIAPI called(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {
  ++g_callbacks;
}

void use_gpu() {
  void *device = nullptr, *pinned = nullptr;
  for (size_t i = 1; i <= 40; ++i) {
    cudaMalloc(&device, 1000 * i);
    cudaMemset(device, 1, 1000 * i);
    cudaFree(device);
  }
  cudaHostAlloc(&pinned, 4096, 0);
  cudaFreeHost(pinned);
  cudaMalloc(&device, 123456);  // kept
}

CUpti_SubscriberHandle subscribe() {
  CUpti_SubscriberHandle subscriber = nullptr;
  std::printf("subscribe %d\n", g_api.subscribe(&subscriber, called, nullptr));
  return subscriber;
}

void profile(CUpti_SubscriberHandle subscriber) {
  constexpr CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_MEMSET,
                                          CUPTI_ACTIVITY_KIND_DRIVER};
  std::printf("register %d\n", g_api.register_callbacks(request, complete));
  for (const CUpti_ActivityKind kind : kinds) std::printf("enable %d\n", g_api.enable(kind));
  if (subscriber != nullptr)
    std::printf("domain %d\n", g_api.enable_domain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API));
  use_gpu();
  std::printf("flush %d\n", g_api.flush(0));
  for (const CUpti_ActivityKind kind : kinds) g_api.disable(kind);
  if (subscriber != nullptr) std::printf("unsubscribe %d\n", g_api.unsubscribe(subscriber));
  std::printf("callbacks %d\n", g_callbacks);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const std::string mode = arguments[1];
  void* plugin = dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (plugin == nullptr) {
    std::printf("%s\n", dlerror());
    return 2;
  }
  if (mode == "hidden") {
    use_gpu();
    const auto hide = reinterpret_cast<int (*)(size_t)>(dlsym(plugin, "hidden_allocation"));
    std::printf("hidden %d\n", hide(7 << 20));
    use_gpu();
    return 0;
  }
  if (mode == "foreign") {
    const auto past =
        reinterpret_cast<void* (*)(const char*, const char*)>(dlsym(plugin, "past_the_hooks"));
    g_api.subscribe =
        reinterpret_cast<decltype(g_api.subscribe)>(past("libcupti.so.13", "cuptiSubscribe"));
  }
  if (mode == "first" || mode == "foreign") {
    CUpti_SubscriberHandle subscriber = subscribe();
    use_gpu();
    if (mode == "foreign") return 0;
    profile(subscriber);
    return 0;
  }
  use_gpu();
  if (mode == "looked-up") look_up_all();
  profile(subscribe());
  use_gpu();
  return 0;
}
