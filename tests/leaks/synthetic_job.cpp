#include "synthetic_job.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <random>

namespace vramtrack::test {
namespace {

constexpr double kMiB = 1024 * 1024;
using Random = std::mt19937_64;

double uniform(Random& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}
double normal(Random& random) {
  return std::normal_distribution<double>()(random);
}
bool chance(Random& random, double probability) {
  return uniform(random, 0, 1) < probability;
}

using Series = std::vector<double>;

void add_white_noise(Series& series, Random& random, double spread) {
  for (double& value : series) value += spread * normal(random);
}

// Each value remembers a part of the one before.
void add_red_noise(Series& series, Random& random, double spread, double memory) {
  double noise = 0;
  const double fresh = spread * std::sqrt(1 - memory * memory);
  for (int i = 0; i < 100; ++i) noise = memory * noise + fresh * normal(random);
  for (double& value : series) {
    noise = memory * noise + fresh * normal(random);
    value += noise;
  }
}

void add_season(Series& series, Random& random, double height, double period) {
  const double phase = uniform(random, 0, 6.28);
  for (size_t i = 0; i < series.size(); ++i)
    series[i] += height * std::sin(phase + 6.283185 * static_cast<double>(i) / period);
}

void add_spikes(Series& series, Random& random, double height, double probability) {
  for (double& value : series)
    if (chance(random, probability)) value += height * uniform(random, 0.5, 1.5);
}

void add_line(Series& series, double slope, size_t from = 0) {
  for (size_t i = from; i < series.size(); ++i) series[i] += slope * static_cast<double>(i - from);
}

// Sizes of a lump, 1 on average.
double even_lump(Random& random) {
  return uniform(random, 0, 2);
}
double skewed_lump(Random& random) {
  return std::exp(normal(random) - 0.5);
}

// Each step brings a lump or none; `slope` on average.
void add_lumps(Series& series, Random& random, double slope, double probability,
               double (*lump)(Random&)) {
  double leaked = 0;
  for (double& value : series) {
    if (chance(random, probability)) leaked += slope / probability * lump(random);
    value += leaked;
  }
}

Series level(size_t steps, Random& random) {
  return Series(steps, uniform(random, 20, 200) * kMiB);
}

using Maker = std::function<void(SyntheticSite&, Random&)>;
struct Kind {
  std::string name;
  Maker make;
};

double drawn_slope(SyntheticSite& site, Random& random) {
  return site.bytes_per_step = uniform(random, 0.02, 1.0) * kMiB;
}

const std::vector<Kind>& growing() {
  static const std::vector<Kind> kinds = {
      {"steady, white noise",
       [](SyntheticSite& site, Random& random) {
         const double slope = drawn_slope(site, random);
         add_line(site.bytes, slope);
         add_white_noise(site.bytes, random, slope * uniform(random, 0, 10));
       }},
      {"steady, noise with a memory",
       [](SyntheticSite& site, Random& random) {
         const double slope = drawn_slope(site, random);
         add_line(site.bytes, slope);
         add_red_noise(site.bytes, random, slope * uniform(random, 2, 10),
                       uniform(random, 0.5, 0.9));
       }},
      {"under a season",
       [](SyntheticSite& site, Random& random) {
         const double slope = drawn_slope(site, random);
         add_line(site.bytes, slope);
         add_season(site.bytes, random, slope * uniform(random, 5, 20), uniform(random, 8, 40));
         add_white_noise(site.bytes, random, slope * 2);
       }},
      {"in steps, every few",
       [](SyntheticSite& site, Random& random) {
         const auto every = static_cast<size_t>(uniform(random, 4, 20));
         const double slope = drawn_slope(site, random);
         for (size_t i = 0; i < site.bytes.size(); ++i)
           site.bytes[i] += slope * static_cast<double>(i - i % every);
         add_white_noise(site.bytes, random, slope * uniform(random, 0, 3));
       }},
      {"slow drift",
       [](SyntheticSite& site, Random& random) {
         const double slope = drawn_slope(site, random) / 10;
         site.bytes_per_step = slope;
         add_line(site.bytes, slope);
         const double whole = slope * static_cast<double>(site.bytes.size());
         add_white_noise(site.bytes, random, whole / uniform(random, 3, 8));
       }},
      {"begins late",
       [](SyntheticSite& site, Random& random) {
         const double slope = drawn_slope(site, random);
         site.first_step = static_cast<uint64_t>(static_cast<double>(site.bytes.size()) *
                                                 uniform(random, 0.2, 0.6));
         add_line(site.bytes, slope, site.first_step);
         add_white_noise(site.bytes, random, slope * uniform(random, 0, 4));
       }},
      {"at random, in lumps",
       [](SyntheticSite& site, Random& random) {
         add_lumps(site.bytes, random, drawn_slope(site, random), 0.25, even_lump);
       }},
      {"lumps, few and far between",
       [](SyntheticSite& site, Random& random) {
         add_lumps(site.bytes, random, drawn_slope(site, random), 0.1, even_lump);
       }},
      {"lumps of all sizes",
       [](SyntheticSite& site, Random& random) {
         add_lumps(site.bytes, random, drawn_slope(site, random), 0.25, skewed_lump);
       }},
      {"lumps under noise",
       [](SyntheticSite& site, Random& random) {
         const double slope = drawn_slope(site, random);
         add_lumps(site.bytes, random, slope, 0.25, even_lump);
         add_white_noise(site.bytes, random, slope * uniform(random, 1, 5));
       }},
      {"under spikes",
       [](SyntheticSite& site, Random& random) {
         const double slope = drawn_slope(site, random);
         add_line(site.bytes, slope);
         add_spikes(site.bytes, random, slope * uniform(random, 20, 200), 0.1);
       }},
  };
  return kinds;
}

const std::vector<Kind>& healthy() {
  static const std::vector<Kind> kinds = {
      {"level, white noise",
       [](SyntheticSite& site, Random& random) {
         add_white_noise(site.bytes, random, uniform(random, 0, 5) * kMiB);
       }},
      {"level, noise with a memory",
       [](SyntheticSite& site, Random& random) {
         add_red_noise(site.bytes, random, uniform(random, 1, 5) * kMiB, uniform(random, 0.5, 0.9));
       }},
      {"season",
       [](SyntheticSite& site, Random& random) {
         add_season(site.bytes, random, uniform(random, 1, 10) * kMiB, uniform(random, 8, 60));
         add_white_noise(site.bytes, random, 0.5 * kMiB);
       }},
      {"warm-up, then level",
       [](SyntheticSite& site, Random& random) {
         const auto end = static_cast<size_t>(static_cast<double>(site.bytes.size()) *
                                              uniform(random, 0.02, 0.15));
         for (size_t i = 0; i < end; ++i)
           site.bytes[i] *= static_cast<double>(i + 1) / static_cast<double>(end);
         add_white_noise(site.bytes, random, uniform(random, 0, 1) * kMiB);
       }},
      {"a bounded cache that fills up",
       [](SyntheticSite& site, Random& random) {
         const auto full = static_cast<double>(site.bytes.size()) * uniform(random, 0.1, 0.5);
         for (size_t i = 0; i < site.bytes.size(); ++i)
           site.bytes[i] += 50 * kMiB * std::min(1.0, static_cast<double>(i) / full);
         add_white_noise(site.bytes, random, uniform(random, 0, 1) * kMiB);
       }},
      {"made once, at some step",
       [](SyntheticSite& site, Random& random) {
         const auto at = static_cast<size_t>(static_cast<double>(site.bytes.size()) *
                                             uniform(random, 0.1, 0.9));
         for (size_t i = at; i < site.bytes.size(); ++i) site.bytes[i] += 80 * kMiB;
         add_white_noise(site.bytes, random, uniform(random, 0, 1) * kMiB);
       }},
      {"an evaluation every so many steps",
       [](SyntheticSite& site, Random& random) {
         const auto every = static_cast<size_t>(uniform(random, 5, 40));
         for (size_t i = every; i < site.bytes.size(); i += every) site.bytes[i] += 60 * kMiB;
       }},
      {"variable lengths",
       [](SyntheticSite& site, Random& random) {
         for (double& value : site.bytes) value *= std::exp(0.5 * normal(random));
       }},
      {"grows and is freed, again and again",
       [](SyntheticSite& site, Random& random) {
         const auto every = static_cast<size_t>(uniform(random, 10, 40));
         const auto phase = static_cast<size_t>(uniform(random, 0, static_cast<double>(every)));
         for (size_t i = 0; i < site.bytes.size(); ++i)
           site.bytes[i] += static_cast<double>((i + phase) % every) * kMiB;
       }},
  };
  return kinds;
}

class MadeRecording final : public Recording {
 public:
  MadeRecording() {
    info_.path = "synthetic";
    info_.devices = {{.ordinal = 0, .name = "card", .total_bytes = uint64_t{80} << 30}};
  }
  StackId line(uint32_t number) {
    const FrameId frame = definitions_.intern_frame(
        {.function = "train", .file = "/job/job.py", .line = number, .python = true});
    return definitions_.intern_stack(std::span(&frame, 1));
  }
  void add(Event event) {
    event.device = 0;
    event.sequence = events_.size() + 1;
    event.time_ns = event.sequence * 1000;
    events_.push_back(event);
    info_.event_count = events_.size();
  }
  void for_each(const std::function<bool(const Event&)>& visit) const override {
    for (const Event& event : events_)
      if (!visit(event)) return;
  }

