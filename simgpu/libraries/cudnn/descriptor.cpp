#include "cudnn/descriptor.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace simgpu {
namespace {

// Attributes that are read rather than set; numbers of cudnnBackendAttributeName_t.
constexpr int kEngineHeurOperationGraph = 201, kEngineHeurResults = 202;
constexpr int kEngineCfgEngine = 300, kEngineCfgKnobChoices = 302, kEngineCfgWorkspace = 303,
              kEngineCfgShared = 304;
constexpr int kPlanWorkspace = 402, kPlanJson = 405;
constexpr int kGraphEngineCount = 802;
constexpr int kEngineOperationGraph = 1300, kEngineGlobalIndex = 1301, kEngineKnobInfo = 1302;
constexpr int kEngineNumericalNote = 1303, kEngineLayoutInfo = 1304, kEngineBehaviorNote = 1305;

int give_integer(std::int64_t value, std::int64_t requested, std::int64_t* count, void* elements) {
  if (count) *count = 1;
  if (requested >= 1 && elements) std::memcpy(elements, &value, sizeof value);
  return kCudnnSuccess;
}

int give_nothing(std::int64_t* count) {
  if (count) *count = 0;
  return kCudnnSuccess;
}

// Attributes that hold descriptors are read into descriptors that the caller made.
CudnnDescriptor* first_descriptor(std::int64_t requested, void* elements) {
  CudnnDescriptor* descriptor = nullptr;
  if (requested >= 1 && elements) std::memcpy(&descriptor, elements, sizeof(void*));
  return descriptor;
}

}  // namespace

std::size_t cudnn_element_bytes(int type) {
  switch (type) {
    case 0:  // handle
    case 3:  // int64
    case 5:  // double
    case 6:  // pointer
    case kTypeBackendDescriptor:
      return 8;
    case 2:  // boolean
    case 24:
      return 1;  // char
    case 26:
      return 16;  // fraction
    default:
      return 4;  // enumerations, int32, float
  }
}

CudnnDescriptor* CudnnDescriptor::create(int kind) {
  void* memory = std::malloc(sizeof(CudnnDescriptor));
  if (!memory) return nullptr;
  auto* descriptor = new (memory) CudnnDescriptor;
  descriptor->kind_ = kind;
  return descriptor;
}

void CudnnDescriptor::destroy(CudnnDescriptor* descriptor) {
  if (!descriptor) return;
  for (Attribute* attribute = descriptor->attributes_; attribute;) {
    Attribute* next = attribute->next;
    std::free(attribute);
    attribute = next;
  }
  std::free(descriptor);
}

const CudnnDescriptor::Attribute* CudnnDescriptor::find(int name) const {
  for (const Attribute* attribute = attributes_; attribute; attribute = attribute->next) {
    if (attribute->name == name) return attribute;
  }
  return nullptr;
}

int CudnnDescriptor::set(int name, int type, std::int64_t count, const void* elements) {
  if (count < 0 || count > (std::int64_t{1} << 24)) return kCudnnBadParam;
  if (count > 0 && !elements) return kCudnnBadParamNullPointer;
  const std::size_t bytes = static_cast<std::size_t>(count) * cudnn_element_bytes(type);
  void* memory = std::malloc(sizeof(Attribute) + bytes);
  if (!memory) return kCudnnAllocationFailed;
  auto* attribute = new (memory) Attribute{attributes_, name, type, count, bytes};
  if (bytes) std::memcpy(attribute->data(), elements, bytes);
  attributes_ = attribute;  // the newest value is found first
  return kCudnnSuccess;
}

int CudnnDescriptor::get(int name, int type, std::int64_t requested, std::int64_t* count,
                         void* elements) const {
  const Attribute* attribute = find(name);
  if (!attribute) return get_assumed(name, requested, count, elements);
  if (attribute->type != type || requested < 0) return kCudnnBadParam;
  if (count) *count = attribute->count;
  const std::int64_t given = requested < attribute->count ? requested : attribute->count;
  if (elements && type != kTypeBackendDescriptor) {
    std::memcpy(elements, attribute + 1,
                static_cast<std::size_t>(given) * cudnn_element_bytes(type));
  }
  return kCudnnSuccess;
}

int CudnnDescriptor::get_assumed(int name, std::int64_t requested, std::int64_t* count,
                                 void* elements) const {
  switch (name) {
    case kEngineHeurResults:  // one configuration, of an engine for the graph that was asked about
    case kEngineCfgEngine: {
      if (count) *count = 1;
      CudnnDescriptor* result = first_descriptor(requested, elements);
      const Attribute* graph =
          find(name == kEngineHeurResults ? kEngineHeurOperationGraph : kEngineOperationGraph);
      if (result && graph) result->set(kEngineOperationGraph, graph->type, graph->count, graph + 1);
      return kCudnnSuccess;
    }
    case kGraphEngineCount:
      return give_integer(1, requested, count, elements);
    case kEngineGlobalIndex:
    case kEngineCfgWorkspace:
    case kEngineCfgShared:
    case kPlanWorkspace:
      return give_integer(0, requested, count, elements);
    case kEngineCfgKnobChoices:
    case kEngineKnobInfo:
    case kEngineNumericalNote:
    case kEngineLayoutInfo:
    case kEngineBehaviorNote:
    case kPlanJson:
      return give_nothing(count);
    default:
      return kCudnnNotSupported;
  }
}

}  // namespace simgpu
