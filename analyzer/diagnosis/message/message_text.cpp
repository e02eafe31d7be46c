#include "diagnosis/message/message_text.h"

#include <algorithm>

namespace vramtrack {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Length of the terminal sequence that starts at `at`, 0 if none does.
size_t escape_length(std::string_view text, size_t at) {
  if (text[at] != '\x1b') return 0;
  if (at + 1 >= text.size()) return 1;
  if (text[at + 1] == '[') {
    size_t end = at + 2;
    while (end < text.size() && !(text[end] >= '@' && text[end] <= '~')) ++end;
    return std::min(end + 1, text.size()) - at;
  }
  if (text[at + 1] == ']') {  // up to BEL, or ESC and a backslash
    size_t end = at + 2;
    while (end < text.size() && text[end] != '\a' && text[end] != '\x1b' && text[end] != '\n')
      ++end;
    return end - at;
  }
  return 2;
}

std::string without_escapes(std::string_view line) {
  std::string plain;
  plain.reserve(line.size());
  for (size_t at = 0; at < line.size();) {
    const size_t escape = escape_length(line, at);
    if (escape == 0) plain.push_back(line[at]);
    at += std::max<size_t>(escape, 1);
  }
  return plain;
}

std::string_view trim_left(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  return first == std::string_view::npos ? std::string_view{} : text.substr(first);
}

// Length of what a launcher or a quoting put before the line: "[rank0]:", "[1,0]<stderr>:", "3: ",
// "(EngineCore_0 pid=1234)", "> ", pytest's "E   ". 0 if nothing.
size_t prefix_length(std::string_view line) {
  if (line.empty()) return 0;
  if (line.front() == '>' || line.front() == '|') return 1;
  if (line.starts_with("E  ")) return 3;
  if (is_digit(line.front())) {
    const size_t end = line.find_first_not_of("0123456789");
    if (end <= 5 && line.substr(end).starts_with(": ")) return end + 2;
    return 0;
  }
  if (line.front() == '[') {
    const size_t close = line.find(']');
    if (close > 64) return 0;  // or there is none
    const std::string_view inside = line.substr(1, close - 1);
    const bool rank = inside.starts_with("rank") || inside.starts_with("Rank");
    const bool mpi = line.substr(close + 1).starts_with("<std");
    if (!rank && !mpi) return 0;
    const size_t colon = line.find(':', close);
    return colon != std::string_view::npos && colon < close + 12 ? colon + 1 : close + 1;
  }
  if (line.front() == '(') {
    const size_t close = line.find(')');
    if (close > 96) return 0;
    return line.substr(0, close).find("pid=") != std::string_view::npos ? close + 1 : 0;
  }
  return 0;
}

std::string_view without_prefixes(std::string_view line) {
  line = trim_left(line);
  for (int guard = 0; guard < 4; ++guard) {
    const size_t length = prefix_length(line);
    if (length == 0) break;
    line = trim_left(line.substr(std::min(length, line.size())));
  }
  return line;
}

// Bytes of the character at `at` that count as blank: ASCII blanks, no-break spaces, the lines that
// draw boxes around tracebacks, and an escaped line break of a log that holds strings. 0: not
// blank.
size_t blank_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t offset) {
    return at + offset < text.size() ? static_cast<unsigned char>(text[at + offset]) : 0U;
  };
  if (byte(0) <= 0x20 || byte(0) == 0x7f) return 1;
  if (byte(0) == '\\' && (byte(1) == 'n' || byte(1) == 't' || byte(1) == 'r')) return 2;
  if (byte(0) == 0xc2 && byte(1) == 0xa0) return 2;
  if (byte(0) == 0xe2 && (byte(1) == 0x94 || byte(1) == 0x95)) return 3;
  return 0;
}

void append_squeezed(std::string_view line, std::string& out) {
  for (size_t at = 0; at < line.size();) {
    const size_t blank = blank_length(line, at);
    if (blank != 0) {
      at += blank;
      continue;
    }
    const char c = line[at++];
    out.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
}

}  // namespace

MessageText::MessageText(std::string_view original) {
  squeezed_.reserve(original.size());
  while (!original.empty()) {
    const size_t end = std::min(original.find('\n'), original.size());
    const std::string plain = without_escapes(original.substr(0, end));
    line_starts_.push_back(squeezed_.size());
    lines_.emplace_back(without_prefixes(plain));
    append_squeezed(lines_.back(), squeezed_);
    original.remove_prefix(std::min(end + 1, original.size()));
  }
}

size_t MessageText::line_of(size_t at) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), at);
  return static_cast<size_t>(after - line_starts_.begin());
}

std::string_view MessageText::line(size_t number) const {
  if (number == 0 || number > lines_.size()) return {};
  return lines_[number - 1];
}

}  // namespace vramtrack
