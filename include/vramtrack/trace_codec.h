// How one record becomes bytes and comes back. Shared by the shim and the analyzer, so that there
// is one description of the encoding. No allocation, no exceptions, nothing from outside the
// header.
//
// An event:
//   u8      kind
//   varint  sequence - previous sequence of this chunk
//   zigzag  time - previous time of this chunk
//   varint  mask: bit i set = field i follows (order of `Field`)
//   fields  varints; device and result zigzag; address, witnesses zigzag deltas to the previous
//           value of the same field in this chunk
//
// Definitions:
//   define_string    u8 kind, varint id, varint length, bytes
//   define_stack     u8 kind, varint id, varint count, then per frame, innermost first:
//                    native  varint (zigzag delta of pc to the previous native pc) * 2
//                    Python  varint code id * 2 + 1, varint byte offset of the instruction
//   define_code      u8 kind, varint id, varint name string, varint file string, varint first line,
//                    varint Python version (minor), varint table length, line table bytes
//   define_module    u8 kind, varint id, varint base, varint begin, varint end, varint path string,
//                    varint build id length, bytes
//   define_thread    u8 kind, varint thread, varint tid, varint name string
//   define_metadata  u8 kind, varint key string, varint value string
//   define_access    u8 kind, varint id, varint name string, varint AccessFlag, varint count, then
//                    count * (varint zigzag delta of the address to the previous one, varint
//                    distance of its word to the previous one's; words of 8 bytes, from the start
//                    of the parameters)
//   kept_event       u8 kind, a carried record
//
// A carried record (ring recording): varint thread, varint step + 1 (0: before the first), varint
// phase string, varint kernel string, then an event as above whose deltas are all from 0.
#ifndef VRAMTRACK_TRACE_CODEC_H
#define VRAMTRACK_TRACE_CODEC_H

#include <vramtrack/trace_format.h>

#include <cstring>

namespace vramtrack {

// Bits of an event's mask, in the order in which the fields follow.
enum class Field : uint32_t {
  device = 0,
  stream,
  address,
  size,
  requested,
  object,
  stack,
  api,
  memory,
  result,
  flags,
  extra,
  witness_allocated,
  witness_reserved,
  text,
};

inline constexpr size_t kMaxVarintBytes = 10;
// kind + sequence + time + mask + 15 fields, each at most ten bytes.
inline constexpr size_t kMaxEventBytes = 1 + 18 * kMaxVarintBytes;

constexpr uint64_t zigzag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
constexpr int64_t unzigzag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}
// Signed distance between two unsigned values; wraps, so that any pair has one.
constexpr uint64_t delta(uint64_t to, uint64_t from) {
  return zigzag(static_cast<int64_t>(to - from));
}
constexpr uint64_t undelta(uint64_t encoded, uint64_t from) {
  return from + static_cast<uint64_t>(unzigzag(encoded));
}

// Appends to a buffer whose capacity the caller has checked.
class Writer {
 public:
  explicit Writer(uint8_t* out) : begin_(out), out_(out) {}

  void byte(uint8_t value) { *out_++ = value; }
  void varint(uint64_t value) {
    while (value >= 0x80) {
      *out_++ = static_cast<uint8_t>(value | 0x80);
      value >>= 7;
    }
    *out_++ = static_cast<uint8_t>(value);
  }
  void bytes(const void* data, size_t size) {
    if (size != 0) std::memcpy(out_, data, size);
    out_ += size;
  }
  [[nodiscard]] size_t size() const { return static_cast<size_t>(out_ - begin_); }

 private:
  uint8_t* begin_;
  uint8_t* out_;
};

// Reads from bytes that nobody vouches for: after the first bad read everything yields 0 and ok()
// is false.
class Reader {
 public:
  Reader(const uint8_t* data, size_t size) : in_(data), end_(data + size) {}

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] size_t left() const { return static_cast<size_t>(end_ - in_); }
  [[nodiscard]] const uint8_t* position() const { return in_; }

  uint8_t byte() {
    if (in_ == end_) return fail();
    return *in_++;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (in_ == end_) return fail();
      const uint8_t b = *in_++;
      value |= static_cast<uint64_t>(b & 0x7f) << shift;
      if ((b & 0x80) == 0) return value;
    }
    return fail();
  }
  // `size` bytes in place, nullptr where there are fewer.
  const uint8_t* bytes(size_t size) {
    if (size > left()) {
      fail();
      return nullptr;
    }
    const uint8_t* at = in_;
    in_ += size;
    return at;
  }
  uint8_t fail() {
    ok_ = false;
    in_ = end_;
    return 0;
  }

 private:
  const uint8_t* in_;
  const uint8_t* end_;
  bool ok_ = true;
};

// What the deltas of a chunk refer to. Starts from the ChunkHeader, at its first record.
struct CodecState {
  uint64_t sequence = 0;
  uint64_t time_ns = 0;
  uint64_t address = 0;
  uint64_t witness_allocated = 0;
  uint64_t witness_reserved = 0;

  static CodecState at(const ChunkHeader& chunk) {
    return CodecState{chunk.first_sequence, chunk.first_time_ns, 0, 0, 0};
  }
};

