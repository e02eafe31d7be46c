// What a trace says about stacks before anybody has looked up what the numbers mean: addresses of
// native frames, code objects and line tables of Python frames, the modules that were mapped.
//
// The trace reader (trace/) collects these; symbols/ turns them into Frames. The interface stands
// here so that trace/ need not know symbols/: whoever opens a trace hands in the resolver.
#ifndef VRAMTRACK_ANALYZER_TRACE_RAW_DEFINITIONS_H
#define VRAMTRACK_ANALYZER_TRACE_RAW_DEFINITIONS_H

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trace/recording.h"

namespace vramtrack {

struct RawFrame {
  uint64_t value = 0;   // native: return address, 0 where deeper frames were cut; Python: code id
  uint32_t offset = 0;  // Python: byte offset of the instruction
  bool python = false;
};

struct RawStack {
  uint32_t id = 0;
  std::vector<RawFrame> frames;  // innermost first
};

// Stacks and modules draw their ids from one counter of the process. Where a library was closed and
// another mapped over it, the frames of stack S belong to the overlapping module with the largest
// id below S.
struct RawModule {
  uint32_t id = 0;
  uint64_t base = 0;  // load bias: address in memory minus address in the file
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string path;
  std::string build_id;  // raw bytes
};

struct RawCode {
  uint32_t id = 0;
  std::string name;  // qualified where the version knows qualified names
  std::string file;
  uint32_t first_line = 0;
  uint32_t python_minor = 0;  // 11: CPython 3.11; decides how the line table is read
  std::string line_table;
};

struct RawDefinitions {
  std::map<uint32_t, RawModule> modules;
  std::map<uint32_t, RawCode> codes;
  std::vector<RawStack> stacks;
  std::string symbols;  // JSON of the newest `symbols` frame, empty where there is none
};

// Turns one raw frame into what people read: one Frame, or several where functions were inlined,
// innermost first. Never empty.
class FrameResolver {
 public:
  virtual ~FrameResolver() = default;
  virtual std::vector<Frame> resolve(uint32_t stack_id, const RawFrame& frame) = 0;
};

// symbols/resolver.h: `make_frame_resolver`. What the reader must be told ("no symbols stored ...")
// is appended to `notes`. The definitions outlive the resolver.
using FrameResolverFactory = std::function<std::unique_ptr<FrameResolver>(
    const RawDefinitions& definitions, std::vector<std::string>& notes)>;

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_TRACE_RAW_DEFINITIONS_H
