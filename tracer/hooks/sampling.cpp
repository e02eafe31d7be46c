#include "hooks/sampling.h"

#include <time.h>

#include <atomic>
#include <cstring>

#include "record/address_set.h"
#include "record/config.h"
#include "record/recorder.h"

namespace vramtrack {
namespace {

// Where a thread is on its line.
struct Sampler {
  uint32_t epoch = 0;
  uint64_t random = 0;
  double to_next_point = 0;
};

constinit AddressSet g_kept;
thread_local constinit Sampler t_sampler __attribute__((tls_model("initial-exec")));

// splitmix64
uint64_t next_random(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// The distance between two points: exponential, with a mean of BYTES.
double distance(Sampler& sampler) {
  const double uniform = static_cast<double>((next_random(sampler.random) >> 11) + 1) * 0x1p-53;
  return -natural_logarithm(uniform) * static_cast<double>(config().sample_bytes);
}

Sampler& current() {
  Sampler& sampler = t_sampler;
  if (sampler.epoch != recording_epoch() || sampler.random == 0) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    sampler.epoch = recording_epoch();
    sampler.random = config().sample_seed != 0 ? config().sample_seed
                                               : (static_cast<uint64_t>(now.tv_sec) << 32 ^
                                                  static_cast<uint64_t>(now.tv_nsec) ^
                                                  reinterpret_cast<uintptr_t>(&sampler));
    sampler.to_next_point = distance(sampler);
  }
  return sampler;
}

// Several points may fall on one block; the next one after it is as far as ever.
bool point_falls_on(uint64_t size) {
  Sampler& sampler = current();
  sampler.to_next_point -= static_cast<double>(size);
  if (sampler.to_next_point > 0) return false;
  sampler.to_next_point = distance(sampler);
  return true;
}

uint64_t stands_for(uint64_t size) {
  const double kept =
      share_hit(static_cast<double>(size) / static_cast<double>(config().sample_bytes));
  const auto halves = static_cast<uint64_t>(2 * static_cast<double>(size) / kept);
  return (halves + 1) / 2;
}

}  // namespace

// x = m * 2^e with m around 1; ln m = 2 (y + y^3/3 + y^5/5 + ...) with y = (m - 1) / (m + 1).
double natural_logarithm(double x) {
  uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  bits = (bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL;
  double m = 0;
  std::memcpy(&m, &bits, sizeof m);
  if (m > 1.4142135623730951) {
    m /= 2;
    ++exponent;
  }
  const double y = (m - 1) / (m + 1);
  const double square = y * y;
  double sum = 0;
  for (int i = 21; i >= 1; i -= 2) sum = sum * square + 1.0 / i;
  return 2 * y * sum + exponent * 0.6931471805599453;
}

// exp(-x) = (exp(-x / 2^k))^(2^k), the inner one by its series. For small x the interesting part is
// what is missing to 1, so that is what is doubled up.
double share_hit(double x) {
  if (x > 40) return 1;
  int halvings = 0;
  while (x > 0.01) {
    x /= 2;
    ++halvings;
  }
  double missing = x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4)));
  for (; halvings > 0; --halvings) missing = missing * (2 - missing);
  return missing;
}

bool keep_allocation(Event& event) {
  if (config().sample_bytes == 0) return true;
  // Of an earlier block at this address the free was not seen: it is gone.
  g_kept.erase(event.address);
  if (!point_falls_on(event.size)) return false;
  if (!g_kept.insert(event.address)) return false;
  event.kind = EventKind::sampled_block;
  event.extra = stands_for(event.size);
  return true;
}

bool keep_free(const Event& event) {
  return config().sample_bytes == 0 || g_kept.erase(event.address);
}

void forget_sampled() {
  g_kept.clear();
}

}  // namespace vramtrack
