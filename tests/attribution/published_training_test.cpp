// Attribution of four published snapshots: one training program at context lengths 128 to 1024.
// Nobody labelled them, but what the sums must be follows from what they are: the same model and
// optimizer.
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "attribution/phase_peaks.h"
#include "attribution/rules.h"
#include "import/open.h"

namespace vramtrack {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

struct Peak {
  std::map<std::string, double> mib;  // requested, per category and per row
  double live = 0;                    // all of it
  double sure = 0;                    // judged at 0.9 or more
  Activity activity = Activity::unknown;
};

Peak peak_of(int context) {
  const std::string path = std::string(VRAMTRACK_TEST_DATA) + "/snapshots/train-ctx" +
                           std::to_string(context) + ".pickle.zst";
  const auto recording = open_recording(path);
  const Timeline timeline = survey(*recording);
  const Moment moment = find_moment(timeline, "allocated-peak", 0);
  const MemoryState state = state_at(*recording, moment);
  const Scene scene(*recording, timeline, state);
  Peak peak;
  peak.activity = scene.evidence().activity_at(moment.sequence);
  state.for_each_live(0, [&](const Block& block) {
    const Verdict verdict = judge(block, scene);
    const double mib = static_cast<double>(comparable_size(block)) / kMiB;
    peak.mib[std::string(name_of(verdict.category))] += mib;
    if (!verdict.sub_row.empty()) peak.mib[verdict.row()] += mib;
    peak.live += mib;
    if (verdict.confidence >= 0.9) peak.sure += mib;
  });
  return peak;
}

TEST_CASE("weights and optimizer state are the same at every length") {
  for (const int context : {128, 256, 512, 1024}) {
    INFO("context length " << context);
    Peak peak = peak_of(context);
    CHECK(peak.mib["parameters"] == Approx(1615).margin(6));
    CHECK(peak.mib["optimizer_state"] == Approx(2 * 1614.3).margin(1));
    CHECK(peak.mib["gradients"] <= peak.mib["parameters"] + 1);
    CHECK(peak.mib["other"] <= 0.03 * peak.live);
    CHECK(peak.mib["workspace"] >= 2 * 8.125);  // two cuBLAS workspaces
  }
}

TEST_CASE("the sums are the peaks that an independent reader found") {
  // requested bytes at the peak, in MiB, as tests/data/snapshots/expected.json has them
  CHECK(peak_of(128).live == Approx(6688.4).margin(0.1));
  CHECK(peak_of(256).live == Approx(8681.8).margin(0.1));
  CHECK(peak_of(512).live == Approx(11851.0).margin(0.1));
  CHECK(peak_of(1024).live == Approx(23085.8).margin(0.1));
}

// What is there when the forward pass is at its highest: the whole of it has been kept.
Peak forward_peak_of(int context) {
  const auto recording = open_recording(std::string(VRAMTRACK_TEST_DATA) + "/snapshots/train-ctx" +
                                        std::to_string(context) + ".pickle.zst");
  const Timeline timeline = survey(*recording);
  const StackTraitsCache traits(recording->definitions());
  Peak found;
  for (const PhasePeak& phase : find_phase_peaks(*recording, 0, traits)) {
    if (phase.moment.name != "forward-peak") continue;
    const MemoryState state = state_at(*recording, phase.moment);
    const Scene scene(*recording, timeline, state);
    state.for_each_live(0, [&](const Block& block) {
      const Verdict verdict = judge(block, scene);
      const double mib = static_cast<double>(comparable_size(block)) / kMiB;
      found.mib[std::string(name_of(verdict.category))] += mib;
      if (!verdict.sub_row.empty()) found.mib[verdict.row()] += mib;
    });
  }
  return found;
}

TEST_CASE("at its most, attention is quadratic in the length and other activations linear") {
  std::map<int, Peak> peaks;
  for (const int context : {128, 256, 512, 1024}) peaks[context] = forward_peak_of(context);
  // The shorter two ran in single precision, the longer two under autocast, which halves what
  // products read and write: laws hold within each pair.
  for (const int context : {128, 512}) {
    INFO("context length " << context << " and twice that");
    CHECK(peaks[2 * context].mib["attention"] ==
          Approx(4 * peaks[context].mib["attention"]).epsilon(0.05));
  }
  CHECK(peaks[256].mib["activations"] == Approx(2 * peaks[128].mib["activations"]).epsilon(0.05));
  // Beside a constant: weights that autocast keeps in half precision.
  CHECK(peaks[1024].mib["activations"] < 2.05 * peaks[512].mib["activations"]);
  CHECK(peaks[1024].mib["activations"] > 1.6 * peaks[512].mib["activations"]);
}

TEST_CASE("what is older than the recording is inferred, and said so") {
  for (const int context : {128, 256, 512, 1024}) {
    const auto recording =
        open_recording(std::string(VRAMTRACK_TEST_DATA) + "/snapshots/train-ctx" +
                       std::to_string(context) + ".pickle.zst");
    const Timeline timeline = survey(*recording);
    const MemoryState state = state_at(*recording, find_moment(timeline, "allocated-peak", 0));
    const Scene scene(*recording, timeline, state);
    double old = 0;
    state.for_each_live(0, [&](const Block& block) {
      const Verdict verdict = judge(block, scene);
      if (verdict.category == Category::parameters) {
        CHECK(verdict.confidence < 0.9);
        CHECK_THAT(verdict.reason, Catch::Contains("older than the recording"));
      }
      if ((block.flags & kEventReconstructed) != 0)
        old += static_cast<double>(comparable_size(block)) / kMiB;
    });
    CHECK(old > 1600);  // the weights at least
  }
}

TEST_CASE("attention grows with the square of the length, other activations with the length") {
  Peak half = peak_of(512);
  Peak full = peak_of(1024);
  CHECK(full.mib["attention"] - full.mib["attention/backward"] ==
        Approx(4 * half.mib["attention"]).epsilon(0.05));
  // The longer one peaks two layers into its backward pass, which has freed some already.
  CHECK(full.mib["activations"] > 1.6 * half.mib["activations"]);
  CHECK(full.mib["activations"] < 2.05 * half.mib["activations"]);
}

TEST_CASE("what an optimizer's last step leaves is state, though the recording ends in it") {
  const auto recording =
      open_recording(std::string(VRAMTRACK_TEST_DATA) + "/snapshots/train-ctx512.pickle.zst");
  const Timeline timeline = survey(*recording);
  const MemoryState state = state_at(*recording, find_moment(timeline, "end", 0));
  const Scene scene(*recording, timeline, state);
  double optimizer_state = 0;
  state.for_each_live(0, [&](const Block& block) {
    if (judge(block, scene).category == Category::optimizer_state)
      optimizer_state += static_cast<double>(comparable_size(block)) / kMiB;
  });
  CHECK(optimizer_state == Approx(2 * 1614.3).margin(1));
}

TEST_CASE("the peak moves from the optimizer to the loss to the backward pass") {
  // What allocated at the peak: optimizer.py:80, log_softmax in cross_entropy, an autograd thread.
  CHECK(peak_of(128).activity == Activity::optimizer);
  CHECK(peak_of(256).activity == Activity::forward);
  CHECK(peak_of(512).activity == Activity::backward);
  CHECK(peak_of(1024).activity == Activity::backward);
}

}  // namespace
}  // namespace vramtrack
