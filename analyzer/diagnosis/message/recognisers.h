// The recognisers of OOM messages, one table per family of libraries. A recogniser starts at an
// anchor, a text that begins or marks a message, and reads what follows by clauses: a number with a
// given text before it or after it. Clauses that a version lacks are simply not found.
//
// Adding a library: a row in a table, and clauses for the numbers it prints.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_MESSAGE_RECOGNISERS_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_MESSAGE_RECOGNISERS_H

#include <optional>
#include <span>
#include <string_view>

#include "diagnosis/message/oom_message.h"

namespace vramtrack {

// `text` is squeezed (message_text.h): no blanks, lower case. `limit` is where the next message
// begins at the latest; a recogniser may look back before `at`, for instance for the library's
// name.
struct Candidate {
  std::string_view text;
  size_t at = 0;
  size_t limit = 0;

  [[nodiscard]] std::string_view window() const { return text.substr(at, limit - at); }
  // Up to `length` characters before the anchor.
  [[nodiscard]] std::string_view before(size_t length) const;
  [[nodiscard]] bool has(std::string_view needle) const {
    return window().find(needle) != std::string_view::npos;
  }
};

struct Recogniser {
  std::string_view anchor;
  std::optional<OomMessage> (*read)(const Candidate& candidate);
};

// A number counts as `size` when `before` ends right before it and `after` begins right behind it.
struct Clause {
  std::string_view before;
  std::string_view after;
  SizeKind size;
};

// Reads the clauses found in the candidate's window into `message`, first come first kept, and
// moves message.end behind the last one. Stops where more than `max_gap` characters hold no clause.
void read_clauses(const Candidate& candidate, std::span<const Clause> clauses, size_t max_gap,
                  OomMessage& message);

// Keeps the first value of a size, or a more exact spelling of the same one.
void keep_size(SizeKind which, const PrintedSize& size, OomMessage& message);

// The number right behind the first `before` in the window, with its unit.
std::optional<PrintedSize> size_after(std::string_view window, std::string_view before);

// The whole number right behind it, which counts bytes. Where the next line was glued to the digits
// a unit must not be read out of its first letter.
std::optional<PrintedSize> bytes_after(std::string_view window, std::string_view before);

// The digits that follow `before` in the window, and an optional fraction: "0.70" after
// "gpu_memory_utilization(". Empty if there are none.
std::string_view number_after(std::string_view window, std::string_view before);

// A message that starts at the anchor, with what every recogniser sets.
OomMessage message_at(const Candidate& candidate, std::string_view library, std::string_view form,
                      MessageKind kind = MessageKind::device);

std::span<const Recogniser> pytorch_recognisers();
std::span<const Recogniser> compiler_recognisers();  // JAX, TensorFlow
std::span<const Recogniser> serving_recognisers();   // vLLM, SGLang, TGI, llama.cpp
std::span<const Recogniser> library_recognisers();   // CuPy, RMM, TensorRT, NCCL, cuBLAS ...
std::span<const Recogniser> host_recognisers();      // host memory, and what is no OOM at all

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_MESSAGE_RECOGNISERS_H
