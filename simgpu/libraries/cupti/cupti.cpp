// CUPTI for the simulated GPU: there is nothing to profile, and every request says so. The real
// library must not be reached: it wants private tables of the driver. torch.profiler then goes on
// with what it sees of the CPU.
#include "common/entry.h"

ENTRY(cuptiGetVersion)(std::uint32_t* version) {
  if (!version) return 1;
  *version = 130000;
  return 0;
}

ENTRY(cuptiGetResultString)(int result, const char** text) {
  if (!text) return 1;
  *text = result == 0 ? "CUPTI_SUCCESS" : "not simulated";
  return 0;
}
