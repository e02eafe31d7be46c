// A kernel's name, taken apart.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace simgpu {

struct KernelName {
  std::string text;                          // demangled
  std::vector<std::string_view> parameters;  // their types
  std::string_view function;                 // "at::native::reduce_kernel"
  std::vector<std::string_view> arguments;   // of the template
};

// Nothing where the name cannot be demangled; no function where it is no template.
KernelName parse_kernel_name(const char* mangled);

// Splits "A<B, C>, D" at its outermost commas.
std::vector<std::string_view> split_arguments(std::string_view list);

// "Name<...>" -> its arguments, where text is exactly `name` followed by one argument list.
std::vector<std::string_view> template_arguments(std::string_view text, std::string_view name);

// The arguments of the list that the text starts with: "<A, B>(int)" -> A, B.
std::vector<std::string_view> leading_template_arguments(std::string_view text);

// The parameter types of the last lambda in the text: "...::{lambda(bool, long)#2}" -> bool, long.
std::vector<std::string_view> lambda_parameters(std::string_view text);

}  // namespace simgpu
