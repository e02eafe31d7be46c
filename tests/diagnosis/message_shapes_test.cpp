// Every shape of tests/data/oom/oom-messages.json: each must be recognised, and each number must be
// read back as it was printed.
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "diagnosis/message/oom_message.h"
#include "message_shapes.h"

namespace vramtrack {
namespace {

using test::Sample;
using test::shapes;
using test::torch_old;
using test::Writer;

void check(const Sample& sample, const std::string& text) {
  INFO(text);
  const OomText read = read_oom_text(text);
  REQUIRE(read.messages.size() == 1);
  const OomMessage& message = read.messages.front();
  CHECK(message.library == sample.library);
  CHECK(message.kind == sample.kind);
  CHECK(message.sizes.size() == sample.sizes.size());
  for (const auto& [kind, bytes] : sample.sizes) {
    INFO(size_name(kind));
    REQUIRE(message.size(kind));
    CHECK(message.size(kind)->bytes == bytes);
  }
  REQUIRE(message.processes.size() == sample.processes.size());
  for (size_t i = 0; i < sample.processes.size(); ++i) {
    CHECK(message.processes[i].pid == sample.processes[i].first);
    CHECK(message.processes[i].used.bytes == sample.processes[i].second);
  }
}

// Broken into lines of `width` as a terminal does it, in the middle of words and numbers.
std::string broken(const std::string& text, size_t width, const std::string& prefix) {
  std::string out = prefix;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i > 0 && i % width == 0) out += "\n" + prefix;
    out += text[i];
  }
  return out;
}

std::string coloured(const std::string& text) {
  std::string out = "\x1b[1;31m";
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (i % 23 == 22) out += "\x1b[0m\x1b[38;5;196m";
  }
  return out + "\x1b[0m";
}

}  // namespace

TEST_CASE("every published shape has a writer") {
  std::ifstream file(VRAMTRACK_TEST_DATA "/oom/oom-messages.json");
  const auto published = nlohmann::json::parse(file);
  REQUIRE(published.size() == 22);
  for (const auto& shape : published) {
    const auto name = shape.at("lib").get<std::string>();
    INFO(name);
    CHECK(shapes().count(name) > 0);
  }
}

TEST_CASE("the published shapes themselves are recognised") {
  std::ifstream file(VRAMTRACK_TEST_DATA "/oom/oom-messages.json");
  for (const auto& shape : nlohmann::json::parse(file)) {
    const auto text = shape.at("shape").get<std::string>();
    // Three are printed with their beginning left out.
    const auto name = shape.at("lib").get<std::string>();
    if (text.starts_with("...")) continue;
    INFO(name);
    CHECK_FALSE(read_oom_text(text).messages.empty());
  }
}

TEST_CASE("numbers are read back as they were printed") {
  for (uint64_t round = 0; round < 200; ++round) {
    uint64_t seed = round;
    for (const auto& [name, shape] : shapes()) {
      Writer writer(seed += 1000);
      shape(writer);
      INFO(name << ", round " << round);
      check(writer.sample, writer.sample.text);
    }
  }
}

TEST_CASE("a message reads the same wrapped, prefixed and coloured") {
  uint64_t seed = 7;
  for (const auto& [name, shape] : shapes()) {
    Writer writer(seed += 17);
    shape(writer);
    INFO(name);
    const std::string log =
        "Traceback (most recent call last):\n  File \"train.py\", line 3, in main\n";
    check(writer.sample, log + broken(writer.sample.text, 61, ""));
    check(writer.sample, log + broken(writer.sample.text, 80, "[rank3]: "));
    check(writer.sample, log + broken(writer.sample.text, 79, "(EngineCore_0 pid=4711) "));
    check(writer.sample, log + coloured(writer.sample.text));
  }
}

TEST_CASE("several messages in one log are told apart") {
  std::string log;
  std::vector<Sample> samples;
  uint64_t seed = 99;
  for (const auto& [name, shape] : shapes()) {
    Writer writer(seed += 31);
    shape(writer);
    log += "INFO step " + std::to_string(seed) + "\n" + writer.sample.text + "\n";
    samples.push_back(writer.sample);
  }
  const OomText read = read_oom_text(log);
  // Neighbours of one library can be one failure (NCCL's two lines); nothing may be invented.
  CHECK(read.messages.size() <= samples.size());
  CHECK(read.messages.size() + 8 >= samples.size());
  CHECK(read.messages.front().library == samples.front().library);
}

TEST_CASE("the same message from eight ranks is eight messages") {
  Writer writer(5);
  writer.sample.text =
      torch_old(writer, writer.size(SizeKind::reserved) + " reserved in total by PyTorch)");
  std::string log;
  for (int rank = 0; rank < 8; ++rank) {
    log += "[rank" + std::to_string(rank) + "]: " + writer.sample.text + "\n";
  }
  CHECK(read_oom_text(log).messages.size() == 8);
}

TEST_CASE("the innermost line of the caller's own code is found") {
  const std::string log =
      "Traceback (most recent call last):\n"
      "  File \"/home/me/train.py\", line 210, in <module>\n    main()\n"
      "  File \"/home/me/model.py\", line 57, in forward\n    x = self.mlp(x)\n"
      "  File \"/usr/lib/python3.11/site-packages/torch/nn/modules/module.py\", line 1501, in "
      "_call_impl\n"
      "    return forward_call(*args, **kwargs)\n"
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 "
      "GiB total "
      "capacity; 20.00 GiB already allocated; 1.00 GiB free; 21.00 GiB reserved in total by "
      "PyTorch)\n";
  CHECK(read_oom_text(log).raised_at == "model.py:57 forward");
}

TEST_CASE("what is no OOM message is not recognised") {
  for (const char* text :
       {"", "hello", "RuntimeError: CUDA error: device-side assert triggered",
        "If you get CUDA out of memory errors, lower the batch size",
        "Epoch 3: allocated 12.50 GiB, reserved 14.00 GiB, free 9.00 GiB",
        "the rest of the memory reserved for KV Cache is 3.21GiB.",
        "torch.cuda.OutOfMemoryError is a subclass of RuntimeError",
        "RESOURCE_EXHAUSTED: Received message larger than max (5000000 vs. 4194304)"}) {
    INFO(text);
    CHECK(read_oom_text(text).messages.empty());
  }
}

TEST_CASE("settings count only where the log shows them in force") {
  const std::string message =
      "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of "
      "which 1.00 "
      "GiB is free. Of the allocated memory 20.00 GiB is allocated by PyTorch, and 1.00 GiB is "
      "reserved by "
      "PyTorch but unallocated. If reserved but unallocated memory is large try setting "
      "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.";
  CHECK(read_oom_text(message).settings.empty());
  const OomText shown =
      read_oom_text("+ export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n" + message);
  CHECK(shown.settings.at("expandable_segments") == "true");
}

}  // namespace vramtrack
