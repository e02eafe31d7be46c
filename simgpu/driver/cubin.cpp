#include "cubin.h"

#include <elf.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

namespace simgpu {
namespace {

// Attribute records: format, attribute, then two bytes of value or of the size that follows.
constexpr std::uint8_t kFormatSized = 4;
constexpr std::uint8_t kMaxThreads = 0x05;
constexpr std::uint8_t kFrameSize = 0x11;
constexpr std::uint8_t kKernelParameter = 0x17;
constexpr std::uint8_t kRegisterCount = 0x2f;
constexpr std::uint8_t kLargeKernelParameter = 0x45;  // of kernels with more than 4 KiB of them

template <class T>
T load(const unsigned char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// An image with everything in bounds: sections, names, symbols.
struct Image {
  std::vector<unsigned char> bytes;
  std::vector<Elf64_Shdr> sections;
  std::string_view names;

  // Both are checked by load_image.
  std::string_view name(std::size_t i) const { return names.data() + sections[i].sh_name; }
  const unsigned char* data(std::size_t i) const { return bytes.data() + sections[i].sh_offset; }
  bool has_data(std::size_t i) const { return sections[i].sh_type != SHT_NOBITS; }

  // A string table's text, empty where it does not end with a zero.
  std::string_view strings(std::size_t i) const {
    if (!has_data(i) || sections[i].sh_size == 0) return {};
    std::string_view text(reinterpret_cast<const char*>(data(i)), sections[i].sh_size);
    return text.back() == 0 ? text : std::string_view{};
  }
};

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

// The section table stands behind the sections, the program headers behind that: the further end
// of the two is the end of the image.
bool load_image(const void* start, Image& image) {
  std::vector<unsigned char> head;
  if (!copy_carefully(start, sizeof(Elf64_Ehdr), head)) return false;
  auto header = load<Elf64_Ehdr>(head.data());
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr) ||
      header.e_shoff == 0 || header.e_shoff > kMostBytes || header.e_phoff > kMostBytes ||
      header.e_shnum == 0 || header.e_shstrndx >= header.e_shnum)
    return false;
  std::uint64_t table_end = header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr);
  std::uint64_t end = std::max(table_end, header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr));
  if (!copy_carefully(start, end, image.bytes)) return false;
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    auto section = load<Elf64_Shdr>(image.bytes.data() + header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_NOBITS &&
        (section.sh_offset > end || section.sh_size > end - section.sh_offset))
      return false;
    image.sections.push_back(section);
  }
  image.names = image.strings(header.e_shstrndx);
  for (const Elf64_Shdr& section : image.sections)
    if (section.sh_name >= image.names.size()) return false;
  return true;
}

template <class Visit>
void for_each_attribute(const Image& image, std::size_t section, Visit visit) {
  if (!image.has_data(section)) return;
  const unsigned char* at = image.data(section);
  const unsigned char* end = at + image.sections[section].sh_size;
  while (end - at >= 4) {
    std::uint8_t format = at[0];
    std::uint8_t attribute = at[1];
    std::uint16_t value = load<std::uint16_t>(at + 2);
    at += 4;
    if (format != kFormatSized) continue;
    if (value > end - at) return;
    visit(attribute, at, value);
    at += value;
  }
}

void read_kernel_attributes(const Image& image, std::size_t section, KernelInfo& kernel) {
  kernel.has_parameters = true;
  for_each_attribute(
      image, section, [&](std::uint8_t attribute, const unsigned char* value, std::size_t size) {
        const bool large = attribute == kLargeKernelParameter;
        if ((attribute == kKernelParameter || large) && size >= 12) {
          std::size_t ordinal = load<std::uint16_t>(value + 4);
          if (ordinal >= 4096) return;
          if (kernel.parameters.size() <= ordinal) kernel.parameters.resize(ordinal + 1);
          const auto word = load<std::uint32_t>(value + 8);
          kernel.parameters[ordinal] = {load<std::uint16_t>(value + 6),
                                        large ? word & 0xffff : word >> 18};
        } else if (attribute == kMaxThreads && size >= 12) {
          kernel.max_threads = load<std::uint32_t>(value) * load<std::uint32_t>(value + 4) *
                               load<std::uint32_t>(value + 8);
        }
      });
}

bool strip(std::string_view& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  return true;
}

void read_symbols(const Image& image, std::size_t section, ImageInfo& info) {
  const Elf64_Shdr& header = image.sections[section];
  if (header.sh_link >= image.sections.size() || header.sh_entsize != sizeof(Elf64_Sym)) return;
  std::string_view names = image.strings(header.sh_link);
  std::vector<Elf64_Sym> symbols;
  for (std::size_t i = 0; i < header.sh_size / sizeof(Elf64_Sym); ++i) {
    symbols.push_back(load<Elf64_Sym>(image.data(section) + i * sizeof(Elf64_Sym)));
    if (symbols.back().st_name >= names.size()) return;
  }
  for (const Elf64_Sym& symbol : symbols)
    if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && symbol.st_size != 0)
      info.variables[names.data() + symbol.st_name].size = symbol.st_size;
  // Registers and frames stand in the file's own .nv.info, by symbol.
  for (std::size_t i = 0; i < image.sections.size(); ++i) {
    if (image.name(i) != ".nv.info") continue;
    for_each_attribute(
        image, i, [&](std::uint8_t attribute, const unsigned char* value, std::size_t size) {
          if ((attribute != kRegisterCount && attribute != kFrameSize) || size < 8) return;
          std::uint32_t symbol = load<std::uint32_t>(value);
          if (symbol >= symbols.size()) return;
          auto kernel = info.kernels.find(std::string_view(names.data() + symbols[symbol].st_name));
          if (kernel == info.kernels.end()) return;
          (attribute == kRegisterCount ? kernel->second.registers : kernel->second.local_bytes) =
              load<std::uint32_t>(value + 4);
        });
  }
}

