// CRC-32C (Castagnoli), the checksum of frames.
#ifndef VRAMTRACK_ANALYZER_TRACE_CRC32C_H
#define VRAMTRACK_ANALYZER_TRACE_CRC32C_H

#include <cstdint>
#include <span>

namespace vramtrack {

uint32_t crc32c(std::span<const uint8_t> data);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_TRACE_CRC32C_H
