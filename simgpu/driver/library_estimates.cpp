// The table of library memory, and who holds how much of it.
//
// The danger: a handle can outlive the context in which it was made (a reset takes its memory
// away), so that a close gives back no more than is still held.
#include "library_estimates.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>

namespace simgpu {
namespace {

constexpr std::uint64_t mib(std::uint64_t count) {
  return count << 20;
}

// ESTIMATES by compute capability, in MiB; README.md, "What libraries keep".
struct Row {
  int major, minor;
  int cublas_workspace;  // with the first handle
  int cublas_code;
  int cudnn_code;
  int nccl_channels;  // of a communicator; 0: the cards share no memory
};
// clang-format off
constexpr Row kRows[] = {
    {7, 0, 10, 14, 16, 12},  // NVLink
    {7, 5, 10, 14, 16, 2},
    {8, 0, 10, 22, 24, 24},  // NVLink
    {8, 6, 10, 14, 16, 2},
    {8, 9, 10, 14, 16, 2},
    {9, 0, 32, 32, 24, 24},  // NVLink
    {10, 0, 32, 32, 24, 24},  // NVLink
    {12, 0, 12, 20, 16, 2},
};
// clang-format on
constexpr int kNcclMib = 8;  // of each communicator, beside its buffers

const Row* row_of(const DeviceModel& model) {
  for (const Row& row : kRows)
    if (row.major == model.major && row.minor == model.minor) return &row;
  return nullptr;
}

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

// SIMGPU_LIBRARY_MIB: "0" for all libraries, or "cublas:40,nccl:300". Whether it says something of
// `library`.
bool replaced(std::string_view library, std::uint64_t& bytes) {
  const char* text = std::getenv("SIMGPU_LIBRARY_MIB");
  if (text == nullptr || *text == 0) return false;
  bool found = false;
  for (std::string_view words = text; !words.empty();) {
    std::string word(words.substr(0, words.find(',')));
    words.remove_prefix(std::min(words.size(), word.size() + 1));
    const std::size_t colon = word.find(':');
    if (colon != std::string::npos && !same_word(std::string_view(word).substr(0, colon), library))
      continue;
    const char* number = word.c_str() + (colon == std::string::npos ? 0 : colon + 1);
    bytes = std::min<std::uint64_t>(std::strtoull(number, nullptr, 10), 1ULL << 20) << 20;
    found = true;
  }
  return found;
}

}  // namespace

simgpu_library_estimate library_estimate(const DeviceModel& model, std::string_view library) {
  simgpu_library_estimate estimate{};
  const Row* row = row_of(model);
  if (row == nullptr) return estimate;
  const bool nccl = library == "NCCL";
  std::uint64_t chosen = 0;
  if (replaced(library, chosen)) {
    (nccl ? estimate.each_handle : estimate.first_handle) = chosen;
    return estimate;
  }
  if (library == "cuBLAS") {
    estimate.first_handle = mib(row->cublas_workspace);
    estimate.code = mib(row->cublas_code);
  } else if (library == "cuDNN") {
    estimate.code = mib(row->cudnn_code);
  } else if (nccl) {
    estimate.each_handle = mib(kNcclMib);
    // Without access to each other's memory the cards meet in the host's.
    if (std::strstr(model.name, "GeForce") == nullptr) estimate.channels = row->nccl_channels;
  }
  // A card of a few MiB, as tests have, is not eaten by its libraries.
  if (std::strcmp(model.key, "sized") == 0) {
    const std::uint64_t most = model.total_bytes / 64;
    for (std::uint64_t* part : {&estimate.code, &estimate.first_handle, &estimate.each_handle})
      *part = std::min(*part, most);
  }
  return estimate;
}

CUresult LibraryMemory::open(const DeviceModel& model, Ledger& ledger, const char* library,
                             std::uint64_t bytes) {
  const simgpu_library_estimate estimate = library_estimate(model, library);
  std::lock_guard lock(mutex_);
  Held& held = held_[library];
  std::uint64_t wanted = bytes + estimate.each_handle;
  if (held.handles == 0) wanted += estimate.first_handle;
  if (!held.code) wanted += estimate.code;
  if (wanted > 0) SIMGPU_TRY(ledger.charge(Kind::kLibrary, wanted, library, 0));
  held.bytes += wanted;
  held.code = true;
  ++held.handles;
  return CUDA_SUCCESS;
}

void LibraryMemory::close(const DeviceModel& model, Ledger& ledger, const char* library,
                          std::uint64_t bytes) {
  const simgpu_library_estimate estimate = library_estimate(model, library);
  std::lock_guard lock(mutex_);
  const auto found = held_.find(library);
  if (found == held_.end() || found->second.handles == 0) return;
  Held& held = found->second;
  std::uint64_t given = bytes + estimate.each_handle;
  if (--held.handles == 0) given += estimate.first_handle;
  given = std::min(given, held.bytes);
  held.bytes -= given;
  if (given > 0) ledger.credit(Kind::kLibrary, given, library, 0);
}

void LibraryMemory::end_context(Ledger& ledger) {
  std::lock_guard lock(mutex_);
  for (const auto& [library, held] : held_)
    if (held.bytes > 0) ledger.credit(Kind::kLibrary, held.bytes, library.c_str(), 0);
  held_.clear();
}

}  // namespace simgpu
