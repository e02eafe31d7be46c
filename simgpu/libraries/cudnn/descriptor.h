// The descriptors of cuDNN's graph API: typed attributes by number, kept as they were set.
//
// cuDNN's answers that depend on its engines (which exist, how much workspace they want) are
// assumed: exactly one engine, without knobs or notes, that needs no workspace.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simgpu {

enum CudnnStatus : int {
  kCudnnSuccess = 0,
  kCudnnBadParam = 2000,
  kCudnnBadParamNullPointer = 2002,
  kCudnnNotSupported = 3000,
  kCudnnAllocationFailed = 4003,
};

constexpr int kTypeVoidPointer = 6;
constexpr int kTypeBackendDescriptor = 15;

// Bytes of one element of a cudnnBackendAttributeType_t.
std::size_t cudnn_element_bytes(int type);

class CudnnDescriptor {
 public:
  static CudnnDescriptor* create(int kind);
  static void destroy(CudnnDescriptor* descriptor);

  int kind() const { return kind_; }
  int set(int attribute, int type, std::int64_t count, const void* elements);
  int get(int attribute, int type, std::int64_t requested, std::int64_t* count,
          void* elements) const;

 private:
  struct Attribute {
    Attribute* next;
    int name;
    int type;
    std::int64_t count;
    std::size_t bytes;
    unsigned char* data() { return reinterpret_cast<unsigned char*>(this + 1); }
  };

  CudnnDescriptor() = default;
  const Attribute* find(int name) const;
  int get_assumed(int attribute, std::int64_t requested, std::int64_t* count, void* elements) const;

  int kind_ = 0;
  Attribute* attributes_ = nullptr;
};

}  // namespace simgpu
