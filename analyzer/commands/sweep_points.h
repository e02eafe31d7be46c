// The points of a sweep: every combination of the values that --set names, and the command line of
// each.
#ifndef VRAMTRACK_ANALYZER_COMMANDS_SWEEP_POINTS_H
#define VRAMTRACK_ANALYZER_COMMANDS_SWEEP_POINTS_H

#include <string>
#include <utility>
#include <vector>

namespace vramtrack {

// "seq=512,1024": a name and its values.
struct SweepVariable {
  std::string name;
  std::vector<std::string> values;
};

struct SweepPoint {
  std::vector<std::pair<std::string, std::string>> values;  // in the order of the variables
  double x = 0;                                             // of the first variable
  std::vector<std::string> command;

  [[nodiscard]] std::string label() const;  // "seq=512,batch=2"
  [[nodiscard]] std::string fixed() const;  // without the first variable: "batch=2"
};

// Throws InputError where a --set cannot be read.
std::vector<SweepVariable> parse_sweep(const std::vector<std::string>& sets);

// The last variable changes slowest, so that what is fitted together runs together. {name} in the
// command becomes the value. Throws InputError where the first variable is no number, where there
// are too many points, or where the command does not mention a variable.
std::vector<SweepPoint> sweep_points(const std::vector<SweepVariable>& variables,
                                     const std::vector<std::string>& command);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_COMMANDS_SWEEP_POINTS_H
