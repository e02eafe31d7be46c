// The cubins and PTX texts inside a fat binary, one after the other, for who needs to know more of
// a kernel than its name. Only what is public is used: fatbinary_section.h describes the wrapper;
// containers begin with a magic number and their length (they tile a program's section .nv_fatbin);
// what is in them stands plain or as Zstandard frames (RFC 8878), and an ELF file, a frame and a
// PTX text each say by themselves what they are. Images packed in other ways stay unread.
#ifndef SIMGPU_DRIVER_FATBIN_H
#define SIMGPU_DRIVER_FATBIN_H

#include <cstddef>
#include <vector>

#include "cubin.h"

namespace simgpu {

class FatBinary {
 public:
  // Nothing is read before the first next().
  explicit FatBinary(const void* image) : image_(image) {}

  // Reads one image more; false at the end.
  bool next(ImageInfo& info);

 private:
  bool open();

  const void* image_;
  bool opened_ = false;
  std::vector<unsigned char> bytes_;  // the container
  std::size_t at_ = 0;
};

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_FATBIN_H
