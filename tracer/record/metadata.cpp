#include "record/metadata.h"

#include <unistd.h>
#include <vramtrack/trace_codec.h>

#include <cstdlib>

#include "record/config.h"
#include "record/file_name.h"
#include "record/recorder.h"
#include "record/slice.h"
#include "record/text.h"

namespace vramtrack {
namespace {

constexpr size_t kCapacity = size_t{256} * 1024;
constexpr size_t kLongestArgument = 4096;

constinit char g_json[kCapacity] = {};

// Variables that say which part of a job this is, or change how memory is used.
constexpr const char* kVariables[] = {
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "SLURM_JOB_ID",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NTASKS",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_MODULE_LOADING",
    "CUDA_LAUNCH_BLOCKING",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUBLASLT_WORKSPACE_SIZE",
    "NVIDIA_VISIBLE_DEVICES",
    "NCCL_CUMEM_ENABLE",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "LD_PRELOAD",
    "SIMGPU",
    "SIMGPU_EVENTS",
    "SIMGPU_LIBRARY_MIB",
    "SIMGPU_CONTEXT_MIB",
};

void add_link(Text& json, const char* key, const char* link) {
  char target[4096];
  const ssize_t size = readlink(link, target, sizeof target);
  if (size <= 0) return;
  json.add(",").add_json(key).add(":").add_json({target, static_cast<size_t>(size)});
}

void add_command(Text& json) {
  std::string_view rest = command_line();
  json.add(",\"command\":[");
  bool first = true;
  while (!rest.empty() && json.size() < kCapacity / 2) {
    const size_t end = rest.find('\0');
    if (!first) json.add(",");
    first = false;
    json.add_json(slice(slice(rest, 0, end), 0, kLongestArgument));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  json.add("]");
}

void add_environment(Text& json) {
  json.add(",\"environment\":{");
  bool first = true;
  for (const char* name : kVariables) {
    const char* value = std::getenv(name);
    if (value == nullptr) continue;
    if (!first) json.add(",");
    first = false;
    json.add_json(name).add(":").add_json(slice(std::string_view(value), 0, kLongestArgument));
  }
  json.add("}");
}

}  // namespace

std::string_view make_metadata() {
  Text json(g_json, sizeof g_json);
  json.add("{\"tool\":\"vramtrack\",\"tool_version\":").add_json(VRAMTRACK_VERSION);
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  json.add(",\"host\":").add_json(host);
  json.add(",\"pid\":").add(static_cast<uint64_t>(getpid()));
  json.add(",\"ppid\":").add(static_cast<uint64_t>(getppid()));
  add_link(json, "exe", "/proc/self/exe");
  add_link(json, "cwd", "/proc/self/cwd");
  json.add(",\"clock\":\"CLOCK_MONOTONIC\"");
  json.add(",\"simulated\":").add(config().simulated ? "true" : "false");
  json.add(",\"cpu_tensors\":").add(config().cpu ? "true" : "false");
  json.add(",\"stacks\":")
      .add_json(config().native_stacks ? (config().python_stacks ? "both" : "native")
                                       : (config().python_stacks ? "python" : "none"));
  if (config().ring_bytes != 0) json.add(",\"ring_bytes\":").add(config().ring_bytes);
  if (config().sample_bytes != 0) json.add(",\"sample_bytes\":").add(config().sample_bytes);
  add_environment(json);
  add_command(json);
  json.add("}");
  return json.view();
}

void define_metadata(std::string_view key, std::string_view value) {
  const uint32_t key_id = intern_string(key);
  const uint32_t value_id = intern_string(value);
  uint8_t buffer[1 + 2 * kMaxVarintBytes];
  Writer w(buffer);
  w.byte(static_cast<uint8_t>(EventKind::define_metadata));
  w.varint(key_id);
  w.varint(value_id);
  write_definition(buffer, w.size());
}

}  // namespace vramtrack
