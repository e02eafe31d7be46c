#include "symbols/symbol_store.h"

#include <nlohmann/json.hpp>

#include "trace/input_error.h"

namespace vramtrack {
namespace {

constexpr const char* kSchema = "vramtrack.symbols/1";
constexpr size_t kMaxInlined = 256;

Frame frame_from(const nlohmann::json& entry, const std::string& module) {
  Frame frame;
  frame.function = entry.at("function").get<std::string>();
  frame.file = entry.value("file", module);
  frame.line = entry.value("line", 0U);
  frame.inlined = entry.value("inlined", false);
  frame.module = module;
  return frame;
}

}  // namespace

SymbolStore SymbolStore::parse(const std::string& json) {
  SymbolStore store;
  try {
    const nlohmann::json root = nlohmann::json::parse(json);
    if (root.at("schema") != kSchema)
      throw InputError("the symbols in this trace have a layout that this version does not know");
    for (const nlohmann::json& module : root.at("modules")) {
      const auto id = module.at("id").get<uint32_t>();
      const auto path = module.at("path").get<std::string>();
      for (const nlohmann::json& address : module.at("addresses")) {
        const nlohmann::json& entries = address.at("frames");
        std::vector<Frame> frames;
        for (const nlohmann::json& entry : entries)
          if (frames.size() < kMaxInlined) frames.push_back(frame_from(entry, path));
        if (!frames.empty())
          store.add(id, path, address.at("offset").get<uint64_t>(), std::move(frames));
      }
    }
  } catch (const nlohmann::json::exception& error) {
    throw InputError(std::string("the symbols in this trace are damaged: ") + error.what());
  }
  return store;
}

void SymbolStore::add(uint32_t module, const std::string& path, uint64_t offset,
                      std::vector<Frame> frames) {
  paths_[module] = path;
  frames_[{module, offset}] = std::move(frames);
}

void SymbolStore::merge(const SymbolStore& other) {
  for (const auto& [id, path] : other.paths_) paths_[id] = path;
  for (const auto& [place, frames] : other.frames_) frames_[place] = frames;
}

const std::vector<Frame>* SymbolStore::find(uint32_t module, uint64_t offset) const {
  const auto found = frames_.find({module, offset});
  return found == frames_.end() ? nullptr : &found->second;
}

std::string SymbolStore::to_json() const {
  nlohmann::json modules = nlohmann::json::array();
  for (const auto& [id, path] : paths_) {
    nlohmann::json addresses = nlohmann::json::array();
    for (auto at = frames_.lower_bound({id, 0}); at != frames_.end() && at->first.first == id;
         ++at) {
      nlohmann::json frames = nlohmann::json::array();
      for (const Frame& frame : at->second) {
        nlohmann::json entry = {{"function", frame.function}};
        if (frame.file != path) entry["file"] = frame.file;
        if (frame.line != 0) entry["line"] = frame.line;
        if (frame.inlined) entry["inlined"] = true;
        frames.push_back(std::move(entry));
      }
      addresses.push_back({{"offset", at->first.second}, {"frames", std::move(frames)}});
    }
    modules.push_back({{"id", id}, {"path", path}, {"addresses", std::move(addresses)}});
  }
  const nlohmann::json root = {{"schema", kSchema}, {"modules", std::move(modules)}};
  // Function and file names come from strangers' binaries and need not be UTF-8.
  return root.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace vramtrack
