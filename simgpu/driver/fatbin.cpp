#include "fatbin.h"

#include <elf.h>

#include <cstdint>
#include <cstring>

#ifdef SIMGPU_HAVE_ZSTD
#include <zstd.h>
#endif

namespace simgpu {
namespace {

constexpr std::uint32_t kWrapperMagic = 0x466243b1;
constexpr std::uint32_t kContainerMagic = 0xba55ed50;
constexpr std::uint64_t kMostContainerBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMostImageBytes = std::uint64_t{1} << 30;

struct Wrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const void* container;
};

struct ContainerHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t bytes;  // behind the header
};
static_assert(sizeof(ContainerHeader) == 16);

template <class T>
bool read_carefully(const void* from, T& value) {
  std::vector<unsigned char> bytes;
  if (from == nullptr || !copy_carefully(from, sizeof value, bytes)) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  return true;
}

bool read_image(const std::vector<unsigned char>& image, ImageInfo& info) {
  // Text is read up to the zero that unpack() put behind it.
  if (image.size() < 64) return false;
  switch (image_kind(image.data())) {
    case ImageKind::kElf:
      info = read_elf(image.data());
      break;
    case ImageKind::kPtx:
      info = read_ptx(reinterpret_cast<const char*>(image.data()));
      break;
    case ImageKind::kFatBinary:
    case ImageKind::kInvalid:
      return false;
  }
  return info.readable;
}

// Unpacks the frame at `at` with a zero behind it; `size` becomes what it takes packed.
bool unpack([[maybe_unused]] const unsigned char* at, [[maybe_unused]] std::size_t& size,
            [[maybe_unused]] std::vector<unsigned char>& image) {
#ifdef SIMGPU_HAVE_ZSTD
  const std::size_t packed = ZSTD_findFrameCompressedSize(at, size);
  const unsigned long long plain = ZSTD_getFrameContentSize(at, size);
  if (ZSTD_isError(packed) != 0 || plain == ZSTD_CONTENTSIZE_UNKNOWN ||
      plain == ZSTD_CONTENTSIZE_ERROR || plain > kMostImageBytes)
    return false;
  image.assign(static_cast<std::size_t>(plain) + 1, 0);
  if (ZSTD_isError(ZSTD_decompress(image.data(), plain, at, packed)) != 0) return false;
  size = packed;
  return true;
#else
  return false;
#endif
}

}  // namespace

bool FatBinary::open() {
  opened_ = true;
  std::uint32_t magic = 0;
  const void* container = image_;
  if (!read_carefully(container, magic)) return false;
  if (magic == kWrapperMagic) {
    Wrapper wrapper;
    if (!read_carefully(image_, wrapper)) return false;
    container = wrapper.container;
  }
  ContainerHeader header;
  if (!read_carefully(container, header) || header.magic != kContainerMagic ||
      header.bytes > kMostContainerBytes)
    return false;
  const auto* start = static_cast<const unsigned char*>(container) + header.header_bytes;
  return copy_carefully(start, header.bytes, bytes_);
}

bool FatBinary::next(ImageInfo& info) {
  if (!opened_ && !open()) bytes_.clear();
  constexpr unsigned char kFrame[4] = {0x28, 0xb5, 0x2f, 0xfd};
  std::vector<unsigned char> image;
  // Whatever is in a container begins at a multiple of eight.
  for (; at_ + 64 <= bytes_.size(); at_ += 8) {
    const unsigned char* here = bytes_.data() + at_;
    std::size_t size = bytes_.size() - at_;
    if (std::memcmp(here, ELFMAG, SELFMAG) == 0) {
      info = read_elf(here);
      at_ += 8;
      if (info.readable) return true;
    } else if (std::memcmp(here, kFrame, sizeof kFrame) == 0 && unpack(here, size, image)) {
      at_ += size & ~std::size_t{7};
      if (read_image(image, info)) return true;
    }
  }
  bytes_ = {};  // all is known
  return false;
}

}  // namespace simgpu
