#include "wording/lines.h"

#include <fmt/format.h>

#include <algorithm>

namespace vramtrack {

std::string wrapped(std::string_view text, size_t indent) {
  const size_t leading = std::min(text.find_first_not_of(' '), text.size());
  std::string out(leading, ' ');
  size_t column = leading;
  bool first = true;
  text.remove_prefix(leading);
  while (!text.empty()) {
    const size_t length = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, length);
    if (!first && column + 1 + word.size() > kReportWidth) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    first = false;
    out += word;
    column += word.size();
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return out;
}

std::string paragraph(std::string_view lead, std::string_view text) {
  return wrapped(fmt::format("{}{}", lead, text), lead.size()) + "\n";
}

std::string shortened(std::string_view text, size_t width) {
  if (text.size() <= width) return std::string(text);
  if (width <= 3) return std::string(text.substr(0, width));
  const size_t head = (width - 3) / 2;
  const size_t tail = width - 3 - head;
  return std::string(text.substr(0, head)) + "..." + std::string(text.substr(text.size() - tail));
}

}  // namespace vramtrack
