// Opens a trace that our own shim wrote. docs/format.md describes the file, trace_format.h its
// layout.
//
// The danger: nobody vouches for the bytes. The writer may have been killed at any instant, may
// still be running, or the file may be no trace at all. What is lost or damaged is skipped and
// counted in RecordingInfo::integrity.
#ifndef VRAMTRACK_ANALYZER_TRACE_TRACE_FILE_H
#define VRAMTRACK_ANALYZER_TRACE_TRACE_FILE_H

#include <vramtrack/trace_codec.h>

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "trace/raw_definitions.h"
#include "trace/recording.h"

namespace vramtrack {

// A kill leaves a cut tail, which is always read. What a kill cannot leave (wrong checksums, a
// finished file without its end) is refused, unless the user asks for what is left.
enum class Damage { refuse, salvage };

struct ChunkIndex;  // where the chunks of a file lie

// Memory use is bounded by the definitions plus one chunk per thread, never by the events. The
// file is re-read on each pass, up to what had been written when it was opened.
class TraceFile final : public Recording {
 public:
  // Without a resolver the stacks stay unnamed: one "??" frame for each raw one.
  TraceFile(const std::filesystem::path& path, const FrameResolverFactory& resolver, Damage damage);
  ~TraceFile() override;

  void for_each(const std::function<bool(const Event&)>& visit) const override;

  // For those who put names to addresses: symbols/ and the symbolize command.
  [[nodiscard]] const RawDefinitions& raw_definitions() const { return raw_; }

 private:
  void read_end();
  void judge_damage(Damage damage);
  void gather_history(const std::vector<CarriedEvent>& kept);

  std::unique_ptr<ChunkIndex> index_;
  RawDefinitions raw_;
  std::vector<CarriedEvent> history_;  // of before a ring's beginning, in order
};

// Throws InputError where the file is no readable trace.
std::unique_ptr<TraceFile> open_trace(const std::filesystem::path& path,
                                      const FrameResolverFactory& resolver = {});

// What open_trace does with a damaged file. Process-wide, because a user says it once for all the
// files of a command; `refuse` until then.
void set_damage_policy(Damage damage);

// Whether the first bytes of a file are those of a trace (of any version).
bool is_trace(std::span<const uint8_t> first_bytes);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_TRACE_TRACE_FILE_H
