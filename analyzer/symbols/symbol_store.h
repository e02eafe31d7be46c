// What the native addresses of a trace mean, as it is stored in the trace's `symbols` frame: JSON,
//
//   {"schema": "vramtrack.symbols/1",
//    "modules": [{"id": 17, "path": "/usr/lib/libexample.so.1",
//                 "addresses": [{"offset": 4660,
//                                "frames": [{"function": "inlined(int)", "file": "a.h", "line": 3,
//                                            "inlined": true},
//                                           {"function": "outer()", "file": "a.cpp", "line":
//                                           12}]}]}]}
//
// `id` is that of the define_module record, `offset` the return address minus the module's load
// bias, `frames` innermost first. `file` and `line` are absent where nothing tells them. An address
// without an entry was not resolved.
#ifndef VRAMTRACK_ANALYZER_SYMBOLS_SYMBOL_STORE_H
#define VRAMTRACK_ANALYZER_SYMBOLS_SYMBOL_STORE_H

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trace/recording.h"

namespace vramtrack {

class SymbolStore {
 public:
  // Throws InputError where the JSON is not what is described above.
  static SymbolStore parse(const std::string& json);

  void add(uint32_t module, const std::string& path, uint64_t offset, std::vector<Frame> frames);
  void merge(const SymbolStore& other);  // the other's frames win
  // nullptr where the address was not resolved.
  [[nodiscard]] const std::vector<Frame>* find(uint32_t module, uint64_t offset) const;
  [[nodiscard]] size_t size() const { return frames_.size(); }
  [[nodiscard]] std::string to_json() const;

 private:
  std::map<uint32_t, std::string> paths_;
  std::map<std::pair<uint32_t, uint64_t>, std::vector<Frame>> frames_;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_SYMBOLS_SYMBOL_STORE_H
