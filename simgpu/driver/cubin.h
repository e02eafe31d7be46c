// What an ELF cubin says in plain: its kernels, their resources and parameters, its variables.
//
// Section names (.text.NAME, .nv.info.NAME, .nv.shared.NAME, .nv.constant0.NAME) and the attribute
// records of .nv.info are described by public disassemblers and by `cuobjdump -elf`. Of fat
// binaries only parameters are read, when they are asked for (fatbin.h): every name is taken on
// trust.
#ifndef SIMGPU_DRIVER_CUBIN_H
#define SIMGPU_DRIVER_CUBIN_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace simgpu {

struct KernelParameter {
  std::uint32_t offset = 0, size = 0;
};

struct KernelInfo {
  bool has_parameters = false;
  std::vector<KernelParameter> parameters;
  std::uint32_t shared_bytes = 0;
  std::uint32_t local_bytes = 0;
  std::uint32_t constant_bytes = 0;
  std::uint32_t registers = 0;
  std::uint32_t max_threads = 0;
};

struct VariableInfo {
  std::uint64_t size = 0;
};

struct ImageInfo {
  bool readable = false;  // false: names and sizes are unknown
  std::map<std::string, KernelInfo, std::less<>> kernels;
  std::map<std::string, VariableInfo, std::less<>> variables;
};

// Copies memory whose extent is only what its own headers claim: a wrong claim is an error here,
// not a fault.
bool copy_carefully(const void* from, std::size_t size, std::vector<unsigned char>& to);

enum class ImageKind { kInvalid, kElf, kPtx, kFatBinary };
ImageKind image_kind(const void* image);
// The headers say how long the image is; nothing behind that is read.
ImageInfo read_elf(const void* image);
ImageInfo read_ptx(const char* text);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_CUBIN_H
