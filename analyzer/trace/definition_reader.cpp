#include "trace/definition_reader.h"

#include "trace/file_header.h"

namespace vramtrack {
namespace {

std::string bytes_of(Reader& in, uint64_t limit) {
  const uint64_t size = in.varint();
  if (size > limit) {
    in.fail();
    return {};
  }
  const uint8_t* bytes = in.bytes(size);
  return bytes == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(bytes), size);
}

uint32_t id_of(Reader& in) {
  const uint64_t id = in.varint();
  if (id > UINT32_MAX) in.fail();
  return static_cast<uint32_t>(id);
}

}  // namespace

bool DefinitionReader::read(EventKind kind, Reader& in) {
  switch (kind) {
    case EventKind::define_string:
      return read_string(in);
    case EventKind::define_stack:
      return read_stack(in);
    case EventKind::define_code:
      return read_code(in);
    case EventKind::define_module:
      return read_module(in);
    case EventKind::define_thread: {
      const uint32_t thread = id_of(in);
      in.varint();  // the kernel's id
      const StringId name = id_of(in);
      if (in.ok()) threads_.emplace_back(thread, name);
      return in.ok();
    }
    case EventKind::define_metadata: {
      const StringId key = id_of(in);
      const StringId value = id_of(in);
      if (in.ok()) metadata_.emplace_back(key, value);
      return in.ok();
    }
    case EventKind::define_access:
      return read_access(in);
    case EventKind::kept_event:
      return decode_carried(in, kept_.emplace_back());
    default:
      return false;
  }
}

bool DefinitionReader::read_string(Reader& in) {
  const StringId id = id_of(in);
  const std::string text = bytes_of(in, kMaxStringBytes);
  if (!in.ok()) return false;
  definitions_.define_string(id, text);
  return true;
}

bool DefinitionReader::read_stack(Reader& in) {
  RawStack stack{.id = id_of(in)};
  const uint64_t count = in.varint();
  if (count > kMaxStackDepth || count > in.left()) return false;
  stack.frames.reserve(count);
  uint64_t pc = 0;
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    const uint64_t word = in.varint();
    RawFrame frame{.python = (word & 1) != 0};
    if (frame.python) {
      frame.value = word >> 1;
      frame.offset = static_cast<uint32_t>(in.varint());
    } else {
      frame.value = pc = undelta(word >> 1, pc);
    }
    stack.frames.push_back(frame);
  }
  if (!in.ok()) return false;
  const auto [place, added] = stack_places_.try_emplace(stack.id, raw_.stacks.size());
  if (added) {
    raw_.stacks.push_back(std::move(stack));
  } else {
    raw_.stacks[place->second] = std::move(stack);
  }
  return true;
}

bool DefinitionReader::read_code(Reader& in) {
  RawCode code{.id = id_of(in)};
  NamedCode named;
  named.name = id_of(in);
  named.file = id_of(in);
  code.first_line = static_cast<uint32_t>(in.varint());
  code.python_minor = static_cast<uint32_t>(in.varint());
  code.line_table = bytes_of(in, kMaxFrameBytes);
  if (!in.ok()) return false;
  code_names_[code.id] = named;
  raw_.codes.insert_or_assign(code.id, std::move(code));
  return true;
}

bool DefinitionReader::read_module(Reader& in) {
  RawModule module{.id = id_of(in)};
  module.base = in.varint();
  module.begin = in.varint();
  module.end = in.varint();
  const StringId path = id_of(in);
  module.build_id = bytes_of(in, 256);
  if (!in.ok()) return false;
  module_paths_[module.id] = path;
  raw_.modules.insert_or_assign(module.id, std::move(module));
  return true;
}

bool DefinitionReader::read_access(Reader& in) {
  const uint32_t id = id_of(in);
  KernelAccess access{.kernel = id_of(in), .flags = static_cast<uint32_t>(in.varint())};
  const uint64_t count = in.varint();
  if (count > kMaxAccessAddresses || count > in.left()) return false;
  access.addresses.reserve(count);
  access.words.reserve(count);
  uint64_t address = 0;
  uint16_t word = 0;
  for (uint64_t i = 0; i < count; ++i) {
    address = undelta(in.varint(), address);
    word = static_cast<uint16_t>(word + in.varint());
    access.addresses.push_back(address);
    access.words.push_back(word);
  }
  if (in.ok()) definitions_.define_access(id, std::move(access));
  return in.ok();
}

RawDefinitions DefinitionReader::finish(RecordingInfo& info) {
  for (auto& [id, code] : raw_.codes) {
    code.name = definitions_.string(code_names_[id].name);
    code.file = definitions_.string(code_names_[id].file);
  }
  for (auto& [id, module] : raw_.modules) module.path = definitions_.string(module_paths_[id]);
  for (const auto& [thread, name] : threads_) {
    definitions_.define_thread(thread, definitions_.string(name));
  }
  for (const auto& [key, value] : metadata_) {
    apply_metadata(info, definitions_.string(key), definitions_.string(value));
  }
  return std::move(raw_);
}

}  // namespace vramtrack
