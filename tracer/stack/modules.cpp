#include "stack/modules.h"

#include <elf.h>
#include <unistd.h>
#include <vramtrack/trace_codec.h>

#include <cstring>
#include <string_view>

#include "record/pages.h"
#include "record/recorder.h"

namespace vramtrack {
namespace {

constexpr size_t kMaxModules = 8192;
constexpr size_t kMaxPath = 4096;

Module* g_modules = nullptr;
std::atomic<size_t> g_count{0};
std::atomic<uint32_t> g_next_id{1};
std::atomic<uint32_t> g_epoch{0};
std::atomic<bool> g_refreshing{false};
unsigned long long g_adds = 0;  // of the loader, at the last refresh
unsigned long long g_subs = 0;

// Paths are packed into pages that are never freed. Only the refreshing thread allocates.
const char* keep_path(const char* path) {
  static char* pages = nullptr;
  static size_t left = 0;
  const size_t bytes = strnlen(path, kMaxPath - 1) + 1;
  if (bytes > left) {
    constexpr size_t kPages = size_t{256} * 1024;
    pages = static_cast<char*>(map_pages(kPages));
    left = pages == nullptr ? 0 : kPages;
    if (pages == nullptr) return "";
  }
  char* kept = pages;
  std::memcpy(kept, path, bytes - 1);
  kept[bytes - 1] = '\0';
  pages += bytes;
  left -= bytes;
  return kept;
}

void read_build_id(Module& module, uintptr_t note, size_t bytes) {
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, reinterpret_cast<const void*>(note), sizeof header);
    const size_t name = (header.n_namesz + 3U) & ~size_t{3};
    const size_t total = sizeof header + name + ((header.n_descsz + 3U) & ~size_t{3});
    if (total > bytes) return;
    const auto* at = reinterpret_cast<const char*>(note + sizeof header);
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
        std::memcmp(at, "GNU", 4) == 0 && header.n_descsz <= sizeof module.build_id) {
      std::memcpy(module.build_id, at + name, header.n_descsz);
      module.build_id_bytes = header.n_descsz;
      return;
    }
    note += total;
    bytes -= total;
  }
}

void fill(Module& module, const dl_phdr_info& info) {
  module.base = info.dlpi_addr;
  module.begin = UINTPTR_MAX;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    const uintptr_t at = info.dlpi_addr + segment.p_vaddr;
    switch (segment.p_type) {
      case PT_LOAD:
        if (at < module.begin) module.begin = at;
        if (at + segment.p_memsz > module.end) module.end = at + segment.p_memsz;
        break;
      case PT_DYNAMIC:
        module.dynamic = reinterpret_cast<const ElfW(Dyn)*>(at);
        break;
      case PT_GNU_EH_FRAME:
        module.eh_frame_hdr = at;
        break;
      case PT_NOTE:
        read_build_id(module, at, segment.p_memsz);
        break;
      default:
        break;
    }
  }
  char path[kMaxPath];
  if (info.dlpi_name != nullptr && info.dlpi_name[0] != '\0') {
    module.path = keep_path(info.dlpi_name);
  } else {
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    module.path = keep_path(path);
  }
}

struct Refresh {
  bool first = true;
  bool unchanged = false;
  bool seen[kMaxModules] = {};
};

int visit(dl_phdr_info* info, size_t, void* argument) {
  auto& refresh = *static_cast<Refresh*>(argument);
  if (refresh.first) {
    refresh.first = false;
    if (info->dlpi_adds == g_adds && info->dlpi_subs == g_subs) {
      refresh.unchanged = true;
      return 1;
    }
    g_adds = info->dlpi_adds;
    g_subs = info->dlpi_subs;
  }
  uintptr_t begin = UINTPTR_MAX;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_LOAD &&
        info->dlpi_addr + info->dlpi_phdr[i].p_vaddr < begin)
      begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

  const size_t count = g_count.load(std::memory_order_relaxed);
  for (size_t i = 0; i < count; ++i) {
    const Module& known = g_modules[i];
    if (!known.mapped.load(std::memory_order_relaxed) || known.begin != begin) continue;
    // Same place: the same library, unless another was mapped exactly over it in the meantime.
    if (info->dlpi_name == nullptr || info->dlpi_name[0] == '\0' ||
        std::strcmp(known.path, info->dlpi_name) == 0) {
      refresh.seen[i] = true;
      return 0;
    }
  }
  if (count == kMaxModules || begin == UINTPTR_MAX) return 0;
  Module& fresh = g_modules[count];
  fill(fresh, *info);
  fresh.mapped.store(true, std::memory_order_relaxed);
  refresh.seen[count] = true;
  g_count.store(count + 1, std::memory_order_release);
  return 0;
}

// The dynamic section's pointers; glibc relocates them in place except for the vdso.
template <typename T>
const T* dynamic_pointer(const Module& module, ElfW(Addr) value) {
  return reinterpret_cast<const T*>(value < module.base ? module.base + value : value);
}

