// From the facts of an OOM in a recording to a verdict and to advice.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_RECORDING_DIAGNOSIS_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_RECORDING_DIAGNOSIS_H

#include <vector>

#include "diagnosis/oom/advice.h"
#include "diagnosis/oom/oom_audit.h"
#include "diagnosis/oom/oom_scene.h"

namespace vramtrack {

struct RecordingDiagnosis {
  OomScene scene;
  OomNumbers numbers;
  OomAudit audit;
  std::vector<Advice> advice;
};

RecordingDiagnosis diagnose_recording(const Recording& recording, int16_t device = -1);

// The verdict alone, from facts: for tests, and for the one line that `vramtrack report` prints.
OomAudit judge_scene(const OomScene& scene, const OomNumbers& numbers);
OomNumbers numbers_of(const OomScene& scene);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_RECORDING_DIAGNOSIS_H