// The name after ".entry" or the variable after ".global", up to what is no name.
std::string_view word_at(std::string_view text, std::size_t at) {
  while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) != 0) ++at;
  std::size_t end = at;
  while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 ||
                               text[end] == '_' || text[end] == '$' || text[end] == '%'))
    ++end;
  return text.substr(at, end - at);
}

// Of a PTX parameter "[.param] [.align N] .TYPE NAME[[COUNT]]", nothing where it is not understood.
std::optional<std::uint32_t> parameter_bytes(std::string_view text, std::uint32_t& align) {
  std::uint32_t element = 0, count = 1;
  align = 0;
  for (std::size_t at = text.find('.'); at != std::string_view::npos; at = text.find('.', at + 1)) {
    const std::string_view word = word_at(text, at + 1);
    if (word == "align") {
      std::string_view number = word_at(text, at + 1 + word.size());
      std::from_chars(number.data(), number.data() + number.size(), align);
    } else if (word.size() >= 2 && std::string_view("bsuf").find(word[0]) != word.npos) {
      std::uint32_t bits = 0;
      std::from_chars(word.data() + 1, word.data() + word.size(), bits);
      if (bits % 8 == 0 && bits <= 128) element = bits / 8;
    }
  }
  if (const std::size_t bracket = text.find('['); bracket != std::string_view::npos) {
    const std::string_view number = word_at(text, bracket + 1);
    std::from_chars(number.data(), number.data() + number.size(), count);
  }
  if (element == 0 || count > 32768) return std::nullopt;
  if (align == 0) align = element;
  return element * count;
}

// The list behind an entry's name. Parameters stand one after the other, each aligned.
void read_ptx_parameters(std::string_view text, std::size_t at, KernelInfo& kernel) {
  while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) != 0) ++at;
  if (at >= text.size() || text[at] != '(') {
    kernel.has_parameters = true;  // none
    return;
  }
  const std::size_t end = text.find(')', at);
  if (end == std::string_view::npos) return;
  std::uint32_t offset = 0;
  for (std::string_view list = text.substr(at + 1, end - at - 1); !list.empty();) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view one = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    if (one.find('.') == std::string_view::npos) continue;
    std::uint32_t align = 0;
    const auto bytes = parameter_bytes(one, align);
    if (!bytes || align == 0 || align > 128) return kernel.parameters.clear();
    offset = (offset + align - 1) / align * align;
    kernel.parameters.push_back({offset, *bytes});
    offset += *bytes;
  }
  kernel.has_parameters = true;
}

}  // namespace

bool copy_carefully(const void* from, std::size_t size, std::vector<unsigned char>& to) {
  to.resize(size);
  iovec local{to.data(), size};
  iovec remote{const_cast<void*>(from), size};
  ssize_t copied = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  if (copied < 0 && (errno == ENOSYS || errno == EPERM)) {
    std::memcpy(to.data(), from, size);  // where a sandbox forbids it
    return true;
  }
  return copied == static_cast<ssize_t>(size);
}

ImageKind image_kind(const void* image) {
  const auto* bytes = static_cast<const unsigned char*>(image);
  std::uint32_t magic = load<std::uint32_t>(bytes);
  if (std::memcmp(bytes, ELFMAG, SELFMAG) == 0) return ImageKind::kElf;
  // fatbinary_section.h: the wrapper that nvcc's registration passes, and the container behind it.
  if (magic == 0x466243b1 || magic == 0xba55ed50) return ImageKind::kFatBinary;
  const char* text = static_cast<const char*>(image);
  std::size_t at = 0;
  while (at < 64 && text[at] != 0 && std::isspace(static_cast<unsigned char>(text[at])) != 0) ++at;
  if (text[at] == '.' || std::strncmp(text + at, "//", 2) == 0 ||
      std::strncmp(text + at, "/*", 2) == 0)
    return ImageKind::kPtx;
  return ImageKind::kInvalid;
}

ImageInfo read_elf(const void* start) {
  ImageInfo info;
  Image image;
  if (!load_image(start, image)) return info;
  info.readable = true;
  for (std::size_t i = 0; i < image.sections.size(); ++i) {
    std::string_view name = image.name(i);
    if (strip(name, ".nv.info.")) read_kernel_attributes(image, i, info.kernels[std::string(name)]);
  }
  for (std::size_t i = 0; i < image.sections.size(); ++i) {
    std::string_view name = image.name(i);
    auto size = static_cast<std::uint32_t>(image.sections[i].sh_size);
    if (strip(name, ".nv.shared.")) {
      if (auto kernel = info.kernels.find(name); kernel != info.kernels.end())
        kernel->second.shared_bytes = size;
    } else if (image.sections[i].sh_type == SHT_SYMTAB) {
      read_symbols(image, i, info);
    }
  }
  return info;
}

ImageInfo read_ptx(const char* start) {
  ImageInfo info;
  std::string_view text = start;
  for (std::size_t at = text.find(".entry"); at != std::string_view::npos;
       at = text.find(".entry", at + 6)) {
    std::string_view name = word_at(text, at + 6);
    if (name.empty()) continue;
    const auto behind = static_cast<std::size_t>(name.data() - text.data()) + name.size();
    read_ptx_parameters(text, behind, info.kernels[std::string(name)]);
  }
  // Sizes of PTX variables would need its type system: they stay unknown.
  info.readable = !info.kernels.empty();
  return info;
}

}  // namespace simgpu
