// Any text may be handed to `vramtrack oom --message`: logs hold whatever programs printed.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "diagnosis/oom/oom_text_report.h"
#include "diagnosis/oom/text_diagnosis.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto diagnosis = vramtrack::diagnose_text(text);
  if (!diagnosis) return 0;
  // Both reports, too: they format every number that was read.
  const std::string report = vramtrack::text_report(*diagnosis);
  const std::string json = vramtrack::json_report(*diagnosis)
                               .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return report.empty() || json.empty() ? 1 : 0;
}
