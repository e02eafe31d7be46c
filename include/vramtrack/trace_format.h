// The trace file: what the shim writes and the analyzer reads. docs/format.md tells the story.
//
//   +--------------------+ 0
//   | FileHeader         |   fixed size, then `metadata_bytes` of JSON (command line, host, clocks
//   ...)
//   +--------------------+ window_offset
//   | window             |   `slot_count` slots of `slot_bytes`; a thread owns one slot and writes
//   |  slot 0: ChunkHeader + records                  its records there, so that a kill loses
//   nothing |  slot 1: ...       |
//   +--------------------+ RingHeader::offset, in a ring recording only
//   | area 0 | area 1 .. |   sealed chunks of events; the oldest area is overwritten, again and
//   again
//   +--------------------+ frames_offset
//   | FrameHeader + body |   sealed chunks, appended in any order, 8-byte aligned
//   | ...                |   other frames: symbols, end of file
//   +--------------------+
//
// A chunk is written twice for a moment: once in its slot, once as a frame. (slot, generation) is
// the same in both, so that a reader drops the duplicate a kill can leave. Space that was reserved
// and never written reads as zeros; a reader skips it, 8 bytes at a time.
//
// Rules: numbers are little-endian. Kinds, fields and frame types are only ever added, never
// renumbered. Every count in a file is bounded by the limits below, and a reader refuses what
// exceeds them.
#ifndef VRAMTRACK_TRACE_FORMAT_H
#define VRAMTRACK_TRACE_FORMAT_H

#include <cstddef>
#include <cstdint>

namespace vramtrack {

inline constexpr char kFileMagic[8] = {'V', 'R', 'A', 'M', 'T', 'R', 'K', '\n'};
inline constexpr uint32_t kFormatVersion = 1;
inline constexpr uint32_t kChunkMagic = 0x4b4e4843;  // "CHNK"
inline constexpr uint32_t kFrameMagic = 0x454d5246;  // "FRME"

inline constexpr uint32_t kDefaultSlotBytes = 64 * 1024;
inline constexpr uint32_t kDefaultSlotCount = 64;
inline constexpr uint32_t kMaxSlotBytes = 1024 * 1024;
inline constexpr uint32_t kMaxSlotCount = 4096;
inline constexpr uint32_t kMaxMetadataBytes = 1024 * 1024;
inline constexpr uint32_t kMaxFrameBytes = 64 * 1024 * 1024;  // stored or raw
inline constexpr uint32_t kMaxStackDepth = 512;
inline constexpr uint32_t kMaxStringBytes = 64 * 1024;
inline constexpr uint32_t kMaxAccessAddresses = 1024;
inline constexpr uint32_t kMaxAccessLists = 1U << 17;  // of a file

struct FileHeader {
  char magic[8];
  uint32_t format_version;
  uint32_t header_bytes;  // sizeof(FileHeader) of the writer; metadata starts here
  uint32_t metadata_bytes;
  uint32_t slot_bytes;  // ChunkHeader included
  uint32_t slot_count;
  uint32_t flags;  // FileFlag
  uint64_t window_offset;
  uint64_t frames_offset;
  uint64_t frames_end;      // next free byte for a frame; a hint only, the file's size decides
  uint64_t dropped_events;  // lost so far; kept here so that it survives a kill
  uint64_t start_realtime_ns;
  uint64_t start_monotonic_ns;  // times of events count from here
};
static_assert(sizeof(FileHeader) == 80);

enum FileFlag : uint32_t {
  kFileFinished = 1,  // the writer closed the file: all chunks are frames
  kFileSampled = 2,   // blocks are sampled: metadata `sample_bytes` says how
  kFileRing = 4,      // a RingHeader follows: chunks of events lie in areas that are recycled
};

// Follows FileHeader, before the metadata; `header_bytes` counts both.
struct RingHeader {
  uint64_t offset;      // of the first area, after the window
  uint64_t area_bytes;  // the areas follow each other and end at or before frames_offset
  uint32_t area_count;
  uint32_t reserved;
};
static_assert(sizeof(RingHeader) == 24);

inline constexpr uint32_t kMaxRingAreas = 64;

struct ChunkHeader {
  uint32_t magic;       // kChunkMagic, 0 in a free slot
  uint32_t slot;        // index of the slot
  uint32_t generation;  // grows each time the slot is reused
  uint32_t thread;      // thread of the process, small and dense
  uint32_t used_bytes;  // committed bytes of records after this header, stored last (release)
  uint32_t flags;       // ChunkFlag
  uint64_t first_sequence;
  uint64_t last_sequence;
  uint64_t first_time_ns;
};
static_assert(sizeof(ChunkHeader) == 48);

enum ChunkFlag : uint32_t {
  kChunkHasDefinitions = 1,  // holds records that other chunks refer to
};

struct FrameHeader {
  uint32_t magic;
  uint16_t type;   // FrameType
  uint16_t codec;  // Codec
  uint32_t stored_bytes;
  uint32_t raw_bytes;
  uint32_t checksum;         // CRC-32C of the stored bytes
  uint32_t ring_generation;  // of the area's content, from 1; 0 outside the ring
};
static_assert(sizeof(FrameHeader) == 24);

enum class FrameType : uint16_t {
  chunk = 1,     // ChunkHeader + records
  symbols = 2,   // JSON: what the addresses of this file mean, so that it can be read elsewhere
  snapshot = 3,  // SnapshotHeader + carried records: a part of the live set, in a ring's area
  end = 4,       // the writer's own totals: JSON
};

enum class Codec : uint16_t { raw = 0, zstd = 1 };

// The first frame of an area is part 0 of its generation's snapshot: what was live just before the
// event `sequence`, and what else a reader must know of the time before.
struct SnapshotHeader {
  uint32_t generation;
  uint32_t part;   // from 0, in order
  uint32_t flags;  // SnapshotFlag
  uint32_t reserved;
  uint64_t sequence;
  uint64_t time_ns;
};
static_assert(sizeof(SnapshotHeader) == 32);

enum SnapshotFlag : uint32_t {
  kSnapshotComplete = 1,  // the last part: none is missing
};

// What a record tells. Each record is
//   kind (1 byte), then for events: sequence delta, time delta, field mask, fields (trace_codec.h)
//                  for definitions: their own layout (trace_codec.h)
enum class EventKind : uint8_t {
  none = 0,

