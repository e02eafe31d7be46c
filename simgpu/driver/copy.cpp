#include "copy.h"

#include <algorithm>
#include <cstring>

#include "tables.h"

namespace simgpu {
namespace {

bool is_device(std::uint64_t address) {
  return driver().addresses.contains(address);
}

unsigned char* bytes_at(std::uint64_t address) {
  return reinterpret_cast<unsigned char*>(address);
}

// Visits a device range in pieces that are contiguous where their contents are kept: memory that
// is mapped twice has one place.
template <class Visit>
void for_each_piece(std::uint64_t address, std::size_t size, Visit visit) {
  for (std::size_t done = 0; done < size;) {
    std::uint64_t at = address + done;
    std::size_t part = size - done;
    std::uint64_t place = at;
    if (auto allocation = registry().find(at)) {
      std::uint64_t offset = at - allocation->address;
      part = std::min<std::size_t>(part, allocation->size - offset);
      if (allocation->vmm != nullptr)
        place = vmm_contents_address(allocation->vmm) + allocation->vmm_offset + offset;
    }
    visit(place, done, part);
    done += part;
  }
}

constexpr const char kUnknown[] = "copy to host: bytes that no copy or set had written, as zero";
constexpr const char kStale[] = "copy to host: bytes written before the latest kernel, unchanged";

void to_host(void* to, std::uint64_t from, std::size_t size) {
  std::size_t stale = 0;
  std::size_t known = read_contents(from, to, size, &stale);
  if (known < size) assume(kUnknown, size - known);
  if (stale > 0) assume(kStale, stale);
}

void within_device(std::uint64_t to, std::uint64_t from, std::size_t size, bool keep) {
  if (!keep || size > Contents::kKeptBytes) return forget_contents(to, size);
  for_each_piece(from, size, [&](std::uint64_t from_place, std::size_t done, std::size_t part) {
    for_each_piece(to + done, part,
                   [&](std::uint64_t to_place, std::size_t more, std::size_t size2) {
                     driver().contents.copy(to_place, from_place + more, size2);
                   });
  });
}

}  // namespace

std::size_t read_contents(std::uint64_t address, void* data, std::size_t size, std::size_t* stale) {
  std::size_t known = 0;
  for_each_piece(address, size, [&](std::uint64_t place, std::size_t done, std::size_t part) {
    Contents::Read read =
        driver().contents.read(place, static_cast<unsigned char*>(data) + done, part);
    known += read.known;
    if (stale != nullptr) *stale += read.stale;
  });
  return known;
}

void write_contents(std::uint64_t address, const void* data, std::size_t size) {
  if (size > Contents::kKeptBytes) return forget_contents(address, size);
  for_each_piece(address, size, [&](std::uint64_t place, std::size_t done, std::size_t part) {
    driver().contents.write(place, static_cast<const unsigned char*>(data) + done, part);
  });
}

void forget_contents(std::uint64_t address, std::size_t size) {
  for_each_piece(address, size, [](std::uint64_t place, std::size_t, std::size_t part) {
    driver().contents.forget(place, part);
  });
}

CUresult check_range(std::uint64_t address, std::size_t size, Side side) {
  if (size == 0) return CUDA_SUCCESS;
  if (address == 0 || address + size < address) return CUDA_ERROR_INVALID_VALUE;
  if (is_device(address)) {
    if (side == Side::kHost) return CUDA_ERROR_INVALID_VALUE;
    return registry().covers(address, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  if (side != Side::kDevice) return CUDA_SUCCESS;
  return registry().covers(address, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void move_bytes(std::uint64_t to, std::uint64_t from, std::size_t size, bool keep) {
  if (size == 0) return;
  bool to_device = is_device(to);
  bool from_device = is_device(from);
  if (!to_device && !from_device) {
    std::memmove(bytes_at(to), bytes_at(from), size);
  } else if (!to_device) {
    to_host(bytes_at(to), from, size);
  } else if (from_device) {
    within_device(to, from, size, keep);
  } else if (keep) {
    write_contents(to, bytes_at(from), size);
  } else {
    forget_contents(to, size);
  }
}

void set_bytes(std::uint64_t address, const void* pattern, std::size_t pattern_size,
               std::size_t size, bool keep) {
  if (size == 0) return;
  if (!is_device(address)) {
    if (pattern_size == 1) {
      std::memset(bytes_at(address), *static_cast<const unsigned char*>(pattern), size);
      return;
    }
    for (std::size_t i = 0; i < size; i += pattern_size)
      std::memcpy(bytes_at(address) + i, pattern, std::min(pattern_size, size - i));
    return;
  }
  if (!keep || size > Contents::kKeptBytes) return forget_contents(address, size);
  for_each_piece(address, size, [&](std::uint64_t place, std::size_t, std::size_t part) {
    driver().contents.fill(place, pattern, pattern_size, part);
  });
}

}  // namespace simgpu
