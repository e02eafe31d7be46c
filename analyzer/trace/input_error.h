// The one exception of the analyzer: the input cannot be used. Commands turn it into one line on
// stderr and exit code 2. The message says what happened, to which file, and what to do next.
#ifndef VRAMTRACK_ANALYZER_TRACE_INPUT_ERROR_H
#define VRAMTRACK_ANALYZER_TRACE_INPUT_ERROR_H

#include <stdexcept>

namespace vramtrack {

class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_TRACE_INPUT_ERROR_H