  // The physical ledger: what the driver handed out.
  physical_alloc = 1,       // address, size, memory, device, stream, object = pool if any
  physical_free_begin = 2,  // address; the memory still counts until physical_free_end
  physical_free_end = 3,    // address, result: 0 released, else it is still there
  handle_create = 4,        // VMM: object = handle, size, memory, device: these bytes count
  handle_release = 5,       // object = handle
  map = 6,              // address, size, object = handle, extra = offset in it; a view, no bytes
  unmap = 7,            // address, size
  address_reserve = 8,  // address, size; costs nothing
  address_free = 9,
  pool_create = 10,    // object = pool, device
  pool_destroy = 11,   // object = pool: all it holds is gone
  pool_reserved = 12,  // object = pool, size = bytes it holds by its RESERVED attribute
  import_open = 13,    // IPC or external memory: address, size; owned, and counted, elsewhere
  import_close = 14,
  context_create = 15,   // object = context, device
  context_destroy = 16,  // object = context: what was allocated in it is gone
  device_reset = 17,     // device
  module_load = 18,      // object = module, size = bytes of device code and globals where known
  module_unload = 19,
  graph_instantiate = 20,  // object = executable graph
  graph_exec_destroy = 21,
  physical_failed = 22,  // a request the driver refused: size, memory, device, result
  handle_retain = 23,    // VMM: object = handle, one more reference; address = where it was mapped

  // The block ledger: what a caching allocator cut out of it.
  block_alloc = 32,           // address, size, requested, device, stream, witness fields
                              // text = name of the nn.Module whose method ran, if known
  block_free = 33,            // address, size: freed by its owner
  block_free_completed = 34,  // address: its streams are done, it can be reused
  out_of_memory = 35,         // size = request, requested; the allocator gave up
  // The same four from an imported snapshot also have segment events:
  segment_alloc = 36,  // address, size, stream: a segment of the caching allocator
  segment_free = 37,
  segment_map = 38,  // part of an expandable segment
  segment_unmap = 39,
  snapshot_taken = 40,

  // Measured from outside both ledgers.
  memory_sample = 48,   // device, size = free, extra = total bytes; requested: docs/format.md
  device_info = 49,     // device, size = total bytes, text = name
  process_sample = 50,  // device, size = bytes of this process by NVML, extra = of all others

  // What the program says of itself.
  mark = 64,        // text
  phase_push = 65,  // text; of the calling thread
  phase_pop = 66,
  step = 67,              // extra = number; process-wide
  label = 68,             // address, size, text
  holder = 71,            // address, size, stack of a live block: text says who holds it
  annotation_begin = 69,  // external annotations of a snapshot, device-wide
  annotation_end = 70,

  // Work on the device.
  kernel = 80,         // text = name, stream, device, object = function handle
  memcpy_call = 81,    // address = destination, extra = source (0: not the device's), size, stream
  memset_call = 82,    // address, size, stream
  kernel_access = 83,  // a launch and what it was given: extra = id of a define_access, stream;
                       // or text = name and one address, where there was no room for a list
  graph_launch = 84,   // object = executable graph, stream

  // Bookkeeping.
  dropped = 96,        // extra = number of events that were lost before this one
  sampled_block = 97,  // block_alloc that stands for `extra` bytes of blocks like it
  ring_restart = 98,   // made by the reader of a ring: all before is incomplete
  ring_peak = 99,      // carried: a maximum since the start; object = RingPeak, device, size,
                       // extra = step + 1 or 0; sequence and time are those of the moment
  ring_segment = 100,  // carried: a caching allocator cuts its blocks out of the memory at address

