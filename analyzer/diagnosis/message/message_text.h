// A log, made ready for the recognisers: people paste OOM messages out of terminals that wrapped
// them, loggers that prefixed every line, and consoles that coloured them. All blanks are removed
// and letters are lower case, so that a message reads the same however it was broken into lines.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_MESSAGE_MESSAGE_TEXT_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_MESSAGE_MESSAGE_TEXT_H

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vramtrack {

class MessageText {
 public:
  explicit MessageText(std::string_view original);

  [[nodiscard]] std::string_view squeezed() const { return squeezed_; }
  // Line of the original, from 1, in which the squeezed character `at` stood.
  [[nodiscard]] size_t line_of(size_t at) const;
  // The original line, without colours and prefixes.
  [[nodiscard]] std::string_view line(size_t number) const;
  [[nodiscard]] size_t line_count() const { return lines_.size(); }

 private:
  std::vector<std::string> lines_;
  std::vector<size_t> line_starts_;  // in squeezed_, one per line
  std::string squeezed_;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_MESSAGE_MESSAGE_TEXT_H
