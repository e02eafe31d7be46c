#include "commands/sweep_points.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "trace/input_error.h"

namespace vramtrack {
namespace {

constexpr size_t kMostPoints = 1000;

double number_of(const SweepVariable& variable, const std::string& value) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (*end != '\0' || !std::isfinite(number) || number <= 0)
    throw InputError(
        fmt::format("--set {}: `{}` is not a number above 0; memory is fitted over the first --set",
                    variable.name, value));
  return number;
}

bool replace_all(std::string& text, const std::string& from, const std::string& to) {
  bool found = false;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
    found = true;
  }
  return found;
}

void require_mentioned(const SweepVariable& variable, const std::vector<std::string>& command) {
  const std::string place = "{" + variable.name + "}";
  for (const std::string& word : command)
    if (word.find(place) != std::string::npos) return;
  throw InputError(fmt::format("the command does not say {}: every run would be the same", place));
}

std::string joined(const std::vector<std::pair<std::string, std::string>>& values, size_t from) {
  std::string text;
  for (size_t i = from; i < values.size(); ++i)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", values[i].first, values[i].second);
  return text;
}

SweepVariable parse_set(const std::string& set) {
  const size_t equals = set.find('=');
  if (equals == std::string::npos || equals == 0)
    throw InputError(
        fmt::format("--set {}: wants NAME=VALUE,VALUE,..., as seq=512,1024,2048", set));
  SweepVariable variable{set.substr(0, equals), {}};
  std::set<std::string> seen;
  for (size_t at = equals + 1; at <= set.size();) {
    const size_t comma = std::min(set.find(',', at), set.size());
    const std::string value = set.substr(at, comma - at);
    if (value.empty()) throw InputError(fmt::format("--set {}: a value is empty", set));
    if (value.find('/') != std::string::npos)
      throw InputError(fmt::format("--set {}: a value names the run's trace and holds no /", set));
    if (!seen.insert(value).second)
      throw InputError(fmt::format("--set {}: {} is there twice", set, value));
    variable.values.push_back(value);
    at = comma + 1;
  }
  return variable;
}

}  // namespace

std::string SweepPoint::label() const {
  return joined(values, 0);
}

std::string SweepPoint::fixed() const {
  return joined(values, 1);
}

std::vector<SweepVariable> parse_sweep(const std::vector<std::string>& sets) {
  std::vector<SweepVariable> variables;
  std::set<std::string> names;
  for (const std::string& set : sets) {
    variables.push_back(parse_set(set));
    if (!names.insert(variables.back().name).second)
      throw InputError(fmt::format("--set {} is given twice", variables.back().name));
  }
  return variables;
}

std::vector<SweepPoint> sweep_points(const std::vector<SweepVariable>& variables,
                                     const std::vector<std::string>& command) {
  size_t count = 1;
  for (const SweepVariable& variable : variables) {
    require_mentioned(variable, command);
    count *= variable.values.size();
    if (count > kMostPoints)
      throw InputError(fmt::format("the values of --set make more than {} runs", kMostPoints));
  }
  if (variables.front().values.size() < 2)
    throw InputError(fmt::format("--set {} names one value; growth needs two, better three",
                                 variables.front().name));
  std::vector<SweepPoint> points;
  for (size_t i = 0; i < count; ++i) {
    SweepPoint point{{}, 0, command};
    size_t rest = i;
    for (const SweepVariable& variable : variables) {
      const std::string& value = variable.values[rest % variable.values.size()];
      rest /= variable.values.size();
      point.values.emplace_back(variable.name, value);
      for (std::string& word : point.command) replace_all(word, "{" + variable.name + "}", value);
    }
    point.x = number_of(variables.front(), point.values.front().second);
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace vramtrack