 private:
  std::vector<Event> events_;
};

// Brings a site's live blocks to what its series says: grows by a new block, shrinks by freeing
// blocks at random, so that neither age nor number of its blocks gives its kind away.
class SitePlayer {
 public:
  SitePlayer(MadeRecording& recording, StackId stack, uint64_t base)
      : recording_(recording), stack_(stack), next_(base) {}

  void go_to(double bytes, Random& random) {
    const auto wanted = static_cast<uint64_t>(std::max(bytes, 512.0)) / 512 * 512;
    while (live_ > wanted) {
      const auto at = static_cast<std::ptrdiff_t>(random() % blocks_.size());
      const Held gone = blocks_[static_cast<size_t>(at)];
      recording_.add({.kind = EventKind::block_free, .address = gone.address, .size = gone.size});
      live_ -= gone.size;
      blocks_.erase(blocks_.begin() + at);
    }
    while (live_ < wanted) {
      const uint64_t size = std::min<uint64_t>(wanted - live_, 8 << 20);
      recording_.add(
          {.kind = EventKind::block_alloc, .address = next_, .size = size, .stack = stack_});
      blocks_.push_back({next_, size});
      next_ += size;
      live_ += size;
    }
  }

 private:
  struct Held {
    uint64_t address;
    uint64_t size;
  };
  MadeRecording& recording_;
  StackId stack_;
  uint64_t next_;
  uint64_t live_ = 0;
  std::deque<Held> blocks_;
};

std::vector<std::string> names_of(const std::vector<Kind>& kinds) {
  std::vector<std::string> names;
  names.reserve(kinds.size());
  for (const Kind& kind : kinds) names.push_back(kind.name);
  return names;
}

}  // namespace

const std::vector<std::string>& growing_kinds() {
  static const std::vector<std::string> names = names_of(growing());
  return names;
}
const std::vector<std::string>& healthy_kinds() {
  static const std::vector<std::string> names = names_of(healthy());
  return names;
}

SyntheticJob make_job(unsigned seed, size_t growing_sites, size_t healthy_sites, size_t steps) {
  Random random(seed);
  SyntheticJob job;
  const auto add_sites = [&](const std::vector<Kind>& kinds, size_t count, bool grows) {
    for (size_t i = 0; i < count; ++i) {
      const Kind& kind = kinds[(i + seed) % kinds.size()];
      SyntheticSite site{.kind = kind.name, .grows = grows, .bytes = level(steps, random)};
      kind.make(site, random);
      job.sites.push_back(std::move(site));
    }
  };
  add_sites(growing(), growing_sites, true);
  add_sites(healthy(), healthy_sites, false);

  auto recording = std::make_unique<MadeRecording>();
  std::vector<SitePlayer> players;
  for (size_t i = 0; i < job.sites.size(); ++i)
    players.emplace_back(*recording, recording->line(static_cast<uint32_t>(i + 1)), (i + 1) << 40);
  for (size_t step = 0; step < steps; ++step) {
    recording->add({.kind = EventKind::step, .extra = step});
    for (size_t i = 0; i < players.size(); ++i) players[i].go_to(job.sites[i].bytes[step], random);
  }
  recording->add({.kind = EventKind::step, .extra = steps});
  job.recording = std::move(recording);
  return job;
}

}  // namespace vramtrack::test
