#include "diagnosis/message/recognisers.h"

#include <algorithm>
#include <vector>

namespace vramtrack {

std::string_view Candidate::before(size_t length) const {
  const size_t begin = at > length ? at - length : 0;
  return text.substr(begin, at - begin);
}

namespace {

bool clause_matches(const Clause& clause, std::string_view text, const SizeToken& token) {
  if (!text.substr(token.end).starts_with(clause.after)) return false;
  // A minus sign belongs to the number where the clause's text ends before it.
  return text.substr(0, token.begin).ends_with(clause.before) ||
         (token.minus && text.substr(0, token.begin - 1).ends_with(clause.before));
}

bool is_negative(const Clause& clause, std::string_view text, const SizeToken& token) {
  return token.minus && !clause.before.empty() &&
         text.substr(0, token.begin - 1).ends_with(clause.before);
}

}  // namespace

void read_clauses(const Candidate& candidate, std::span<const Clause> clauses, size_t max_gap,
                  OomMessage& message) {
  size_t at = candidate.at;
  size_t last_clause = candidate.at;
  std::vector<bool> seen(clauses.size());
  while (true) {
    const auto token = next_size(candidate.text, at);
    if (!token || token->end > candidate.limit || token->begin > last_clause + max_gap) return;
    at = token->end;
    for (size_t index = 0; index < clauses.size(); ++index) {
      const Clause& clause = clauses[index];
      if (!clause_matches(clause, candidate.text, *token)) continue;
      if (seen[index]) return;  // the next message of the same kind has begun
      seen[index] = true;
      PrintedSize size = token->size;
      if (is_negative(clause, candidate.text, *token)) size.bytes = -size.bytes;
      keep_size(clause.size, size, message);
      last_clause = std::min(token->end + clause.after.size(), candidate.limit);
      message.end = std::max(message.end, last_clause);
      break;
    }
  }
}

void keep_size(SizeKind which, const PrintedSize& size, OomMessage& message) {
  const auto [known, is_new] = message.sizes.emplace(which, size);
  if (is_new) return;
  // "2.99GiB (3206250496B)": the exact one of two spellings wins.
  const bool same = size.low() <= known->second.high() && known->second.low() <= size.high();
  if (same && size.half_step < known->second.half_step) known->second = size;
}

std::optional<PrintedSize> size_after(std::string_view window, std::string_view before) {
  const size_t found = window.find(before);
  if (found == std::string_view::npos) return std::nullopt;
  const size_t at = found + before.size();
  if (at >= window.size() || window[at] < '0' || window[at] > '9') return std::nullopt;
  const auto token = read_size(window, at);
  if (!token) return std::nullopt;
  return token->size;
}

std::optional<PrintedSize> bytes_after(std::string_view window, std::string_view before) {
  constexpr size_t kMaxDigits = 20;
  const size_t found = window.find(before);
  if (found == std::string_view::npos) return std::nullopt;
  const size_t begin = found + before.size();
  size_t end = begin;
  long double value = 0;
  for (; end < window.size() && window[end] >= '0' && window[end] <= '9'; ++end) {
    value = value * 10 + (window[end] - '0');
  }
  if (end == begin || end - begin > kMaxDigits) return std::nullopt;
  return PrintedSize::exact(value);
}

std::string_view number_after(std::string_view window, std::string_view before) {
  const size_t found = window.find(before);
  if (found == std::string_view::npos) return {};
  const size_t begin = found + before.size();
  size_t end = begin;
  while (end < window.size() &&
         ((window[end] >= '0' && window[end] <= '9') || window[end] == '.')) {
    ++end;
  }
  while (end > begin && window[end - 1] == '.') --end;
  return window.substr(begin, end - begin);
}

OomMessage message_at(const Candidate& candidate, std::string_view library, std::string_view form,
                      MessageKind kind) {
  OomMessage message;
  message.library = library;
  message.form = form;
  message.kind = kind;
  message.begin = candidate.at;
  message.end = candidate.at + 1;
  return message;
}

}  // namespace vramtrack
