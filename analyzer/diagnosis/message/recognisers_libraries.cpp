// Libraries that allocate from the driver for themselves: CuPy, RMM, TensorRT, NCCL, cuBLAS, cuDNN,
// bitsandbytes, ONNX Runtime, Paddle. Few print more than the request.
#include <array>

#include "diagnosis/message/recognisers.h"

namespace vramtrack {
namespace {

constexpr std::array kCupyClauses = {
    Clause{"outofmemoryallocating", "", SizeKind::ask},
    Clause{"allocatedsofar:", "", SizeKind::reserved},
    Clause{"limitsetto:", "", SizeKind::limit},
};

constexpr std::array kPaddleClauses = {
    Clause{"cannotallocate", "memoryongpu", SizeKind::ask},
    Clause{"", "memoryhasbeenallocated", SizeKind::allocated},
    Clause{"availablememoryisonly", "", SizeKind::free},
};

std::optional<OomMessage> read_cupy(const Candidate& candidate) {
  if (candidate.window().substr(0, 160).find("(allocatedsofar") == std::string_view::npos &&
      candidate.before(64).find("cupy") == std::string_view::npos) {
    return std::nullopt;
  }
  OomMessage message = message_at(candidate, "CuPy", "memory pool");
  read_clauses(candidate, kCupyClauses, 200, message);
  return message;
}

std::optional<OomMessage> read_rmm(const Candidate& candidate) {
  const std::string_view before = candidate.before(16);
  if (!before.ends_with("bad_alloc:") && !before.ends_with("rmm::")) return std::nullopt;
  const std::string_view window = candidate.window().substr(0, 500);
  const bool pool_full = window.find("maximumpoolsizeexceeded") != std::string_view::npos;
  OomMessage message = message_at(candidate, "RMM", pool_full ? "pool at its maximum" : "driver");
  if (pool_full) message.details["pool"] = "maximum size";
  if (const auto ask = size_after(window, "failedtoallocate")) {
    message.sizes.emplace(SizeKind::ask, *ask);
  }
  const size_t tail = window.find("cudaerrormemoryallocation");
  message.end = candidate.at + (tail == std::string_view::npos ? 16 : tail + 36);
  message.end = std::min(message.end, candidate.limit);
  return message;
}

std::optional<OomMessage> read_tensorrt(const Candidate& candidate) {
  OomMessage message = message_at(candidate, "TensorRT", "block of an engine or its builder");
  const std::string_view window = candidate.window().substr(0, 400);
  message.end = candidate.at + 16;
  if (const auto ask = size_after(window, "requestedamountofgpumemory(")) {
    message.sizes.emplace(SizeKind::ask, *ask);
    message.end = candidate.at + window.find("requestedamountofgpumemory(") + 28;
  }
  return message;
}

std::optional<OomMessage> read_nccl(const Candidate& candidate) {
  OomMessage message = message_at(candidate, "NCCL", "buffers of a communicator");
  message.end = candidate.at + 20;
  const std::string_view window = candidate.window().substr(0, 400);
  const size_t failed = window.find("failedtocuda");
  if (failed == std::string_view::npos) return message;
  if (const auto ask = next_size(window, failed)) {
    message.sizes.emplace(SizeKind::ask, ask->size);
    message.end = candidate.at + ask->end;
  }
  if (window.substr(failed).starts_with("failedtocudahost")) message.kind = MessageKind::host;
  return message;
}

// CUBLAS_STATUS_ALLOC_FAILED and the like: the anchor is what their names share.
std::optional<OomMessage> read_alloc_failed(const Candidate& candidate) {
  struct Library {
    std::string_view word, name;
  };
  constexpr std::array kLibraries = {
      Library{"cublas", "cuBLAS"},     Library{"cudnn", "cuDNN"},
      Library{"cusolver", "cuSOLVER"}, Library{"cusparse", "cuSPARSE"},
      Library{"cufft", "cuFFT"},       Library{"cutensor", "cuTENSOR"},
      Library{"rocblas", "rocBLAS"},   Library{"hipblas", "hipBLAS"},
      Library{"miopen", "MIOpen"},
  };
  for (const Library& library : kLibraries) {
    if (candidate.before(20).find(library.word) == std::string_view::npos) continue;
    OomMessage message = message_at(candidate, library.name, "handle or workspace");
    message.end = candidate.at + 12;
    return message;
  }
  return std::nullopt;
}

template <const char* library>
std::optional<OomMessage> read_masked(const Candidate& candidate) {
  OomMessage message =
      message_at(candidate, library, "handle that could not be created", MessageKind::masked);
  message.end = candidate.at + 28;
  return message;
}
constexpr char kCublas[] = "cuBLAS";
constexpr char kCudnn[] = "cuDNN";
constexpr char kCusolver[] = "cuSOLVER";

std::optional<OomMessage> read_bitsandbytes(const Candidate& candidate) {
  OomMessage message = message_at(candidate, "bitsandbytes", "CUDA call that failed");
  const std::string_view line = number_after(candidate.window().substr(0, 64), "atline");
  if (!line.empty()) message.details["line"] = line;
  message.end = candidate.at + 24;
  return message;
}

std::optional<OomMessage> read_onnxruntime(const Candidate& candidate) {
  OomMessage message = message_at(candidate, "ONNX Runtime", "arena");
  if (const auto ask = bytes_after(candidate.window().substr(0, 100), "requestedbufferofsize")) {
    message.sizes.emplace(SizeKind::ask, *ask);
  }
  message.end = candidate.at + 60;
  return message;
}

std::optional<OomMessage> read_paddle(const Candidate& candidate) {
  OomMessage message = message_at(candidate, "Paddle", "allocator");
  const std::string_view ordinal = number_after(candidate.window().substr(0, 40), "errorongpu");
  if (!ordinal.empty()) message.device = "GPU " + std::string(ordinal);
  read_clauses(candidate, kPaddleClauses, 300, message);
  return message;
}

std::optional<OomMessage> read_cuda_malloc(const Candidate& candidate) {
  OomMessage message = message_at(candidate, "CUDA", "cudaMalloc of a program of its own");
  message.end = candidate.at + 24;
  return message;
}

// "CUDA runtime error in ::cudaMallocAsync(...): out of memory"
std::optional<OomMessage> read_runtime_error_in(const Candidate& candidate) {
  const std::string_view window = candidate.window().substr(0, 300);
  const size_t said = window.find(":outofmemory");
  if (said == std::string_view::npos) return std::nullopt;
  OomMessage message = message_at(candidate, "TensorRT-LLM", "CUDA call that failed");
  message.end = candidate.at + said + 12;
  return message;
}

std::optional<OomMessage> read_onnxruntime_failure(const Candidate& candidate) {
  OomMessage message = message_at(candidate, "ONNX Runtime", "CUDA call that failed");
  message.end = candidate.at + 24;
  return message;
}

constexpr std::array kRecognisers = {
    Recogniser{"cudaruntimeerrorin", read_runtime_error_in},
    Recogniser{"cudafailure2:outofmemory", read_onnxruntime_failure},
    Recogniser{"cudnnfailedtoinitialize", read_masked<kCudnn>},
    Recogniser{"outofmemoryallocating", read_cupy},
    Recogniser{"out_of_memory:", read_rmm},
    Recogniser{"cudaruntime(outofmemory)", read_tensorrt},
    Recogniser{"requestedamountofgpumemory(", read_tensorrt},
    Recogniser{"errorcode2:outofmemory", read_tensorrt},
    Recogniser{"cudafailure'outofmemory'", read_nccl},
    Recogniser{"cudafailure2'outofmemory'", read_nccl},
    Recogniser{"failedtocudacalloc", read_nccl},
    Recogniser{"failedtocudamalloc", read_nccl},
    Recogniser{"failedtocudahostalloc", read_nccl},
    Recogniser{"failedtocudahostcalloc", read_nccl},
    Recogniser{"alloc_failed", read_alloc_failed},
    Recogniser{"cublas_status_not_initialized", read_masked<kCublas>},
    Recogniser{"cudnn_status_not_initialized", read_masked<kCudnn>},
    Recogniser{"couldnotcreatecudnnhandle", read_masked<kCudnn>},
    Recogniser{"cusolver_status_not_initialized", read_masked<kCusolver>},
    Recogniser{"cusolver_status_internal_error,whencalling`cusolverdncreate",
               read_masked<kCusolver>},
    Recogniser{"erroroutofmemoryatline", read_bitsandbytes},
    Recogniser{"failedtoallocatememoryforrequestedbufferofsize", read_onnxruntime},
    Recogniser{"outofmemoryerrorongpu", read_paddle},
    Recogniser{"cudamallocfailed:outofmemory", read_cuda_malloc},
    Recogniser{"cudamallocretryfailed:outofmemory", read_cuda_malloc},
};

}  // namespace

std::span<const Recogniser> library_recognisers() {
  return kRecognisers;
}

}  // namespace vramtrack
