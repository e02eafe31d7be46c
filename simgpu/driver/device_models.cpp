// The table of cards.
//
// Compute capability, multiprocessors, caches and limits: NVIDIA's data sheets and the "technical
// specifications per compute capability" of the CUDA programming guide. `total_bytes`: what such
// cards report in published deviceQuery and PyTorch output; it differs by some MiB between drivers.
// `context_bytes` is an ESTIMATE (lazily loaded modules, no libraries), never measured here.
#include "device_models.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace simgpu {
namespace {

constexpr std::uint64_t mib(std::uint64_t count) {
  return count << 20;
}
constexpr int kib(int count) {
  return count * 1024;
}

// key, name, cc, SMs, bytes, context ESTIMATE, L2, bus, clocks, threads/SM, blocks/SM, shared
constexpr DeviceModel kModels[] = {
    {"t4", "Tesla T4", 7, 5, 40, mib(14913), mib(140), 4 << 20, 256, 1590000, 5001000, 1024, 16,
     kib(64), kib(64)},
    {"v100-16g", "Tesla V100-SXM2-16GB", 7, 0, 80, mib(16151), mib(310), 6 << 20, 4096, 1530000,
     877000, 2048, 32, kib(96), kib(96)},
    {"v100-32g", "Tesla V100-SXM2-32GB", 7, 0, 80, mib(32502), mib(310), 6 << 20, 4096, 1530000,
     877000, 2048, 32, kib(96), kib(96)},
    {"a100-40g", "NVIDIA A100-SXM4-40GB", 8, 0, 108, mib(40339), mib(420), 40 << 20, 5120, 1410000,
     1215000, 2048, 32, kib(164), kib(163)},
    {"a100-80g", "NVIDIA A100-SXM4-80GB", 8, 0, 108, mib(81050), mib(420), 40 << 20, 5120, 1410000,
     1593000, 2048, 32, kib(164), kib(163)},
    {"a10g", "NVIDIA A10G", 8, 6, 80, mib(22580), mib(260), 6 << 20, 384, 1710000, 6251000, 1536,
     16, kib(100), kib(99)},
    {"a6000-48g", "NVIDIA RTX A6000", 8, 6, 84, mib(48669), mib(260), 6 << 20, 384, 1800000,
     8001000, 1536, 16, kib(100), kib(99)},
    {"rtx3090", "NVIDIA GeForce RTX 3090", 8, 6, 82, mib(24116), mib(260), 6 << 20, 384, 1695000,
     9751000, 1536, 16, kib(100), kib(99)},
    {"l4", "NVIDIA L4", 8, 9, 58, mib(22563), mib(240), 48 << 20, 192, 2040000, 6251000, 1536, 24,
     kib(100), kib(99)},
    {"l40s", "NVIDIA L40S", 8, 9, 142, mib(45458), mib(390), 96 << 20, 384, 2520000, 9001000, 1536,
     24, kib(100), kib(99)},
    {"rtx4090", "NVIDIA GeForce RTX 4090", 8, 9, 128, mib(24210), mib(380), 72 << 20, 384, 2520000,
     10501000, 1536, 24, kib(100), kib(99)},
    {"h100-80g", "NVIDIA H100 80GB HBM3", 9, 0, 132, mib(81006), mib(520), 50 << 20, 5120, 1980000,
     2619000, 2048, 32, kib(228), kib(227)},
    {"h200", "NVIDIA H200", 9, 0, 132, mib(143167), mib(520), 60 << 20, 6144, 1980000, 3201000,
     2048, 32, kib(228), kib(227)},
    {"b200", "NVIDIA B200", 10, 0, 148, mib(182642), mib(640), 126 << 20, 8192, 1965000, 3996000,
     2048, 32, kib(228), kib(227)},
    {"rtx5090", "NVIDIA GeForce RTX 5090", 12, 0, 170, mib(32109), mib(440), 96 << 20, 512, 2407000,
     14001000, 1536, 24, kib(100), kib(99)},
};
constexpr const char* kDefault = "h100-80g";

std::string lower(std::string_view text) {
  std::string result;
  for (char c : text)
    if (std::isspace(static_cast<unsigned char>(c)) == 0)
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// "8gib", "512mib", "24gb" (decimal); 0 where the word is no size.
std::uint64_t parse_size(const std::string& word) {
  char* end = nullptr;
  double number = std::strtod(word.c_str(), &end);
  std::string unit = end;
  double scale = unit == "gib" || unit == "g"   ? 0x1p30
                 : unit == "mib" || unit == "m" ? 0x1p20
                 : unit == "gb"                 ? 1e9
                 : unit == "mb"                 ? 1e6
                                                : 0;
  if (scale == 0 || !(number > 0) || number * scale > 0x1p46) return 0;
  return static_cast<std::uint64_t>(std::llround(number * scale));
}

const DeviceModel* find_model(std::string_view key) {
  for (const DeviceModel& model : kModels)
    if (key == model.key) return &model;
  // The size may be left out where only one card has the name: "a6000", "h100".
  const DeviceModel* found = nullptr;
  for (const DeviceModel& model : kModels) {
    std::string_view name = model.key;
    if (name.size() > key.size() && name.starts_with(key) && name[key.size()] == '-') {
      if (found != nullptr) return nullptr;
      found = &model;
    }
  }
  return found;
}

bool parse_word(const std::string& word, std::vector<DeviceModel>& devices) {
  std::size_t digits = 0;
  while (digits < word.size() && std::isdigit(static_cast<unsigned char>(word[digits])) != 0)
    ++digits;
  int count = 1;
  std::string key = word;
  if (digits > 0 && digits <= 2 && digits < word.size() && word[digits] == 'x') {
    count = std::atoi(word.c_str());
    key = word.substr(digits + 1);
  }
  DeviceModel model;
  if (const DeviceModel* known = find_model(key)) {
    model = *known;
  } else if (std::uint64_t bytes = parse_size(key)) {
    // A size alone: an A100 in everything else.
    model = *find_model("a100-80g");
    model.key = "sized";
    model.name = "Simulated GPU";
    model.total_bytes = bytes;
    model.context_bytes = std::min(model.context_bytes, bytes / 16);
  } else {
    return false;
  }
  if (count < 1 || devices.size() + static_cast<std::size_t>(count) > 64) return false;
  devices.insert(devices.end(), static_cast<std::size_t>(count), model);
  return true;
}

}  // namespace

std::vector<DeviceModel> parse_devices(std::string_view text, std::string& error) {
  std::vector<DeviceModel> devices;
  std::string words = lower(text.empty() ? kDefault : text);
  std::size_t start = 0;
  while (start <= words.size()) {
    std::size_t end = std::min(words.find(',', start), words.size());
    std::string word = words.substr(start, end - start);
    if (!parse_word(word, devices)) {
      error = "SIMGPU names no device that can be simulated: \"" + word + "\"; known are";
      for (const DeviceModel& model : kModels) error += std::string(" ") + model.key;
      error += " and a size such as 8GiB, with a count in front as in \"2x h200\"";
      return {};
    }
    start = end + 1;
  }
  for (std::size_t i = 0; i < devices.size(); ++i) devices[i].index = static_cast<int>(i);
  return devices;
}

void device_uuid(int index, unsigned char uuid[16]) {
  constexpr unsigned char kMark[4] = {'S', 'I', 'M', 'G'};
  std::memset(uuid, 0, 16);
  std::memcpy(uuid, kMark, sizeof kMark);
  uuid[15] = static_cast<unsigned char>(index);
}

std::string uuid_text(int index) {
  unsigned char uuid[16];
  device_uuid(index, uuid);
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%02x", uuid[i]);
    text += digits;
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

std::vector<DeviceModel> visible_devices(const std::vector<DeviceModel>& devices,
                                         const char* visible) {
  if (visible == nullptr) return devices;
  std::vector<DeviceModel> left;
  std::string words = lower(visible);
  for (std::size_t start = 0; start < words.size();) {
    std::size_t end = std::min(words.find(',', start), words.size());
    std::string word = words.substr(start, end - start);
    start = end + 1;
    // The list ends at the first word that is no device, or names one twice.
    const DeviceModel* found = nullptr;
    for (const DeviceModel& device : devices) {
      std::string uuid = lower(uuid_text(device.index));
      if (word == std::to_string(device.index) ||
          (word.size() > 4 && word.starts_with("gpu-") && uuid.starts_with(word)))
        found = &device;
    }
    if (found == nullptr) break;
    for (const DeviceModel& device : left)
      if (device.index == found->index) return {};
    left.push_back(*found);
  }
  return left;
}

}  // namespace simgpu