uint32_t gnu_hash(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<uint8_t>(*name);
  return hash;
}

Symbol find_in(const Module& module, const char* name, uint32_t hash) {
  const ElfW(Sym)* symbols = nullptr;
  const char* strings = nullptr;
  const uint32_t* table = nullptr;
  if (module.dynamic == nullptr) return {};
  for (const ElfW(Dyn)* entry = module.dynamic; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB)
      symbols = dynamic_pointer<ElfW(Sym)>(module, entry->d_un.d_ptr);
    else if (entry->d_tag == DT_STRTAB)
      strings = dynamic_pointer<char>(module, entry->d_un.d_ptr);
    else if (entry->d_tag == DT_GNU_HASH)
      table = dynamic_pointer<uint32_t>(module, entry->d_un.d_ptr);
  }
  if (symbols == nullptr || strings == nullptr || table == nullptr) return {};

  const uint32_t buckets = table[0];
  const uint32_t first = table[1];
  const uint32_t bloom_words = table[2];
  if (buckets == 0 || bloom_words == 0) return {};
  const auto* bloom = reinterpret_cast<const uint64_t*>(table + 4);
  const auto* bucket = reinterpret_cast<const uint32_t*>(bloom + bloom_words);
  const uint32_t* chain = bucket + buckets;
  const uint64_t word = bloom[hash / 64 % bloom_words];
  if ((word >> (hash % 64) & word >> ((hash >> table[3]) % 64) & 1) == 0) return {};
  uint32_t at = bucket[hash % buckets];
  if (at < first) return {};
  for (;; ++at) {
    const uint32_t entry = chain[at - first];
    if (((entry ^ hash) & ~1U) == 0 && symbols[at].st_shndx != SHN_UNDEF &&
        std::strcmp(strings + symbols[at].st_name, name) == 0)
      return Symbol{module.base + symbols[at].st_value, symbols[at].st_size};
    if ((entry & 1) != 0) return {};
  }
}

}  // namespace

bool modules_refresh() {
  if (g_refreshing.exchange(true, std::memory_order_acquire)) return false;
  if (g_modules == nullptr) {
    g_modules = static_cast<Module*>(map_pages(kMaxModules * sizeof(Module)));
  }
  if (g_modules != nullptr) {
    Refresh refresh;
    dl_iterate_phdr(visit, &refresh);
    bool closed = false;
    const size_t count = g_count.load(std::memory_order_relaxed);
    for (size_t i = 0; i < count && !refresh.unchanged; ++i) {
      if (refresh.seen[i] || !g_modules[i].mapped.load(std::memory_order_relaxed)) continue;
      g_modules[i].mapped.store(false, std::memory_order_release);
      closed = true;
    }
    if (closed) g_epoch.fetch_add(1, std::memory_order_release);
  }
  g_refreshing.store(false, std::memory_order_release);
  return true;
}

Module* module_at(uintptr_t address) {
  // Newest first; a hundred or two, asked only for addresses that were not seen before.
  for (size_t i = g_count.load(std::memory_order_acquire); i-- > 0;) {
    Module& module = g_modules[i];
    if (address >= module.begin && address < module.end &&
        module.mapped.load(std::memory_order_relaxed))
      return &module;
  }
  return nullptr;
}

Symbol find_exported(const char* name) {
  const uint32_t hash = gnu_hash(name);
  const size_t count = g_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) {
    if (!g_modules[i].mapped.load(std::memory_order_relaxed)) continue;
    const Symbol symbol = find_in(g_modules[i], name, hash);
    if (symbol.address != 0) return symbol;
  }
  return {};
}

uint32_t modules_epoch() {
  return g_epoch.load(std::memory_order_acquire);
}

uint32_t next_definition_id() {
  return g_next_id.fetch_add(1, std::memory_order_relaxed);
}

uint32_t module_id(Module& module) {
  uint32_t id = module.id.load(std::memory_order_acquire);
  if (id != 0) return id;
  const uint32_t fresh = next_definition_id();
  if (!module.id.compare_exchange_strong(id, fresh)) return id;

  uint8_t record[1 + 7 * kMaxVarintBytes + sizeof module.build_id];
  Writer writer(record);
  writer.byte(static_cast<uint8_t>(EventKind::define_module));
  writer.varint(fresh);
  writer.varint(module.base);
  writer.varint(module.begin);
  writer.varint(module.end);
  writer.varint(intern_string(std::string_view(module.path, std::strlen(module.path))));
  writer.varint(module.build_id_bytes);
  writer.bytes(module.build_id, module.build_id_bytes);
  if (write_definition(record, writer.size())) return fresh;
  module.id.store(0, std::memory_order_release);
  return 0;
}

void modules_after_fork_child() {
  g_refreshing.store(false, std::memory_order_relaxed);
  g_next_id.store(1, std::memory_order_relaxed);
  const size_t count = g_count.load(std::memory_order_relaxed);
  for (size_t i = 0; i < count; ++i) g_modules[i].id.store(0, std::memory_order_relaxed);
}

}  // namespace vramtrack
