#include "message_shapes.h"

namespace vramtrack::test {
namespace {

std::string torch_new(Writer& w, const char* capacity, const std::string& processes,
                      const std::string& between, const char* tail) {
  return "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate " + w.size(SizeKind::ask) +
         ". GPU " + w.number(8) + " has a total " + capacity + " of " + w.size(SizeKind::total) +
         " of which " + w.size(SizeKind::free) + " is free. " + processes +
         "Of the allocated memory " + w.size(SizeKind::allocated) + " is allocated by PyTorch, " +
         between + "and " + w.size(SizeKind::unallocated) +
         " is reserved by PyTorch but unallocated. " + tail;
}

std::string own(Writer& w) {
  return "Including non-PyTorch memory, this process has " + w.size(SizeKind::process) +
         " memory in use. ";
}

constexpr char kSplitTail[] =
    "If reserved but unallocated memory is large try setting max_split_size_mb to avoid "
    "fragmentation.  "
    "See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF";
constexpr char kExpandableTail[] =
    "If reserved but unallocated memory is large try setting "
    "PYTORCH_ALLOC_CONF=expandable_segments:True "
    "to avoid fragmentation.  See documentation for Memory Management  "
    "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)";

}  // namespace

std::string torch_old(Writer& w, const std::string& last) {
  return "RuntimeError: CUDA out of memory. Tried to allocate " + w.size(SizeKind::ask) + " (GPU " +
         w.number(8) + "; " + w.size(SizeKind::total) + " total capacity; " +
         w.size(SizeKind::allocated) + " already allocated; " + w.size(SizeKind::free) + " free; " +
         last;
}

const std::multimap<std::string, Shape>& shapes() {
  static const std::multimap<std::string, Shape> all = {
      {"PyTorch 0.1-0.4",
       [](Writer& w) {
         w.sample.text =
             "RuntimeError: cuda runtime error (2) : out of memory at "
             "/opt/conda/aten/src/THC/generic/THCStorage.cu:" +
             w.number(900);
         w.sample.library = "PyTorch";
       }},
      {"PyTorch 1.0-1.3",
       [](Writer& w) {
         w.sample.text = torch_old(w, w.size(SizeKind::unallocated) + " cached)");
         w.sample.library = "PyTorch";
       }},
      {"PyTorch 1.4-1.9",
       [](Writer& w) {
         w.sample.text =
             torch_old(w, w.size(SizeKind::reserved) + " reserved in total by PyTorch)");
         w.sample.library = "PyTorch";
       }},
      {"PyTorch 1.10-2.0",
       [](Writer& w) {
         w.sample.text = torch_old(
             w,
             w.size(SizeKind::limit) + " allowed; " + w.size(SizeKind::reserved) +
                 " reserved in total by PyTorch) If reserved memory is >> allocated memory try "
                 "setting max_split_size_mb to avoid fragmentation.  See documentation for Memory "
                 "Management and PYTORCH_CUDA_ALLOC_CONF");
         w.sample.library = "PyTorch";
       }},
      {"PyTorch 2.1",
       [](Writer& w) {
         std::string processes;
         for (int i = 0; i < 15; ++i) processes += w.process();
         processes += own(w);
         w.sample.text = torch_new(w, "capacty", processes, "", kSplitTail);
         w.sample.library = "PyTorch";
       }},
      {"PyTorch 2.5-2.8",
       [](Writer& w) {
         const std::string process = w.process();
         const std::string graphs = "with " + w.size(SizeKind::private_pools) +
                                    " allocated in private pools (e.g., CUDA Graphs), ";
         w.sample.text = "[rank0]: " + torch_new(w, "capacity", process, graphs, kExpandableTail);
         w.sample.library = "PyTorch";
       }},
      {"PyTorch >=2.9/2.10",
       [](Writer& w) {
         const std::string processes =
             w.process() + own(w) + w.size(SizeKind::limit) + " allowed; ";
         w.sample.text = torch_new(w, "capacity", processes, "", kExpandableTail);
         w.sample.library = "PyTorch";
       }},
      {"PyTorch huge",
       [](Writer& w) {
         w.sample.text = "CUDA out of memory. Tried to allocate more than 1EB memory.";
         w.sample.library = "PyTorch";
         w.sample.kind = MessageKind::corrupt;
       }},
      {"PyTorch cudaMallocAsync / pluggable",
       [](Writer& w) {
         w.sample.text =
             "Allocation on device " + w.number(8) +
             " would exceed allowed memory. (out of memory)\nCurrently allocated     : " +
             w.size(SizeKind::allocated) + "\nRequested               : " + w.size(SizeKind::ask) +
             "\nDevice limit            : " + w.size(SizeKind::total) +
             "\nFree (according to CUDA): " + w.size(SizeKind::free) +
             "\nPyTorch limit (set by user-supplied memory fraction)\n"
             "                        : " +
             w.size(SizeKind::limit);
         w.sample.library = "PyTorch";
       }},
      {"PyTorch NVML assert",
       [](Writer& w) {
         w.sample.text =
             "RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "
             "\"../c10/cuda/CUDACachingAllocator.cpp\":" +
             w.number(2000) + ", please report a bug to PyTorch.";
         w.sample.library = "PyTorch";
         w.sample.kind = MessageKind::masked;
       }},
      {"XPU/NPU/MPS",
       [](Writer& w) {
         w.sample.text =
             "torch.OutOfMemoryError: XPU out of memory. Tried to allocate " +
             w.size(SizeKind::ask) + ". GPU 0 has a total capacity of " + w.size(SizeKind::total) +
             ". Of the allocated memory " + w.size(SizeKind::allocated) +
             " is allocated by PyTorch, and " + w.size(SizeKind::unallocated) +
             " is reserved by PyTorch but unallocated. Please use `empty_cache` to release "
             "all unoccupied cached memory.";
         w.sample.library = "PyTorch (XPU)";
       }},
      {"XPU/NPU/MPS",
       [](Writer& w) {
         w.sample.text = "RuntimeError: NPU out of memory. Tried to allocate " +
                         w.size(SizeKind::ask) + " (NPU 0; " + w.size(SizeKind::total) +
                         " total capacity; " + w.size(SizeKind::allocated) +
                         " already allocated; " + w.size(SizeKind::active) + " current active; " +
                         w.size(SizeKind::free) + " free; " + w.size(SizeKind::reserved) +
                         " reserved in total by PyTorch)";
         w.sample.library = "PyTorch (NPU)";
       }},
      {"XPU/NPU/MPS",
       [](Writer& w) {
         w.sample.text = "RuntimeError: MPS backend out of memory (MPS allocated: " +
                         w.as(SizeKind::allocated, "GB", " ") +
                         ", other allocations: " + w.as(SizeKind::other_in_use, "MB", " ") +
                         ", max allowed: " + w.as(SizeKind::limit, "GB", " ") +
                         "). Tried to allocate " + w.as(SizeKind::ask, "MB", " ") +
                         " on private pool.";
         w.sample.library = "PyTorch (MPS)";
       }},
      {"JAX/XLA",
       [](Writer& w) {
         w.sample.text =
             "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while "
             "trying to allocate " +
             w.whole(SizeKind::ask) +
             " bytes.\nBufferAssignment OOM Debugging.\nBufferAssignment stats:\n"
             "             parameter allocation:  372.76MiB\n"
             "              constant allocation:         0B\n"
             "        maybe_live_out allocation:  372.76MiB\n"
             "     preallocated temp allocation: " +
             w.as(SizeKind::temporary, "MiB") +
             "\n  preallocated temp fragmentation:  680.30MiB (4.60%)\n"
             "                 total allocation: " +
             w.as(SizeKind::planned, "GiB") +
             "\n              total fragmentation: " + w.as(SizeKind::plan_fragmentation, "MiB") +
             " (4.60%)\nPeak buffers:\n";
         w.sample.library = "JAX/XLA";
       }},
      {"JAX/XLA",
       [](Writer& w) {
         // Both spellings of one number; the exact one counts.
         const std::string bytes = w.whole(SizeKind::ask);
         const auto rounded =
             print_as(static_cast<double>(std::stoull(bytes)) / kGiB, "GiB", '.', "");
         w.sample.text = "RESOURCE_EXHAUSTED: Failed to allocate request for " + rounded.text +
                         " (" + bytes + "B) on device ordinal " + w.number(8);
         w.sample.library = "JAX/XLA";
       }},
      {"JAX/XLA",
       [](Writer& w) {
         w.sample.text = "RuntimeError: Resource exhausted: Out of memory allocating " +
                         w.whole(SizeKind::ask) + " bytes";
         w.sample.library = "JAX/XLA";
       }},
      {"vLLM",
       [](Writer& w) {
         w.sample.text =
             "ValueError: No available memory for the cache blocks. Try increasing "
             "`gpu_memory_utilization` when initializing the engine.";
         w.sample.library = "vLLM";
         w.sample.kind = MessageKind::budget;
       }},
      {"vLLM",
       [](Writer& w) {
         w.sample.text =
             "ValueError: To serve at least one request with the models's max seq len (196608), "
             "(" +
             w.as(SizeKind::kv_needed, "GiB", " ") +
             " KV cache is needed, which is larger than the available KV cache memory (" +
             w.as(SizeKind::kv_cache, "GiB", " ") +
             "). Based on the available memory, the estimated maximum model length is 158560.";
         w.sample.library = "vLLM";
         w.sample.kind = MessageKind::budget;
       }},
      {"vLLM",
       [](Writer& w) {
         w.sample.text =
             "the current vLLM instance can use total_gpu_memory (" + w.as(SizeKind::total, "GiB") +
             ") x gpu_memory_utilization (0.70) = " + w.as(SizeKind::budget, "GiB") +
             "\nmodel weights take " + w.as(SizeKind::weights, "GiB") +
             "; non_torch_memory takes " + w.as(SizeKind::non_torch, "GiB") +
             "; PyTorch activation peak memory takes " + w.as(SizeKind::activation_peak, "GiB") +
             "; the rest of the memory reserved for KV Cache is -1.05GiB.";
         w.sample.sizes[SizeKind::kv_cache] = -1.05L * 1024 * 1024 * 1024;
         w.sample.library = "vLLM";
         w.sample.kind = MessageKind::budget;
       }},
      {"SGLang",
       [](Writer& w) {
         w.sample.text =
             "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. "
             "[Current value: mem_fraction_static=0.88]";
         w.sample.library = "SGLang";
         w.sample.kind = MessageKind::budget;
       }},
      {"llama.cpp/ggml",
       [](Writer& w) {
         w.sample.text = "ggml_backend_cuda_buffer_type_alloc_buffer: allocating " +
                         w.as(SizeKind::ask, "MiB", " ") +
                         " on device 0: cudaMalloc failed: out of memory\n";
         w.sample.library = "llama.cpp/ggml";
       }},
      {"llama.cpp/ggml",
       [](Writer& w) {
         w.sample.text = "ggml_gallocr_reserve_n: failed to allocate CUDA1 buffer of size " +
                         w.whole(SizeKind::ask);
         w.sample.library = "llama.cpp/ggml";
       }},
      {"llama.cpp/ggml",
       [](Writer& w) {
         w.sample.text = "ggml_cuda_host_malloc: failed to allocate " +
                         w.as(SizeKind::ask, "MiB", " ", ',') +
                         " of pinned memory: invalid argument";
         w.sample.library = "llama.cpp/ggml";
         w.sample.kind = MessageKind::host;
       }},
      {"llama.cpp/ggml",
       [](Writer& w) {
         w.sample.text = "CUDA error 2 at ggml-cuda.cu:" + w.number(9000) + ": out of memory";
         w.sample.library = "llama.cpp/ggml";
       }},
      {"bitsandbytes",
       [](Writer& w) {
         w.sample.text = "Error out of memory at line " + w.number(900) +
                         " in file /home/developer/bitsandbytes/csrc/pythonInterface.c";
         w.sample.library = "bitsandbytes";
       }},
      {"Triton (not device memory!)",
       [](Writer& w) {
         w.sample.text =
             "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: " +
             w.whole(SizeKind::required) + ", Hardware limit: " + w.whole(SizeKind::available) +
             ". Reducing block sizes or `num_stages` may help.";
         w.sample.library = "Triton";
         w.sample.kind = MessageKind::not_memory;
       }},
      {"cuBLAS",
       [](Writer& w) {
         w.sample.text =
             "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling "
             "`cublasCreate(handle)`";
         w.sample.library = "cuBLAS";
       }},
      {"NCCL",
       [](Writer& w) {
         w.sample.text =
             "node1:123:456 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'\n"
             "node1:123:456 [3] include/alloc.h:185 NCCL WARN Failed to CUDA calloc " +
             w.whole(SizeKind::ask) + " bytes";
         w.sample.library = "NCCL";
       }},
      {"TensorRT",
       [](Writer& w) {
         w.sample.text =
             "[defaultAllocator.cpp::allocateAsync::44] Error Code 1: Cuda Runtime (out of "
             "memory)\nRequested amount of GPU memory (" +
             w.whole(SizeKind::ask) + " bytes) could not be allocated";
         w.sample.library = "TensorRT";
       }},
      {"Jetson",
       [](Writer& w) {
         w.sample.text = "NvMapMemAllocInternalTagged: " + w.whole(SizeKind::ask) + " error 12";
         w.sample.library = "Jetson (NvMap)";
         w.sample.kind = MessageKind::host;
       }},
      {"DataLoader/worker",
       [](Writer& w) {
         w.sample.text =
             "OSError: [WinError 1455] The paging file is too small for this operation to "
             "complete.";
         w.sample.library = "Windows";
         w.sample.kind = MessageKind::host;
       }},
      {"DataLoader/worker",
       [](Writer& w) {
         w.sample.text =
             "RuntimeError: [enforce fail at alloc_cpu.cpp:114] data. DefaultCPUAllocator: not "
             "enough memory: you tried to allocate " +
             w.whole(SizeKind::ask) + " bytes.";
         w.sample.library = "PyTorch";
         w.sample.kind = MessageKind::host;
       }},
  };
  return all;
}

}  // namespace vramtrack::test