  // What CUPTI, the second witness, says (docs/format.md). `requested` is its correlation id,
  // `extra` the time by its own clock, in ns since the start of the file.
  cupti_memory = 112,  // result: 1 allocated, 2 released; address, size, memory, device, stream,
                       // object = pool, text = library that asked, where CUPTI says
  cupti_pool = 113,    // result: 1 created, 2 destroyed, 3 trimmed; object = pool, size, device
  cupti_kernel = 114,  // text = name, device, stream, size = duration in ns
  cupti_call = 115,    // a driver function returned that no hook of ours saw: api, stack, result
  cupti_note = 116,    // result = CuptiNote, text, size = records that CUPTI lost

  // Definitions. They have no sequence number and may stand in any chunk.
  define_string = 128,
  define_stack = 129,
  define_code = 130,    // a Python code object
  define_module = 131,  // a mapped library or program
  define_thread = 132,
  define_metadata = 133,  // key and value strings learnt after the header was written
  define_access = 134,    // a kernel and the device addresses among its parameters
  kept_event = 135,       // a carried record that a ring must not lose, whatever it overwrites
};

// What ring_peak is the maximum of.
enum class RingPeak : uint64_t {
  allocated = 1,  // the caching allocator's own count
  reserved = 2,   // likewise
  driver = 3,     // plain and stream-ordered allocations of the driver that were live
  used = 4,       // of the device, by all processes, as measured
};

constexpr bool is_definition(EventKind kind) {
  return static_cast<uint8_t>(kind) >= 128;
}

enum class CuptiNote : int32_t {
  started = 1,
  stepped_aside = 2,  // the program wanted CUPTI for itself
  ended = 3,
  unavailable = 4,  // it never ran
};

// Where memory lies. Only `device` and `array` count as in use on the device; managed memory has a
// line of its own, pinned and registered are host memory.
enum class Memory : uint8_t {
  none = 0,
  device = 1,
  managed = 2,
  pinned = 3,
  registered = 4,
  array = 5,
  pool = 6,      // stream-ordered: nests in its pool's reserved bytes
  graph = 7,     // a memory node of a graph
  imported = 8,  // IPC
  vmm_host = 9,  // a VMM handle that lies in host memory
  multicast = 10,
  module_data = 11,  // __device__ and __managed__ variables
};

enum EventFlag : uint32_t {
  kEventExpandable = 1,       // segment: grown page by page
  kEventSmallPool = 2,        // block or segment of the small pool
  kEventPendingFree = 4,      // block_free: other streams still use it
  kEventPrivatePool = 8,      // CUDA graphs or a user's MemPool; object = pool id
  kEventReconstructed = 16,   // imported: inferred from the final state, not recorded
  kEventCaptured = 32,        // issued while a graph was being captured; a block: its stream was
  kEventRequestedKnown = 64,  // `requested` was seen, not derived from `size`
  kEventNoLayout = 128,       // kernel: where its parameters lie is not known
  kEventGraphNode = 256,      // kernel, copy or set in the executable graph `object`; runs with it
  kEventCarried = 512,        // of the time before a ring begins: it made what was live then
  kEventSampled = 1024,      // block_alloc read from a sampled_block: `extra` is what it stands for
  kEventForeignText = 2048,  // imported: text is what the program attached, not a module's name
  kEventAtOom = 4096,        // holder: said at an out-of-memory error
  kEventKernelDue = 8192,    // carried: its thread had launched no kernel since
};

enum AccessFlag : uint32_t {
  kAccessTruncated = 1,  // there were more than kMaxAccessAddresses
};

// One record, decoded. Which fields mean something depends on the kind, above; the others are 0.
struct Event {
  EventKind kind = EventKind::none;
  Memory memory = Memory::none;
  int16_t device = -1;  // ordinal as the process sees it, -1 unknown
  uint32_t thread = 0;  // from the chunk
  uint64_t sequence = 0;
  uint64_t time_ns = 0;  // since FileHeader::start_monotonic_ns
  uint64_t stream = 0;
  uint64_t address = 0;
  uint64_t size = 0;       // bytes
  uint64_t requested = 0;  // bytes asked for, 0 unknown
  uint64_t object = 0;     // handle, pool, context, module ...
  uint64_t extra = 0;
  uint64_t witness_allocated = 0;  // PyTorch's own total after the event, 0 unknown
  uint64_t witness_reserved = 0;
  uint32_t stack = 0;  // id of a define_stack, 0 none
  uint32_t text = 0;   // id of a define_string, 0 none
  uint32_t api = 0;    // id of a define_string: the function that was called
  int32_t result = 0;  // CUresult or cudaError_t
  uint32_t flags = 0;  // EventFlag
};

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACE_FORMAT_H
