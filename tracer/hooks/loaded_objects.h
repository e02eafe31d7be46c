// The libraries that are loaded at this moment, and what they export, read from their dynamic
// sections. Used where dlsym cannot be: it sees only the scope of its caller, while cudart, libcuda
// and c10 arrive late and often RTLD_LOCAL, and it deadlocks inside constructors that wait for
// other threads. dl_iterate_phdr does neither.
#ifndef VRAMTRACK_TRACER_HOOKS_LOADED_OBJECTS_H
#define VRAMTRACK_TRACER_HOOKS_LOADED_OBJECTS_H

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <string_view>

namespace vramtrack {

// Valid inside the visit only: afterwards it may be unloaded.
class LoadedObject {
 public:
  explicit LoadedObject(const dl_phdr_info& info);

  // Its SONAME; the last part of its path where it has none. Empty for the program itself.
  [[nodiscard]] std::string_view name() const;
  [[nodiscard]] std::string_view path() const { return path_; }
  [[nodiscard]] bool contains(const void* address) const;
  [[nodiscard]] uintptr_t begin() const { return begin_; }
  [[nodiscard]] uintptr_t end() const { return end_; }
  [[nodiscard]] bool needs(std::string_view soname) const;
  // The address of an exported function, nullptr where it exports none of that name.
  [[nodiscard]] void* find(std::string_view symbol) const;
  [[nodiscard]] bool exports_prefix(std::string_view prefix) const;

 private:
  [[nodiscard]] const char* string(uint64_t offset) const { return strings_ + offset; }
  [[nodiscard]] void* address_of(const ElfW(Sym) & symbol) const;
  [[nodiscard]] uint32_t symbol_count() const;

  uintptr_t base_ = 0;
  uintptr_t begin_ = 0;
  uintptr_t end_ = 0;
  std::string_view path_;
  const ElfW(Dyn) * dynamic_ = nullptr;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* strings_ = nullptr;
  const uint32_t* gnu_hash_ = nullptr;
  const uint32_t* sysv_hash_ = nullptr;
  const char* soname_ = nullptr;
};

// Calls `visit` for each object in the order of the loader's list until it returns false. The
// loader's lock is held meanwhile: no dlopen, no dlsym in it.
template <class Visit>
void for_each_loaded_object(Visit visit) {
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        const LoadedObject object(*info);
        return (*static_cast<Visit*>(data))(object) ? 0 : 1;
      },
      &visit);
}

// Whether the address lies in this library.
bool is_ours(const void* address);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_HOOKS_LOADED_OBJECTS_H
