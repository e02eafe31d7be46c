// An open ELF file of libelf, closed with its owner.
#ifndef VRAMTRACK_ANALYZER_SYMBOLS_ELF_HANDLE_H
#define VRAMTRACK_ANALYZER_SYMBOLS_ELF_HANDLE_H

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <unistd.h>

#include <string>

namespace vramtrack {

class ElfHandle {
 public:
  explicit ElfHandle(const std::string& path) {
    static const unsigned version = elf_version(EV_CURRENT);
    descriptor_ = version == EV_NONE ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ >= 0) elf_ = elf_begin(descriptor_, ELF_C_READ_MMAP, nullptr);
    if (elf_ != nullptr && elf_kind(elf_) != ELF_K_ELF) {
      elf_end(elf_);
      elf_ = nullptr;
    }
  }
  ~ElfHandle() {
    if (elf_ != nullptr) elf_end(elf_);
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  ElfHandle(const ElfHandle&) = delete;
  ElfHandle& operator=(const ElfHandle&) = delete;

  [[nodiscard]] Elf* get() const { return elf_; }  // nullptr: not an ELF file

 private:
  int descriptor_ = -1;
  Elf* elf_ = nullptr;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_SYMBOLS_ELF_HANDLE_H
