// What strangers reported (tests/data/oom/oom-cases.json), told from the text alone: the message is
// rebuilt from the case's numbers in the wording of its time.
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "diagnosis/oom/text_diagnosis.h"
#include "printed_message.h"

namespace vramtrack {
namespace {

using nlohmann::json;

std::string gib(const json& numbers, const char* key) {
  return test::print_size(static_cast<uint64_t>(numbers.at(key).get<double>() * test::kGiB)).text;
}

// Clauses that the case has no number for are left out.
std::string old_wording(const json& n) {
  std::string text = "RuntimeError: CUDA out of memory.";
  if (n.contains("ask")) text += " Tried to allocate " + gib(n, "ask");
  text += " (GPU 0; ";
  if (n.contains("total")) text += gib(n, "total") + " total capacity; ";
  if (n.contains("alloc")) text += gib(n, "alloc") + " already allocated; ";
  if (n.contains("free")) text += gib(n, "free") + " free; ";
  if (n.contains("allowed")) text += gib(n, "allowed") + " allowed; ";
  if (n.contains("cached")) return text + gib(n, "cached") + " cached)";
  if (n.contains("reserved")) text += gib(n, "reserved") + " reserved in total by PyTorch)";
  return text;
}

std::string new_wording(const json& n) {
  std::string text = "torch.OutOfMemoryError: CUDA out of memory.";
  if (n.contains("ask")) text += " Tried to allocate " + gib(n, "ask") + ".";
  if (n.contains("total")) text += " GPU 0 has a total capacity of " + gib(n, "total");
  if (n.contains("free")) text += " of which " + gib(n, "free") + " is free.";
  if (n.contains("others")) {
    for (const auto& other : n.at("others")) {
      text += " Process 4711 has " +
              test::print_size(static_cast<uint64_t>(other.get<double>() * test::kGiB)).text +
              " memory in use.";
    }
  }
  if (n.contains("proc")) {
    text += " Including non-PyTorch memory, this process has " + gib(n, "proc") + " memory in use.";
  }
  if (n.contains("alloc")) {
    text += " Of the allocated memory " + gib(n, "alloc") + " is allocated by PyTorch,";
  }
  if (n.contains("private")) {
    text += " with " + gib(n, "private") + " allocated in private pools (e.g., CUDA Graphs),";
  }
  if (n.contains("unalloc")) {
    text += " and " + gib(n, "unalloc") + " is reserved by PyTorch but unallocated.";
  }
  return text;
}

std::string vllm_profile(const json& n) {
  const auto value = [&](const char* key) {
    return test::print_as(n.at(key).get<double>(), "GiB", '.', "").text;
  };
  return "the current vLLM instance can use total_gpu_memory (8.00GiB) x gpu_memory_utilization "
         "(0.70) = " +
         value("budget") + "\nmodel weights take " + value("weights") +
         "; non_torch_memory takes " + value("nontorch") +
         "; PyTorch activation peak memory takes " + value("act_peak") +
         "; the rest of the memory reserved for KV Cache is " + value("kv") + ".";
}

std::string message_of(const json& n) {
  if (n.contains("budget")) return vllm_profile(n);
  if (n.contains("ask_bytes")) {
    return "[defaultAllocator.cpp::allocateAsync::44] Error Code 1: Cuda Runtime (out of memory)\n"
           "Requested amount of GPU memory (" +
           std::to_string(n.at("ask_bytes").get<uint64_t>()) + " bytes) could not be allocated";
  }
  if (n.contains("ask_MiB")) {
    return "ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size " +
           std::to_string(n.at("bytes").get<uint64_t>());
  }
  if (n.contains("ask_GiB")) return new_wording({{"ask", n.at("ask_GiB")}});
  if (n.contains("cached") || n.contains("reserved")) return old_wording(n);
  if (n.contains("ask")) return new_wording(n);
  return {};
}

json cases() {
  std::ifstream file(VRAMTRACK_TEST_DATA "/oom/oom-cases.json");
  return json::parse(file);
}

std::string verdict_of(const std::string& text) {
  const auto diagnosis = diagnose_text(text);
  return diagnosis ? std::string(verdict_name(diagnosis->audit.verdict)) : "not recognised";
}

}  // namespace

TEST_CASE("cases whose numbers decide get their verdict") {
  int decided = 0;
  for (const auto& item : cases()) {
    if (item.at("message_verdict").is_null()) continue;
    const std::string text = message_of(item.at("numbers"));
    INFO(item.at("id") << ": " << text);
    CHECK(verdict_of(text) == item.at("message_verdict").get<std::string>());
    ++decided;
  }
  CHECK(decided == 11);
}

TEST_CASE("no other case gets a confident wrong verdict") {
  int tried = 0;
  for (const auto& item : cases()) {
    if (!item.at("message_verdict").is_null()) continue;
    const std::string text = message_of(item.at("numbers"));
    if (text.empty()) continue;
    const auto diagnosis = diagnose_text(text);
    INFO(item.at("id") << ": " << text);
    REQUIRE(diagnosis);
    const bool right =
        verdict_name(diagnosis->audit.verdict) == item.at("verdict").get<std::string>();
    CHECK((right || diagnosis->audit.confidence == Confidence::low));
    ++tried;
  }
  CHECK(tried >= 4);
}

TEST_CASE("other processes that hold most of the card are named") {
  std::string text =
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 52.00 MiB. GPU 0 has a "
      "total "
      "capacty of 31.74 GiB of which 39.62 MiB is free. ";
  for (int i = 0; i < 15; ++i) {
    text += "Process " + std::to_string(101553 + i) + " has 1.19 GiB memory in use. ";
  }
  text +=
      "Including non-PyTorch memory, this process has 13.82 GiB memory in use. Of the allocated "
      "memory "
      "11.54 GiB is allocated by PyTorch, and 677.26 MiB is reserved by PyTorch but unallocated.";
  const auto diagnosis = diagnose_text(text);
  REQUIRE(diagnosis);
  CHECK(diagnosis->audit.verdict == OomVerdict::other_process);
  CHECK(diagnosis->audit.confidence == Confidence::high);
  REQUIRE_FALSE(diagnosis->advice.empty());
  CHECK(diagnosis->advice.front().id == "other-processes");
}

TEST_CASE("a request beyond the card can never fit") {
  CHECK(
      verdict_of(
          "CUDA out of memory. Tried to allocate 16.00 GiB (GPU 0; 11.93 GiB total capacity; 4.00 "
          "GiB already allocated; 7.33 GiB free; 179.00 KiB cached)") == "capacity");
}

TEST_CASE("old cached excludes allocated, reserved includes it") {
  // The same card and pool in both wordings: 8 allocated, 3 held unused, 1 free, 2 asked for.
  const auto old = diagnose_text(
      "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 12.50 GiB total capacity; 8.00 GiB "
      "already "
      "allocated; 1.00 GiB free; 3.00 GiB cached)");
  const auto newer = diagnose_text(
      "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 12.50 GiB total capacity; 8.00 GiB "
      "already "
      "allocated; 1.00 GiB free; 11.00 GiB reserved in total by PyTorch)");
  REQUIRE(old);
  REQUIRE(newer);
  CHECK(old->audit.held->bytes == 3 * test::kGiB);
  CHECK(newer->audit.held->bytes == 3 * test::kGiB);
  CHECK(old->audit.outside->bytes == newer->audit.outside->bytes);
  CHECK(old->audit.outside->bytes == test::kGiB / 2);
  CHECK(old->audit.verdict == OomVerdict::fragmentation);
  CHECK(newer->audit.verdict == OomVerdict::fragmentation);
}

TEST_CASE("a verdict that the rounding decides says so") {
  // 1.00 + 1.00 against 2.00: held plus free reach the request or miss it by 20 MiB.
  const auto diagnosis = diagnose_text(
      "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 4.00 GiB total capacity; 1.50 GiB "
      "already "
      "allocated; 1.00 GiB free; 2.50 GiB reserved in total by PyTorch)");
  REQUIRE(diagnosis);
  const auto far = diagnose_text(
      "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 4.00 GiB total capacity; 0.50 GiB "
      "already "
      "allocated; 1.00 GiB free; 2.50 GiB reserved in total by PyTorch)");
  REQUIRE(far);
  CHECK_FALSE(far->audit.on_edge);
  // Free memory of twice the request, give or take the rounding: limit, or only somewhat above.
  const auto edge = diagnose_text(
      "CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 4.00 GiB total capacity; 1.50 GiB "
      "already "
      "allocated; 1.00 GiB free; 1.60 GiB reserved in total by PyTorch)");
  REQUIRE(edge);
  CHECK(edge->audit.on_edge);
  CHECK(edge->audit.confidence == Confidence::low);
}

TEST_CASE("a figure near 2^64 is a counter that ran below zero") {
  const auto diagnosis = diagnose_text(
      "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.69 GiB of "
      "which "
      "17179869183.99 GiB is free. Of the allocated memory 20.00 GiB is allocated by PyTorch, and "
      "1.00 GiB is "
      "reserved by PyTorch but unallocated.");
  REQUIRE(diagnosis);
  CHECK(diagnosis->audit.verdict != OomVerdict::limit);
  CHECK(diagnosis->audit.confidence == Confidence::low);
  const auto ask = diagnose_text(
      "CUDA out of memory. Tried to allocate 17179869180.00 GiB (GPU 0; 23.69 GiB total capacity; "
      "1.00 GiB "
      "already allocated; 20.00 GiB free; 1.10 GiB reserved in total by PyTorch)");
  REQUIRE(ask);
  CHECK(ask->audit.verdict == OomVerdict::healthy);
}

TEST_CASE("a process whose use NVML could not tell is left out") {
  const auto diagnosis = diagnose_text(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
      "capacity of "
      "23.99 GiB of which 0.50 GiB is free. Process 1 has 17179869184.00 GiB memory in use. Of the "
      "allocated "
      "memory 21.00 GiB is allocated by PyTorch, and 0.50 GiB is reserved by PyTorch but "
      "unallocated.");
  REQUIRE(diagnosis);
  CHECK(diagnosis->other_processes.empty());
  CHECK(diagnosis->audit.verdict == OomVerdict::capacity);
  CHECK(diagnosis->audit.confidence == Confidence::high);
}

TEST_CASE("a memory that is read from the words around it") {
  CHECK(verdict_of("RuntimeError: Invalid buffer size: 24.00 GB") == "limit");
  CHECK(verdict_of("RESOURCE_EXHAUSTED: Attempting to allocate 2.68G. That was not possible. There "
                   "are 2.41G "
                   "free.; (0x0x0_HBM0)") == "undetermined");
  CHECK(verdict_of("torch.OutOfMemoryError: Allocation on device \nThis error means you ran out of "
                   "memory") == "undetermined");
  CHECK(verdict_of("ImportError: libgomp.so: cannot allocate memory in static TLS block") ==
        "not recognised");
  const auto cupy = diagnose_text(
      "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes (allocated "
      "so far: "
      "1,234,567,890 bytes, limit set to: 9,000,000,000 bytes).");
  REQUIRE(cupy);
  CHECK(cupy->audit.verdict == OomVerdict::limit);
  CHECK(cupy->numbers.ask->bytes == 8589934592);
}

TEST_CASE("no limit of the cudaMallocAsync back end is not a limit") {
  const auto diagnosis = diagnose_text(
      "Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated    "
      " : 16.66 "
      "GiB\nRequested               : 31.27 MiB\nDevice limit            : 22.13 GiB\nFree "
      "(according to "
      "CUDA): 4.62 MiB\nPyTorch limit (set by user-supplied memory fraction)\n                     "
      "   : "
      "17179869184.00 GiB");
  REQUIRE(diagnosis);
  CHECK_FALSE(diagnosis->numbers.limit);
  CHECK(diagnosis->audit.verdict == OomVerdict::undetermined);
}

TEST_CASE("Triton's shared memory is no device memory") {
  const auto diagnosis = diagnose_text(
      "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 106496, "
      "Hardware limit: "
      "101376. Reducing block sizes or `num_stages` may help.");
  REQUIRE(diagnosis);
  CHECK(diagnosis->audit.verdict == OomVerdict::healthy);
  REQUIRE_FALSE(diagnosis->advice.empty());
  CHECK(diagnosis->advice.front().id == "triton-blocks");
}

TEST_CASE("pinned memory that a loader wanted is host memory") {
  CHECK(
      verdict_of(
          "RuntimeError: Caught RuntimeError in pin memory thread for device 0.\n  File "
          "\"torch/utils/data/_utils/pin_memory.py\", line 30, in do_one_step\nRuntimeError: CUDA "
          "error: out of memory") == "host memory");
  CHECK(verdict_of("RuntimeError: CUDA error: out of memory") == "undetermined");
}

TEST_CASE("advice leaves out what is in force and what cannot help") {
  const std::string message =
      "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of "
      "which 0.50 "
      "GiB is free. Of the allocated memory 17.00 GiB is allocated by PyTorch, and 5.00 GiB is "
      "reserved by "
      "PyTorch but unallocated.";
  const auto has = [](const TextDiagnosis& diagnosis, const char* id) {
    for (const Advice& piece : diagnosis.advice) {
      if (piece.id == id) return true;
    }
    return false;
  };
  const auto bare = diagnose_text(message);
  REQUIRE(bare);
  CHECK(bare->audit.verdict == OomVerdict::fragmentation);
  CHECK(has(*bare, "expandable-segments"));
  const auto set = diagnose_text("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n" + message);
  REQUIRE(set);
  CHECK_FALSE(has(*set, "expandable-segments"));
  CHECK_FALSE(has(*set, "max-split-size"));
  for (const auto* diagnosis : {&*bare, &*set}) {
    for (const Advice& piece : diagnosis->advice) {
      CHECK(piece.change.find("empty_cache") == std::string::npos);
    }
  }
}

TEST_CASE("savings are ranked") {
  const auto diagnosis = diagnose_text(
      "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of "
      "which 0.50 "
      "GiB is free. Process 77 has 8.00 GiB memory in use. Including non-PyTorch memory, this "
      "process has "
      "15.00 GiB memory in use. Of the allocated memory 11.00 GiB is allocated by PyTorch, and "
      "3.50 GiB is "
      "reserved by PyTorch but unallocated.");
  REQUIRE(diagnosis);
  REQUIRE(diagnosis->advice.size() >= 2);
  for (size_t i = 1; i < diagnosis->advice.size(); ++i) {
    CHECK(diagnosis->advice[i - 1].saving.value_or(-1) >= diagnosis->advice[i].saving.value_or(-1));
  }
}

}  // namespace vramtrack
