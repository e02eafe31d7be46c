#include "pickle_program.h"

#include <span>
#include <utility>

#include "import/byte_source.h"
#include "import/unpickler.h"
#include "trace/input_error.h"

namespace vramtrack {

Unpickled::Unpickled(std::string input)
    : bytes(std::move(input)), store([this] { return bytes.size(); }) {
  const auto source = ByteSource::from_memory(
      std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
  value = read_pickle(*source, store);
}

std::string refusal(const std::string& bytes) {
  try {
    const Unpickled read(bytes);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace vramtrack
