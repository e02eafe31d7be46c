#include "detection.h"

#include <algorithm>
#include <cmath>

#include "diagnosis/leaks/leak_finder.h"
#include "synthetic_job.h"

namespace vramtrack::test {
namespace {

constexpr size_t kSitesOfEach = 50;

// Site i is line i + 1.
const LeakFinding* finding_of(const LeakReport& report, size_t site) {
  const std::string line = "job.py:" + std::to_string(site + 1) + " ";
  for (const LeakFinding& finding : report.findings)
    if ((finding.site + " ").starts_with(line)) return &finding;
  return nullptr;
}

void count(DetectionRow& row, const SyntheticSite& site, const LeakFinding* finding) {
  ++row.sites;
  if (finding == nullptr) return;
  ++row.reported;
  if (!site.grows) return;
  const double truth = site.bytes_per_step;
  row.covered +=
      finding->bytes_per_step_low <= truth && truth <= finding->bytes_per_step_high ? 1 : 0;
  row.half_width += (finding->bytes_per_step_high - finding->bytes_per_step_low) / 2 / truth;
  row.relative_error += std::fabs(finding->bytes_per_step - truth) / truth;
}

}  // namespace

std::vector<DetectionRow> measure_detection(unsigned first_seed, unsigned jobs, size_t steps) {
  std::vector<DetectionRow> rows;
  for (const std::string& kind : growing_kinds()) rows.push_back({.kind = kind, .grows = true});
  for (const std::string& kind : healthy_kinds()) rows.push_back({.kind = kind, .grows = false});
  for (unsigned seed = first_seed; seed < first_seed + jobs; ++seed) {
    const SyntheticJob job = make_job(seed, kSitesOfEach, kSitesOfEach, steps);
    const LeakReport report = find_leaks(*job.recording, survey(*job.recording));
    for (size_t i = 0; i < job.sites.size(); ++i) {
      const auto row = std::find_if(rows.begin(), rows.end(), [&](const DetectionRow& r) {
        return r.grows == job.sites[i].grows && r.kind == job.sites[i].kind;
      });
      count(*row, job.sites[i], finding_of(report, i));
    }
  }
  return rows;
}

}  // namespace vramtrack::test
