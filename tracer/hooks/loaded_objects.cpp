#include "hooks/loaded_objects.h"
#include "record/slice.h"

#include <cstring>

namespace vramtrack {
namespace {

uint32_t gnu_hash(std::string_view name) {
  uint32_t h = 5381;
  for (const char c : name) h = h * 33 + static_cast<unsigned char>(c);
  return h;
}

uint32_t sysv_hash(std::string_view name) {
  uint32_t h = 0;
  for (const char c : name) {
    h = (h << 4) + static_cast<unsigned char>(c);
    const uint32_t high = h & 0xf0000000;
    h = (h ^ (high >> 24)) & ~high;
  }
  return h;
}

extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start[];
extern "C" __attribute__((visibility("hidden"))) const char _end[];

}  // namespace

bool is_ours(const void* address) {
  return address >= static_cast<const void*>(__ehdr_start) &&
         address < static_cast<const void*>(_end);
}

LoadedObject::LoadedObject(const dl_phdr_info& info)
    : base_(info.dlpi_addr), path_(info.dlpi_name != nullptr ? info.dlpi_name : "") {
  begin_ = ~uintptr_t{0};
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type == PT_DYNAMIC)
      dynamic_ = reinterpret_cast<const ElfW(Dyn)*>(base_ + segment.p_vaddr);
    if (segment.p_type != PT_LOAD) continue;
    const uintptr_t from = base_ + segment.p_vaddr;
    if (from < begin_) begin_ = from;
    if (from + segment.p_memsz > end_) end_ = from + segment.p_memsz;
  }
  if (dynamic_ == nullptr) return;
  uint64_t soname = 0;
  // The loader has relocated these addresses, but not those of the kernel's own object.
  const auto pointer = [this](uint64_t value) {
    return reinterpret_cast<const void*>(value < base_ ? base_ + value : value);
  };
  for (const ElfW(Dyn)* entry = dynamic_; entry->d_tag != DT_NULL; ++entry) {
    const uint64_t value = entry->d_un.d_val;
    if (entry->d_tag == DT_SYMTAB) symbols_ = static_cast<const ElfW(Sym)*>(pointer(value));
    if (entry->d_tag == DT_STRTAB) strings_ = static_cast<const char*>(pointer(value));
    if (entry->d_tag == DT_GNU_HASH) gnu_hash_ = static_cast<const uint32_t*>(pointer(value));
    if (entry->d_tag == DT_HASH) sysv_hash_ = static_cast<const uint32_t*>(pointer(value));
    if (entry->d_tag == DT_SONAME) soname = value;
  }
  if (soname != 0 && strings_ != nullptr) soname_ = string(soname);
}

std::string_view LoadedObject::name() const {
  if (soname_ != nullptr) return soname_;
  const size_t slash = path_.rfind('/');
  return slash == std::string_view::npos ? path_ : slice(path_, slash + 1);
}

bool LoadedObject::contains(const void* address) const {
  const auto a = reinterpret_cast<uintptr_t>(address);
  return a >= begin_ && a < end_;
}

bool LoadedObject::needs(std::string_view soname) const {
  if (dynamic_ == nullptr || strings_ == nullptr) return false;
  for (const ElfW(Dyn)* entry = dynamic_; entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_NEEDED && soname == string(entry->d_un.d_val)) return true;
  return false;
}

void* LoadedObject::address_of(const ElfW(Sym) & symbol) const {
  const unsigned type = ELF64_ST_TYPE(symbol.st_info);
  const unsigned binding = ELF64_ST_BIND(symbol.st_info);
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0 || type != STT_FUNC ||
      (binding != STB_GLOBAL && binding != STB_WEAK))
    return nullptr;
  return reinterpret_cast<void*>(base_ + symbol.st_value);
}

void* LoadedObject::find(std::string_view name) const {
  if (symbols_ == nullptr || strings_ == nullptr) return nullptr;
  const auto matches = [&](uint32_t index) -> void* {
    const ElfW(Sym)& symbol = symbols_[index];
    return name == string(symbol.st_name) ? address_of(symbol) : nullptr;
  };
  if (gnu_hash_ != nullptr) {
    // bucket count, first hashed symbol, words of the Bloom filter, its shift; filter, buckets,
    // chains
    const uint32_t buckets = gnu_hash_[0];
    const uint32_t first = gnu_hash_[1];
    const uint32_t words = gnu_hash_[2];
    const uint32_t shift = gnu_hash_[3];
    if (buckets == 0 || words == 0) return nullptr;
    const auto* filter = reinterpret_cast<const ElfW(Addr)*>(gnu_hash_ + 4);
    const auto* bucket = reinterpret_cast<const uint32_t*>(filter + words);
    const uint32_t* chain = bucket + buckets;
    const uint32_t hash = gnu_hash(name);
    const ElfW(Addr) word = filter[(hash / 64) % words];
    if (((word >> (hash % 64)) & (word >> ((hash >> shift) % 64)) & 1) == 0) return nullptr;
    uint32_t index = bucket[hash % buckets];
    if (index < first) return nullptr;
    for (;; ++index) {
      const uint32_t entry = chain[index - first];
      if ((entry | 1) == (hash | 1))
        if (void* address = matches(index)) return address;
      if ((entry & 1) != 0) return nullptr;
    }
  }
  if (sysv_hash_ == nullptr || sysv_hash_[0] == 0) return nullptr;
  const uint32_t* bucket = sysv_hash_ + 2;
  const uint32_t* chain = bucket + sysv_hash_[0];
  for (uint32_t i = bucket[sysv_hash(name) % sysv_hash_[0]]; i != 0; i = chain[i])
    if (void* address = matches(i)) return address;
  return nullptr;
}

uint32_t LoadedObject::symbol_count() const {
  if (sysv_hash_ != nullptr) return sysv_hash_[1];
  if (gnu_hash_ == nullptr) return 0;
  const uint32_t buckets = gnu_hash_[0];
  const uint32_t first = gnu_hash_[1];
  const auto* filter = reinterpret_cast<const ElfW(Addr)*>(gnu_hash_ + 4);
  const auto* bucket = reinterpret_cast<const uint32_t*>(filter + gnu_hash_[2]);
  const uint32_t* chain = bucket + buckets;
  uint32_t last = 0;
  for (uint32_t b = 0; b < buckets; ++b)
    if (bucket[b] > last) last = bucket[b];
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) ++last;
  return last + 1;
}

bool LoadedObject::exports_prefix(std::string_view prefix) const {
  if (symbols_ == nullptr || strings_ == nullptr) return false;
  const uint32_t count = symbol_count();
  for (uint32_t i = 0; i < count; ++i)
    if (address_of(symbols_[i]) != nullptr &&
        std::strncmp(string(symbols_[i].st_name), prefix.data(), prefix.size()) == 0)
      return true;
  return false;
}

}  // namespace vramtrack
