#include "witness.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "simgpu.h"

namespace victims {
namespace {

thread_local Frame* innermost = nullptr;
int watched_device = 0;

const char* base_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

// One write: lines of several threads and processes do not mix.
void write_line(const std::string& line) {
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t n = write(STDOUT_FILENO, line.data() + done, line.size() - done);
    if (n <= 0) _exit(3);
    done += static_cast<size_t>(n);
  }
}

void append(std::string& out, const char* name, uint64_t value) {
  out += "\"";
  out += name;
  out += "\":" + std::to_string(value) + ",";
}

// The simulated GPU's own totals, or an empty string on a real one.
std::string usage_as_json() {
  using Usage = decltype(&simgpu_get_usage);
  static const Usage get_usage = [] {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return driver == nullptr ? nullptr : reinterpret_cast<Usage>(dlsym(driver, "simgpu_get_usage"));
  }();
  simgpu_usage usage{};
  if (get_usage == nullptr || get_usage(watched_device, &usage) != 0) return "";
  std::string out = ",\"usage\":{";
  append(out, "used", usage.used);
  append(out, "device", usage.device);
  append(out, "pool_reserved", usage.pool_reserved);
  append(out, "pool_used", usage.pool_used);
  append(out, "vmm", usage.vmm);
  append(out, "array", usage.array);
  append(out, "graph", usage.graph);
  append(out, "module", usage.module);
  append(out, "context", usage.context);
  append(out, "library", usage.library);
  append(out, "managed", usage.managed);
  append(out, "pinned", usage.pinned);
  append(out, "registered", usage.registered);
  out.back() = '}';
  return out;
}

}  // namespace

std::string frames_as_json() {
  std::string out = "[";
  for (const Frame* frame = innermost; frame != nullptr; frame = frame->outer_) {
    if (out.size() > 1) out += ",";
    out += "[\"" + std::string(base_name(frame->file_)) + "\"," + std::to_string(frame->line_) +
           ",\"" + frame->function_ + "\"]";
  }
  return out + "]";
}

Frame::Frame(const char* file, int line, const char* function)
    : outer_(innermost), file_(file), line_(line), function_(function) {
  innermost = this;
}

Frame::~Frame() {
  innermost = outer_;
}

std::string api_name(const char* spelling) {
  constexpr char kDriver[] = "DRIVER_CALL(";
  if (std::strncmp(spelling, kDriver, sizeof kDriver - 1) == 0) spelling += sizeof kDriver - 1;
  return std::string(spelling, std::strcspn(spelling, "(, "));
}

void watch_device(int device) {
  watched_device = device;
}

void say(const Event& event) {
  char address[32];
  std::snprintf(address, sizeof address, "%p", event.address);
  write_line("{\"event\":\"" + std::string(event.event) + "\",\"api\":\"" + api_name(event.api) +
             "\",\"kind\":\"" + event.kind + "\",\"address\":\"" +
             (event.address != nullptr ? address : "0x0") + "\",\"bytes\":" +
             std::to_string(event.bytes) + ",\"result\":" + std::to_string(event.result) +
             ",\"thread\":" + std::to_string(syscall(SYS_gettid)) +
             ",\"process\":" + std::to_string(getpid()) + ",\"frames\":" + frames_as_json() +
             usage_as_json() + "}\n");
}

void say_raw(const char* event, const std::string& fields) {
  write_line("{\"event\":\"" + std::string(event) + "\"" + (fields.empty() ? "" : "," + fields) +
             usage_as_json() + "}\n");
}

void give_up(const char* file, int line, const char* spelling, int result) {
  std::fprintf(stderr, "victim: %s:%d: %s gave %d\n", base_name(file), line, spelling, result);
  std::exit(1);
}

}  // namespace victims
