// A preload library for the helper's tests: stacks and helper with a recorder that writes what it
// is told, as lines of text, to the file that HELPER_TEST_LOG names. Stands in for the shim.
#include <unistd.h>
#include <vramtrack/annotate.h>
#include <vramtrack/trace_codec.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "python/helper.h"
#include "record/guard.h"
#include "record/recorder.h"
#include "stack/stack.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace vramtrack {

thread_local int t_inside = 0;

namespace {

std::mutex g_mutex;
std::map<uint32_t, std::string> g_texts;
std::atomic<bool> g_tracing{false};

void log_line(const std::string& line) {
  const std::lock_guard lock(g_mutex);
  const char* path = std::getenv("HELPER_TEST_LOG");
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "a");
  if (file == nullptr) return;
  std::fprintf(file, "%s\n", line.c_str());
  std::fclose(file);
}

}  // namespace

uint32_t intern_string(std::string_view text) {
  const std::lock_guard lock(g_mutex);
  const auto id = static_cast<uint32_t>(g_texts.size() + 1);
  g_texts[id] = text;
  return id;
}

uint32_t reserve_string() {
  return intern_string("");
}

bool define_string(uint32_t id, std::string_view text) {
  const std::lock_guard lock(g_mutex);
  g_texts[id] = text;
  return true;
}

void record(Event& event, uint32_t /*kernel*/) {
  if (event.kind != EventKind::holder) return;
  char head[64];
  std::snprintf(head, sizeof head, "holder %#lx %lu ", event.address, event.size);
  log_line(head + g_texts[event.text]);
}

bool write_definition(const uint8_t* record, size_t bytes) {
  Reader in(record, bytes);
  if (static_cast<EventKind>(in.byte()) != EventKind::define_metadata) return true;
  const auto key = static_cast<uint32_t>(in.varint());
  const auto value = static_cast<uint32_t>(in.varint());
  log_line("metadata " + g_texts[key] + " " + g_texts[value]);
  return true;
}

bool tracing() {
  return g_tracing;
}
uint32_t recording_epoch() {
  return 1;
}

}  // namespace vramtrack

using vramtrack::log_line;

EXPORTED void vramtrack_mark(const char* name) {
  log_line(std::string("mark ") + name);
}
EXPORTED void vramtrack_push(const char* name) {
  log_line(std::string("push ") + name);
}
EXPORTED void vramtrack_pop() {
  log_line("pop");
}
EXPORTED void vramtrack_step(uint64_t n) {
  log_line("step " + std::to_string(n));
}
EXPORTED void vramtrack_label(const void* pointer, size_t bytes, const char* name) {
  char line[512];
  std::snprintf(line, sizeof line, "label %p %zu %s", pointer, bytes, name);
  log_line(line);
}

// What a traced allocation is to the helper.
EXPORTED void pretend_allocations(int count) {
  vramtrack::g_tracing = true;
  for (int i = 0; i < count; ++i) vramtrack::capture_stack();
}

// The module that the last of them was attributed to, and what is known of its name by now.
EXPORTED uint32_t attributed_module() {
  return vramtrack::captured_module();
}
EXPORTED const char* text_of(uint32_t id) {
  const std::lock_guard lock(vramtrack::g_mutex);
  return vramtrack::g_texts[id].c_str();
}

EXPORTED __attribute__((constructor)) void start() {
  vramtrack::stacks_initialize();
  vramtrack::python_helper_start_if_possible();
}