// Writes one event and returns its length, at most kMaxEventBytes.
inline size_t encode_event(const Event& event, CodecState& state, uint8_t* out) {
  Writer w(out);
  w.byte(static_cast<uint8_t>(event.kind));
  w.varint(event.sequence - state.sequence);
  w.varint(delta(event.time_ns, state.time_ns));
  state.sequence = event.sequence;
  state.time_ns = event.time_ns;

  uint32_t mask = 0;
  const auto has = [&mask](bool present, Field field) {
    if (present) mask |= 1U << static_cast<uint32_t>(field);
  };
  has(event.device != -1, Field::device);
  has(event.stream != 0, Field::stream);
  has(event.address != 0, Field::address);
  has(event.size != 0, Field::size);
  has(event.requested != 0, Field::requested);
  has(event.object != 0, Field::object);
  has(event.stack != 0, Field::stack);
  has(event.api != 0, Field::api);
  has(event.memory != Memory::none, Field::memory);
  has(event.result != 0, Field::result);
  has(event.flags != 0, Field::flags);
  has(event.extra != 0, Field::extra);
  has(event.witness_allocated != 0, Field::witness_allocated);
  has(event.witness_reserved != 0, Field::witness_reserved);
  has(event.text != 0, Field::text);
  w.varint(mask);

  if (event.device != -1) w.varint(zigzag(event.device));
  if (event.stream != 0) w.varint(event.stream);
  if (event.address != 0) {
    w.varint(delta(event.address, state.address));
    state.address = event.address;
  }
  if (event.size != 0) w.varint(event.size);
  if (event.requested != 0) w.varint(event.requested);
  if (event.object != 0) w.varint(event.object);
  if (event.stack != 0) w.varint(event.stack);
  if (event.api != 0) w.varint(event.api);
  if (event.memory != Memory::none) w.varint(static_cast<uint64_t>(event.memory));
  if (event.result != 0) w.varint(zigzag(event.result));
  if (event.flags != 0) w.varint(event.flags);
  if (event.extra != 0) w.varint(event.extra);
  if (event.witness_allocated != 0) {
    w.varint(delta(event.witness_allocated, state.witness_allocated));
    state.witness_allocated = event.witness_allocated;
  }
  if (event.witness_reserved != 0) {
    w.varint(delta(event.witness_reserved, state.witness_reserved));
    state.witness_reserved = event.witness_reserved;
  }
  if (event.text != 0) w.varint(event.text);
  return w.size();
}

// Reads the event whose kind byte was just read. False where the bytes are bad; `thread` is left to
// the caller, who has the chunk.
inline bool decode_event(EventKind kind, Reader& in, CodecState& state, Event& event) {
  event = Event{};
  event.kind = kind;
  event.sequence = state.sequence += in.varint();
  event.time_ns = state.time_ns = undelta(in.varint(), state.time_ns);
  const uint64_t mask = in.varint();
  const auto has = [mask](Field field) { return (mask >> static_cast<uint32_t>(field) & 1) != 0; };
  if (mask >> (static_cast<uint32_t>(Field::text) + 1) != 0) return false;

  if (has(Field::device)) event.device = static_cast<int16_t>(unzigzag(in.varint()));
  if (has(Field::stream)) event.stream = in.varint();
  if (has(Field::address)) event.address = state.address = undelta(in.varint(), state.address);
  if (has(Field::size)) event.size = in.varint();
  if (has(Field::requested)) event.requested = in.varint();
  if (has(Field::object)) event.object = in.varint();
  if (has(Field::stack)) event.stack = static_cast<uint32_t>(in.varint());
  if (has(Field::api)) event.api = static_cast<uint32_t>(in.varint());
  if (has(Field::memory)) event.memory = static_cast<Memory>(in.varint());
  if (has(Field::result)) event.result = static_cast<int32_t>(unzigzag(in.varint()));
  if (has(Field::flags)) event.flags = static_cast<uint32_t>(in.varint());
  if (has(Field::extra)) event.extra = in.varint();
  if (has(Field::witness_allocated))
    event.witness_allocated = state.witness_allocated =
        undelta(in.varint(), state.witness_allocated);
  if (has(Field::witness_reserved))
    event.witness_reserved = state.witness_reserved = undelta(in.varint(), state.witness_reserved);
  if (has(Field::text)) event.text = static_cast<uint32_t>(in.varint());
  return in.ok();
}

// An event and what its chunk or the events around it would have said of it.
struct CarriedEvent {
  Event event;
  uint64_t step_plus_1 = 0;
  uint32_t phase = 0;
  uint32_t kernel = 0;
};

inline constexpr size_t kMaxCarriedBytes = kMaxEventBytes + 4 * kMaxVarintBytes;

inline size_t encode_carried(const CarriedEvent& carried, uint8_t* out) {
  Writer w(out);
  w.varint(carried.event.thread);
  w.varint(carried.step_plus_1);
  w.varint(carried.phase);
  w.varint(carried.kernel);
  CodecState from_zero;
  return w.size() + encode_event(carried.event, from_zero, out + w.size());
}

inline bool decode_carried(Reader& in, CarriedEvent& carried) {
  const auto thread = static_cast<uint32_t>(in.varint());
  carried.step_plus_1 = in.varint();
  carried.phase = static_cast<uint32_t>(in.varint());
  carried.kernel = static_cast<uint32_t>(in.varint());
  const auto kind = static_cast<EventKind>(in.byte());
  CodecState from_zero;
  if (!in.ok() || kind == EventKind::none || is_definition(kind)) return false;
  if (!decode_event(kind, in, from_zero, carried.event)) return false;
  carried.event.thread = thread;
  return true;
}

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACE_CODEC_H
