// The processes of a job and what leaks in them, as text and as JSON: `leaks FOLDER`.
#ifndef VRAMTRACK_ANALYZER_REPORT_JOB_REPORT_H
#define VRAMTRACK_ANALYZER_REPORT_JOB_REPORT_H

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "diagnosis/leaks/job_processes.h"

namespace vramtrack {

struct JobReport {
  std::string folder;
  double idle_after_s = 0;             // from which a process counts as idle
  std::vector<JobProcess> processes;   // by their beginning
  std::vector<size_t> leaks;           // found in each
  std::vector<double> bytes_per_step;  // of these
  std::vector<IdleProcess> idle;
  std::vector<IdleProcess> silent;  // the same, had they lived as long as the job: nobody knows
  std::vector<std::string> notes;  // files that could not be read
};

std::string job_text(const JobReport& report);
nlohmann::ordered_json job_json(const JobReport& report);  // vramtrack.processes/1

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_JOB_REPORT_H
