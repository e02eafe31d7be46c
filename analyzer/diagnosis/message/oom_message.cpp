#include "diagnosis/message/oom_message.h"

#include <algorithm>
#include <array>

#include "diagnosis/message/message_text.h"
#include "diagnosis/message/recognisers.h"

namespace vramtrack {
namespace {

constexpr size_t kMaxMessages = 10000;

struct Anchor {
  Recogniser recogniser;
  size_t next = 0;
};

std::vector<Anchor> all_anchors() {
  std::vector<Anchor> anchors;
  for (const auto table : {pytorch_recognisers(), compiler_recognisers(), serving_recognisers(),
                           library_recognisers(), host_recognisers()}) {
    for (const Recogniser& recogniser : table) anchors.push_back({recogniser});
  }
  // At one place the longest anchor knows best: "outofmemoryallocating" before "outofmemory".
  std::stable_sort(anchors.begin(), anchors.end(), [](const Anchor& a, const Anchor& b) {
    return a.recogniser.anchor.size() > b.recogniser.anchor.size();
  });
  return anchors;
}

bool overlap(const PrintedSize& a, const PrintedSize& b) {
  return a.low() <= b.high() && b.low() <= a.high();
}

bool same_family(const OomMessage& a, const OomMessage& b) {
  const auto compiler = [](const OomMessage& m) {
    return m.library == "JAX/XLA" || m.library == "TensorFlow" || m.library == "JAX/TensorFlow";
  };
  return a.library == b.library || (compiler(a) && compiler(b));
}

// Several lines about one failure: a library's warning, then the exception that it became.
bool same_failure(const OomMessage& first, const OomMessage& next) {
  if (!same_family(first, next)) return false;
  const auto a = first.size(SizeKind::ask);
  const auto b = next.size(SizeKind::ask);
  if (a && b) return first.form != next.form && overlap(*a, *b);
  if (first.kind == MessageKind::host) return next.kind == MessageKind::host && next.sizes.empty();
  return first.form != next.form || next.library == "NCCL" || next.library == "llama.cpp/ggml";
}

void merge(const OomMessage& next, OomMessage& first) {
  for (const auto& [which, size] : next.sizes) keep_size(which, size, first);
  for (const auto& [key, value] : next.details) first.details.emplace(key, value);
  if (first.device.empty()) first.device = next.device;
  first.end = std::max(first.end, next.end);
}

// "CUDA out of memory." with nothing behind it tells less than any other message.
bool says_nothing(const OomMessage& message) {
  return message.kind == MessageKind::device && message.sizes.empty();
}

void keep(const OomMessage& message, OomText& result) {
  auto& messages = result.messages;
  if (!messages.empty()) {
    OomMessage& last = messages.back();
    if (same_failure(last, message)) return merge(message, last);
    // The plain error and PyTorch's own words for the same exception.
    if (last.library == "CUDA" && message.library != "CUDA" && says_nothing(last) &&
        message.begin - last.end < 400) {
      last = message;
      return;
    }
    if (message.library == "CUDA" && message.begin - last.end < 400 &&
        last.kind == MessageKind::device) {
      last.end = std::max(last.end, message.end);
      return;
    }
  }
  if (messages.size() < kMaxMessages) {
    messages.push_back(message);
  } else {
    ++result.more;
  }
}

void read_messages(std::string_view text, OomText& result) {
  std::vector<Anchor> anchors = all_anchors();
  size_t from = 0;
  for (Anchor& anchor : anchors) anchor.next = text.find(anchor.recogniser.anchor);
  while (true) {
    size_t at = std::string_view::npos;
    for (Anchor& anchor : anchors) {
      if (anchor.next < from) anchor.next = text.find(anchor.recogniser.anchor, from);
      at = std::min(at, anchor.next);
    }
    if (at == std::string_view::npos) return;
    size_t end = at + 1;
    for (const Anchor& anchor : anchors) {
      if (anchor.next != at) continue;
      auto message = anchor.recogniser.read({text, at, text.size()});
      if (!message) continue;
      message->end = std::clamp(message->end, at + anchor.recogniser.anchor.size(), text.size());
      end = message->end;
      keep(*message, result);
      break;
    }
    from = end;
  }
}

// Allocator settings of an environment that the log shows: NAME=value, where the words before are
// not the suggestion of PyTorch's message.
void read_settings(std::string_view text, OomText& result) {
  constexpr std::string_view kName = "alloc_conf=";
  constexpr std::array kKeys = {std::string_view("expandable_segments"),
                                std::string_view("max_split_size_mb"),
                                std::string_view("garbage_collection_threshold"),
                                std::string_view("roundup_power2_divisions"),
                                std::string_view("backend"),
                                std::string_view("per_process_memory_fraction")};
  for (size_t at = text.find(kName); at != std::string_view::npos; at = text.find(kName, at + 1)) {
    const std::string_view before = text.substr(at > 40 ? at - 40 : 0, std::min<size_t>(at, 40));
    if (before.find("setting") != std::string_view::npos) continue;
    const std::string_view value = text.substr(at + kName.size(), 200);
    for (const std::string_view key : kKeys) {
      const size_t found = value.find(std::string(key) + ":");
      if (found == std::string_view::npos) continue;
      const std::string_view rest = value.substr(found + key.size() + 1);
      size_t end = 0;
      while (end < rest.size() && (std::isalnum(static_cast<unsigned char>(rest[end])) ||
                                   rest[end] == '.' || rest[end] == '[' || rest[end] == ']')) {
        ++end;
      }
      // "true" may be glued to the next word of the log.
      std::string setting(rest.substr(0, end));
      if (setting.starts_with("true")) setting = "true";
      if (setting.starts_with("false")) setting = "false";
      result.settings.emplace(key, setting);
    }
  }
}

// "MIG 3g.20gb"
std::string mig_profile(std::string_view text) {
  for (size_t at = text.find("mig"); at != std::string_view::npos; at = text.find("mig", at + 1)) {
    const std::string_view rest = text.substr(at + 3, 12);
    const size_t dot = rest.find("g.");
    const size_t end = rest.find("gb");
    if (dot == 1 && end != std::string_view::npos && end > 3 && end <= 6) {
      return std::string(rest.substr(0, end + 2));
    }
  }
  return {};
}

bool is_own_code(std::string_view line) {
  return line.find("site-packages") == std::string_view::npos &&
         line.find("dist-packages") == std::string_view::npos &&
         line.find("lib/python") == std::string_view::npos &&
         line.find("<frozen") == std::string_view::npos;
}

// The last `File "x", line N, in f` of own code at or above `line`.
std::string raised_at(const MessageText& text, size_t line) {
  constexpr size_t kLookBack = 400;
  const size_t first = line > kLookBack ? line - kLookBack : 1;
  for (size_t number = std::min(line, text.line_count()); number >= first && number > 0; --number) {
    const std::string_view content = text.line(number);
    const size_t file = content.find("File \"");
    const size_t close = content.find("\", line ");
    if (file == std::string_view::npos || close == std::string_view::npos || close < file + 6) {
      continue;
    }
    if (!is_own_code(content)) continue;
    std::string_view path = content.substr(file + 6, close - file - 6);
    const size_t slash = path.find_last_of("/\\");
    if (slash != std::string_view::npos) path = path.substr(slash + 1);
    std::string_view rest = content.substr(close + 8);
    const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    std::string place = std::string(path) + ":" + std::string(rest.substr(0, digits));
    const size_t function = rest.find(", in ");
    if (function != std::string_view::npos) {
      std::string_view name = rest.substr(function + 5);
      name = name.substr(0, std::min(name.find_first_of("\r "), name.size()));
      place += " " + std::string(name.substr(0, 100));
    }
    return place;
  }
  return {};
}

}  // namespace

std::string_view size_name(SizeKind size) {
  switch (size) {
    case SizeKind::ask:
      return "ask";
    case SizeKind::total:
      return "total";
    case SizeKind::free:
      return "free";
    case SizeKind::allocated:
      return "allocated";
    case SizeKind::reserved:
      return "reserved";
    case SizeKind::unallocated:
      return "reserved_unallocated";
    case SizeKind::limit:
      return "limit";
    case SizeKind::active:
      return "active";
    case SizeKind::private_pools:
      return "private_pools";
    case SizeKind::process:
      return "process";
    case SizeKind::other_in_use:
      return "other_in_use";
    case SizeKind::largest_free:
      return "largest_free";
    case SizeKind::peak:
      return "peak";
    case SizeKind::weights:
      return "weights";
    case SizeKind::non_torch:
      return "non_torch";
    case SizeKind::activation_peak:
      return "activation_peak";
    case SizeKind::kv_cache:
      return "kv_cache";
    case SizeKind::kv_needed:
      return "kv_needed";
    case SizeKind::budget:
      return "budget";
    case SizeKind::temporary:
      return "temporary";
    case SizeKind::planned:
      return "planned";
    case SizeKind::plan_fragmentation:
      return "plan_fragmentation";
    case SizeKind::required:
      return "required";
    case SizeKind::available:
      return "available";
  }
  return "unknown";
}

OomText read_oom_text(std::string_view original) {
  const MessageText text(original);
  OomText result;
  read_messages(text.squeezed(), result);
  // A bare mention beside real messages is a heading or a comment.
  if (std::any_of(result.messages.begin(), result.messages.end(),
                  [](const OomMessage& m) { return !says_nothing(m); })) {
    std::erase_if(result.messages, [](const OomMessage& m) {
      return says_nothing(m) && m.library.starts_with("PyTorch") && m.form == "short wording";
    });
  }
  if (result.messages.empty()) return result;
  for (OomMessage& message : result.messages) message.line = text.line_of(message.begin);
  read_settings(text.squeezed(), result);
  result.mig_profile = mig_profile(text.squeezed());
  const std::string_view squeezed = text.squeezed();
  result.windows = squeezed.find("file\"c:\\") != std::string_view::npos ||
                   squeezed.find("file\"d:\\") != std::string_view::npos ||
                   squeezed.find("winerror") != std::string_view::npos;
  result.raised_at = raised_at(text, result.messages.front().line);
  return result;
}

}  // namespace vramtrack
