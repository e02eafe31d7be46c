#include "symbols/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fmt/format.h>

#include "symbols/dwarf_lines.h"
#include "symbols/elf_handle.h"
#include "symbols/symbol_index.h"

namespace vramtrack {
namespace {

// The file that distributions put stripped debug information into.
std::string debug_path(const std::string& build_id) {
  if (build_id.size() < 2) return {};
  std::string hex;
  for (const char byte : build_id) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return "/usr/lib/debug/.build-id/" + hex.substr(0, 2) + "/" + hex.substr(2) + ".debug";
}

std::string build_id_of(Elf* elf) {
  const void* bytes = nullptr;
  const ssize_t size = dwelf_elf_gnu_build_id(elf, &bytes);
  return size > 0 ? std::string(static_cast<const char*>(bytes), static_cast<size_t>(size))
                  : std::string();
}

}  // namespace

struct ElfFile::Parts {
  explicit Parts(const std::string& path) : main(path) {}

  ElfHandle main;
  std::unique_ptr<ElfHandle> debug;
  SymbolIndex symbols;
  std::unique_ptr<DwarfLines> lines;
};

ElfFile::ElfFile(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {
}
ElfFile::~ElfFile() = default;

std::unique_ptr<ElfFile> ElfFile::open(const std::string& path, const std::string& build_id) {
  auto parts = std::make_unique<Parts>(path);
  Elf* elf = parts->main.get();
  if (elf == nullptr) return nullptr;
  const std::string own_id = build_id_of(elf);
  if (!build_id.empty() && own_id != build_id) return nullptr;

  parts->symbols.add(elf);
  parts->lines = std::make_unique<DwarfLines>(elf);
  if (parts->lines->empty() && !own_id.empty()) {
    parts->debug = std::make_unique<ElfHandle>(debug_path(own_id));
    if (Elf* debug = parts->debug->get(); debug != nullptr) {
      parts->symbols.add(debug);
      parts->lines = std::make_unique<DwarfLines>(debug);
    }
  }
  parts->symbols.finish();
  return std::unique_ptr<ElfFile>(new ElfFile(std::move(parts)));
}

std::vector<Frame> ElfFile::frames(uint64_t return_address) const {
  const uint64_t call = return_address - 1;
  std::vector<Frame> frames = parts_->lines->frames(call);
  const std::string* name = parts_->symbols.find(call);
  if (frames.empty()) {
    if (name == nullptr) return {};
    frames.emplace_back();
  }
  Frame& function = frames.back();
  if (function.function.empty() || name != nullptr)
    function.function = name == nullptr ? "??" : demangle(*name);
  return frames;
}

}  // namespace vramtrack
