// Jobs whose truth is known: call sites that grow and call sites that do not, each with a memory of
// its own kind, as a recording made in memory. Behind the published detection rates.
#ifndef VRAMTRACK_TESTS_LEAKS_SYNTHETIC_JOB_H
#define VRAMTRACK_TESTS_LEAKS_SYNTHETIC_JOB_H

#include <memory>
#include <string>
#include <vector>

#include "trace/recording.h"

namespace vramtrack::test {

struct SyntheticSite {
  std::string kind;
  bool grows = false;
  double bytes_per_step = 0;  // of the growth, once it has begun
  uint64_t first_step = 0;    // of the growth
  std::vector<double> bytes;  // live at the end of each step
};

// The kinds that `sites` are drawn from, in the order of the table.
const std::vector<std::string>& growing_kinds();
const std::vector<std::string>& healthy_kinds();

struct SyntheticJob {
  std::vector<SyntheticSite> sites;
  std::unique_ptr<Recording> recording;  // site i is line i + 1 of job.py
};

// `growing` and `healthy` sites, their kinds in turn, all else by `seed`.
SyntheticJob make_job(unsigned seed, size_t growing, size_t healthy, size_t steps);

}  // namespace vramtrack::test

#endif  // VRAMTRACK_TESTS_LEAKS_SYNTHETIC_JOB_H
