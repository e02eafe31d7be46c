#include "kernels/kernel_name.h"

#include <cxxabi.h>

#include <cstdlib>

namespace simgpu {
namespace {

bool opens(char c) {
  return c == '<' || c == '(' || c == '{' || c == '[';
}
bool closes(char c) {
  return c == '>' || c == ')' || c == '}' || c == ']';
}

// Position of the bracket that closes the one at `open`, or npos.
std::size_t closing(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (opens(text[i])) ++depth;
    if (closes(text[i]) && !(text[i] == '>' && i > 0 && text[i - 1] == '-') && --depth == 0)
      return i;
  }
  return std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Of "void f<...>(int, float*)"; the list is the last thing in the text.
std::vector<std::string_view> parameter_types(std::string_view text) {
  const std::size_t close = text.rfind(')');
  if (close == std::string_view::npos) return {};
  int depth = 0;
  for (std::size_t i = close + 1; i-- > 0;) {
    if (closes(text[i]) && !(text[i] == '>' && i > 0 && text[i - 1] == '-')) ++depth;
    if (opens(text[i]) && --depth == 0) return split_arguments(text.substr(i + 1, close - i - 1));
  }
  return {};
}

// Where no name has any: "operator ...", a return type.
bool has_spaces(std::string_view function) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)";
  for (std::size_t at = function.find(' '); at != std::string_view::npos;
       at = function.find(' ', at + 1)) {
    const std::size_t before = kUnnamed.find(' ');
    if (at < before || function.substr(at - before, kUnnamed.size()) != kUnnamed) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string_view> split_arguments(std::string_view list) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (opens(list[i])) ++depth;
    if (closes(list[i])) --depth;
    if (list[i] == ',' && depth == 0) {
      parts.push_back(trimmed(list.substr(start, i - start)));
      start = i + 1;
    }
  }
  if (!trimmed(list.substr(start)).empty()) parts.push_back(trimmed(list.substr(start)));
  return parts;
}

KernelName parse_kernel_name(const char* mangled) {
  KernelName name;
  int status = 0;
  char* demangled = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  if (!demangled) return name;
  name.text = demangled;
  std::free(demangled);
  name.parameters = parameter_types(name.text);
  std::string_view text = name.text;
  if (text.starts_with("void ")) text.remove_prefix(5);
  const std::size_t open = text.find('<');
  if (open == std::string_view::npos || has_spaces(text.substr(0, open))) return name;
  const std::size_t close = closing(text, open);
  if (close == std::string_view::npos) return name;
  name.function = text.substr(0, open);
  name.arguments = split_arguments(text.substr(open + 1, close - open - 1));
  return name;
}

std::vector<std::string_view> template_arguments(std::string_view text, std::string_view name) {
  if (!text.starts_with(name) || text.size() <= name.size() || text[name.size()] != '<') return {};
  if (closing(text, name.size()) != text.size() - 1) return {};
  return split_arguments(text.substr(name.size() + 1, text.size() - name.size() - 2));
}

std::vector<std::string_view> leading_template_arguments(std::string_view text) {
  const std::size_t close = text.starts_with('<') ? closing(text, 0) : std::string_view::npos;
  if (close == std::string_view::npos) return {};
  return split_arguments(text.substr(1, close - 1));
}

std::vector<std::string_view> lambda_parameters(std::string_view text) {
  constexpr std::string_view kLambda = "{lambda(";
  const std::size_t at = text.rfind(kLambda);
  if (at == std::string_view::npos) return {};
  const std::size_t open = at + kLambda.size() - 1;
  const std::size_t close = closing(text, open);
  if (close == std::string_view::npos) return {};
  return split_arguments(text.substr(open + 1, close - open - 1));
}

}  // namespace simgpu
