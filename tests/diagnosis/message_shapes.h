// The shapes of tests/data/oom/oom-messages.json as writers: each prints its message with numbers
// drawn anew, and keeps what has to be read back.
#ifndef VRAMTRACK_TESTS_DIAGNOSIS_MESSAGE_SHAPES_H
#define VRAMTRACK_TESTS_DIAGNOSIS_MESSAGE_SHAPES_H

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "diagnosis/message/oom_message.h"
#include "printed_message.h"

namespace vramtrack::test {

// What a shape prints and what has to be read from it.
struct Sample {
  std::string text;
  std::string library;
  std::map<SizeKind, long double> sizes;
  std::vector<std::pair<uint64_t, long double>> processes;
  MessageKind kind = MessageKind::device;
};

class Writer {
 public:
  explicit Writer(uint64_t seed) : random_(seed) {}

  // A size as PyTorch prints it, to be read back as `kind`.
  std::string size(SizeKind kind) { return keep(kind, print_size(random_bytes(random_))); }
  std::string as(SizeKind kind, const char* unit, const char* between = "", char point = '.') {
    std::uniform_real_distribution<double> value(0.01, 2000);
    return keep(kind, print_as(value(random_), unit, point, between));
  }
  std::string whole(SizeKind kind) {
    const uint64_t bytes = random_bytes(random_);
    sample.sizes[kind] = static_cast<long double>(bytes);
    return std::to_string(bytes);
  }
  std::string process() {
    const uint64_t pid = random_() % 4000000 + 1;
    const Printed used = print_size(random_bytes(random_));
    sample.processes.emplace_back(pid, used.bytes);
    return "Process " + std::to_string(pid) + " has " + used.text + " memory in use. ";
  }
  std::string number(uint64_t limit) { return std::to_string(random_() % limit); }

  Sample sample;

 private:
  std::string keep(SizeKind kind, const Printed& printed) {
    sample.sizes[kind] = printed.bytes;
    return printed.text;
  }
  std::mt19937_64 random_;
};

// One writer per shape of the file, by its "lib"; several where a shape's notes name variants.
using Shape = std::function<void(Writer&)>;
const std::multimap<std::string, Shape>& shapes();

// PyTorch's before 2.1; `last` is what follows the free memory.
std::string torch_old(Writer& w, const std::string& last);

}  // namespace vramtrack::test

#endif  // VRAMTRACK_TESTS_DIAGNOSIS_MESSAGE_SHAPES_H
