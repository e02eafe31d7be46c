// Out-of-memory messages of what stands around a job: schedulers, containers, servers and loaders.
// The texts follow what their users published; the numbers are theirs.
#include <catch2/catch.hpp>

#include "diagnosis/oom/text_diagnosis.h"

namespace vramtrack {
namespace {

using Catch::Matchers::Contains;

constexpr long double kBytesInGiB = 1024.0L * 1024 * 1024;

TextDiagnosis diagnosed(const char* text) {
  auto diagnosis = diagnose_text(text);
  REQUIRE(diagnosis);
  REQUIRE(diagnosis->text.messages.size() == 1);
  REQUIRE_FALSE(diagnosis->advice.empty());
  return *diagnosis;
}

}  // namespace

TEST_CASE("host memory that a scheduler limits is told from the machine's") {
  struct Case {
    const char* text;
    const char* library;
    const char* advice;
  };
  for (const Case& expected :
       {Case{"slurmstepd: error: Detected 1 oom_kill event in StepId=8120345.0. Some of the step "
             "tasks have been OOM Killed.\nsrun: error: node07: task 0: Out Of Memory",
             "Slurm", "--mem"},
        Case{
            "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=14604003.batch cgroup. Some "
            "of your processes may have been killed by the cgroup out-of-memory handler.",
            "Slurm", "--mem"},
        Case{"slurmstepd: error: Exceeded job memory limit", "Slurm", "--mem"},
        Case{"    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    "
             "137",
             "Docker/Kubernetes", "resources.limits.memory"},
        Case{"\"State\": {\"Status\": \"exited\", \"OOMKilled\": true, \"ExitCode\": 137}",
             "Docker/Kubernetes", "docker run --memory"},
        Case{"(raylet) 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers "
             "crashed due to other reasons at node (ID: 8289, IP: 172.24.0.226)",
             "Ray", "RAY_memory_usage_threshold"}}) {
    INFO(expected.text);
    const TextDiagnosis diagnosis = diagnosed(expected.text);
    CHECK(diagnosis.text.messages[0].library == expected.library);
    CHECK(diagnosis.audit.verdict == OomVerdict::host_memory);
    CHECK_THAT(diagnosis.advice[0].change, Contains(expected.advice));
  }
}

TEST_CASE("Ray says how full its node was") {
  const TextDiagnosis diagnosis = diagnosed(
      "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
      "Memory on the node (IP: 172.17.0.2, ID: 8c5a14) where the task (task ID: 41617b, "
      "name=allocate_memory, pid=548, memory used=12.18GB) was running was 21.91GB / 33.28GB "
      "(0.658192), which exceeds the memory usage threshold of 0.65. Ray killed this worker");
  const OomMessage& message = diagnosis.text.messages[0];
  CHECK(message.library == "Ray");
  CHECK(message.size(SizeKind::required)->bytes ==
        Approx(static_cast<double>(21.91L * kBytesInGiB)));
  CHECK(message.size(SizeKind::available)->bytes ==
        Approx(static_cast<double>(33.28L * kBytesInGiB)));
  CHECK(diagnosis.audit.verdict == OomVerdict::host_memory);
  CHECK_THAT(diagnosis.audit.reason, Contains("21.91 GiB of 33.28 GiB"));
}

TEST_CASE("Ollama wants host memory") {
  const TextDiagnosis diagnosis = diagnosed(
      "Error: model requires more system memory (164.8 GiB) than is available (13.4 GiB)");
  const OomMessage& message = diagnosis.text.messages[0];
  CHECK(message.size(SizeKind::required)->bytes ==
        Approx(static_cast<double>(164.8L * kBytesInGiB)));
  CHECK(message.size(SizeKind::available)->bytes ==
        Approx(static_cast<double>(13.4L * kBytesInGiB)));
  CHECK(diagnosis.audit.verdict == OomVerdict::host_memory);
  CHECK_THAT(diagnosis.advice[0].change, Contains("smaller model"));
}

TEST_CASE("a server that cannot warm up names the batch to shorten") {
  const TextDiagnosis diagnosis = diagnosed(
      "Error: Warmup(Generation(\"Not enough memory to handle 4096 prefill tokens. You need to "
      "decrease `--max-batch-prefill-tokens`\"))");
  CHECK(diagnosis.audit.verdict == OomVerdict::capacity);
  CHECK_THAT(diagnosis.audit.reason, Contains("4096 prefill tokens"));
  CHECK_THAT(diagnosis.advice[0].change, Contains("--max-batch-prefill-tokens below 4096"));

  const TextDiagnosis older = diagnosed(
      "RuntimeError: Not enough memory to handle 16000 total tokens with 2 prefill tokens. You "
      "need "
      "to decrease `--max-batch-total-tokens` or `--max-batch-prefill-tokens`");
  CHECK(older.text.messages[0].details.at("prefill_tokens") == "2");
  CHECK_THAT(older.advice[0].change, Contains("--max-batch-total-tokens below 16000"));
}

TEST_CASE("weights that were placed on the CPU did not fit the devices") {
  const TextDiagnosis diagnosis = diagnosed(
      "ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have enough "
      "GPU RAM to fit the quantized model.");
  CHECK(diagnosis.text.messages[0].library == "Transformers");
  CHECK(diagnosis.audit.verdict == OomVerdict::capacity);
  CHECK_THAT(diagnosis.advice[0].change, Contains("llm_int8_enable_fp32_cpu_offload"));
}

}  // namespace vramtrack
