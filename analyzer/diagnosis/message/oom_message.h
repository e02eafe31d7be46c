// An out-of-memory message, read clause by clause: which library spoke and every number it gave.
// Nothing is concluded here; message_audit.h does that.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_MESSAGE_OOM_MESSAGE_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_MESSAGE_OOM_MESSAGE_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/message/printed_size.h"

namespace vramtrack {

// What a number in a message counts. The words in JSON are those of size_name().
enum class SizeKind : uint8_t {
  ask,            // the request that failed, in bytes
  total,          // the device
  free,           // of the device
  allocated,      // live in the library's pool
  reserved,       // held by the pool, allocated included
  unallocated,    // held by the pool and not allocated
  limit,          // what the library may take at most
  active,         // allocated or waiting for a stream
  private_pools,  // of the allocated, in pools of CUDA graphs
  process,        // the whole process by NVML, its context included
  other_in_use,   // in use outside the pool (MPS: other allocations)
  largest_free,   // largest free block of the pool
  peak,           // highest allocated so far
  weights,        // serving engines: the budget and its parts
  non_torch,
  activation_peak,
  kv_cache,   // room left for keys and values; negative if there is none
  kv_needed,  // what one request of full length takes
  budget,
  temporary,           // a compiled program's plan: its temporaries
  planned,             //   and all of it
  plan_fragmentation,  //   and what its packing loses
  required,            // a demand on something that is not device memory
  available,           //   and how much there is of that
};
std::string_view size_name(SizeKind size);

struct ProcessUse {
  uint64_t pid = 0;
  PrintedSize used;
};

// How far the text itself settles what kind of failure it is.
enum class MessageKind : uint8_t {
  device,      // a request for device memory failed
  masked,      // says something else, and is an OOM often enough to be read as one
  budget,      // a serving engine found no room within the share it was given
  corrupt,     // the size asked for is nonsense
  host,        // host memory ran out
  not_memory,  // looks like an OOM and is none
};

struct OomMessage {
  std::string library;  // "PyTorch", "JAX/XLA" ...
  std::string form;     // which wording, for people
  MessageKind kind = MessageKind::device;
  std::string device;  // "GPU 0" as the message said, empty if it did not
  std::map<SizeKind, PrintedSize> sizes;
  std::vector<ProcessUse> processes;           // that the message named by number
  std::map<std::string, std::string> details;  // longest length that fits, fractions, places ...
  size_t begin = 0;                            // in MessageText::squeezed()
  size_t end = 0;
  size_t line = 0;

  [[nodiscard]] std::optional<PrintedSize> size(SizeKind which) const {
    const auto found = sizes.find(which);
    if (found == sizes.end()) return std::nullopt;
    return found->second;
  }
};

struct OomText {
  std::vector<OomMessage> messages;  // in the order of the text
  size_t more = 0;                   // beyond the bound on `messages`
  // Allocator settings that the text shows to be in force, e.g. an environment that was logged. The
  // suggestion at the end of PyTorch's own message is not one.
  std::map<std::string, std::string> settings;
  bool windows = false;  // its paths say so
  std::string mig_profile;
  // The innermost line of the caller's own code above the first message: file:line, function.
  std::string raised_at;
};

// Recognises every OOM message in `text`. An empty result means: not recognised.
OomText read_oom_text(std::string_view text);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_MESSAGE_OOM_MESSAGE_H
