// The mapped files of the process: which one an address lies in, and what symbols they export.
//
// The list only grows; entries of closed libraries are marked and kept, because other threads may
// be reading them. It is filled by dl_iterate_phdr, which is safe where dlsym and dladdr are not:
// it does not wait for the lock that a thread holds while it runs the constructors of a library.
#ifndef VRAMTRACK_TRACER_STACK_MODULES_H
#define VRAMTRACK_TRACER_STACK_MODULES_H

#include <link.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vramtrack {

struct Module {
  uintptr_t base;   // load bias
  uintptr_t begin;  // of all its segments
  uintptr_t end;
  const ElfW(Dyn) * dynamic;
  uintptr_t eh_frame_hdr;  // 0: none
  const char* path;        // kept for ever
  uint8_t build_id[32];
  uint32_t build_id_bytes;
  std::atomic<uint32_t> id;  // of its definition in the trace, 0: not written yet
  std::atomic<bool> mapped;  // false once it was closed
};

struct Symbol {
  uintptr_t address = 0;  // 0: not found
  size_t size = 0;
};

// Looks for libraries that came or went since the last call; cheap where none did. Returns false
// where another thread is at it.
bool modules_refresh();

// The module that `address` lies in, nullptr where the list has none.
Module* module_at(uintptr_t address);

// A symbol that any mapped module defines, through its own hash table.
Symbol find_exported(const char* name);

// Changes whenever a library was closed: addresses may mean something else from then on.
uint32_t modules_epoch();

// Writes the module's definition once and returns its id.
uint32_t module_id(Module& module);

// The next id of the counter that modules and stacks share (raw_definitions.h tells why).
uint32_t next_definition_id();

void modules_after_fork_child();

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_STACK_MODULES_H
