// The buffers that CUPTI fills: host memory of our own, taken from the kernel and used again. CUPTI
// asks for them and gives them back in any thread, its own worker among them.
#ifndef VRAMTRACK_TRACER_CUPTI_BUFFERS_H
#define VRAMTRACK_TRACER_CUPTI_BUFFERS_H

#include <cstddef>
#include <cstdint>

namespace vramtrack {

inline constexpr size_t kCuptiBufferBytes = 256 * 1024;

// nullptr where all are out: CUPTI then drops records, and counts them.
uint8_t* take_cupti_buffer();
void give_back_cupti_buffer(uint8_t* buffer);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_CUPTI_BUFFERS_H
