// Reads the definitions of a trace: strings, threads and metadata into the recording, stacks, code
// objects and modules into the raw form that symbols/ puts names to.
#ifndef VRAMTRACK_ANALYZER_TRACE_DEFINITION_READER_H
#define VRAMTRACK_ANALYZER_TRACE_DEFINITION_READER_H

#include <vramtrack/trace_codec.h>

#include <utility>
#include <vector>

#include "trace/raw_definitions.h"
#include "trace/recording.h"

namespace vramtrack {

// Ids of strings may be used before they are defined, in another chunk. So they are kept as ids
// until finish().
class DefinitionReader {
 public:
  explicit DefinitionReader(Definitions& definitions) : definitions_(definitions) {}

  // Reads the rest of a definition whose kind byte was read. False where it cannot be read.
  bool read(EventKind kind, Reader& in);
  // Events that a ring keeps for good, in no order.
  [[nodiscard]] const std::vector<CarriedEvent>& kept() const { return kept_; }
  // Resolves the ids. To be called once, after the last definition.
  RawDefinitions finish(RecordingInfo& info);

 private:
  bool read_string(Reader& in);
  bool read_stack(Reader& in);
  bool read_code(Reader& in);
  bool read_module(Reader& in);
  bool read_access(Reader& in);

  struct NamedCode {
    StringId name = 0;
    StringId file = 0;
  };

  Definitions& definitions_;
  RawDefinitions raw_;
  std::unordered_map<uint32_t, NamedCode> code_names_;
  std::unordered_map<uint32_t, StringId> module_paths_;
  std::unordered_map<uint32_t, size_t> stack_places_;
  std::vector<std::pair<uint32_t, StringId>> threads_;
  std::vector<std::pair<StringId, StringId>> metadata_;
  std::vector<CarriedEvent> kept_;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_TRACE_DEFINITION_READER_H
