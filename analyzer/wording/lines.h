// Lines of text for a terminal.
#ifndef VRAMTRACK_ANALYZER_WORDING_LINES_H
#define VRAMTRACK_ANALYZER_WORDING_LINES_H

#include <cstddef>
#include <string>
#include <string_view>

namespace vramtrack {

inline constexpr size_t kReportWidth = 92;  // columns

// Breaks a text at blanks into lines of at most kReportWidth columns, later ones indented. A word
// that is longer than a line stays whole.
std::string wrapped(std::string_view text, size_t indent = 0);

// `text` wrapped after `lead`, later lines below its beginning; ends the last line.
std::string paragraph(std::string_view lead, std::string_view text);

// At most `width` characters; "..." stands where the middle was cut out.
std::string shortened(std::string_view text, size_t width);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_WORDING_LINES_H
