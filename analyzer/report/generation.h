// Growth inside one recording: a generation that decodes token after token. Each forward pass adds
// one token to the KV cache; its bytes per token, and how everything else follows, are read off the
// rounds themselves.
#ifndef VRAMTRACK_ANALYZER_REPORT_GENERATION_H
#define VRAMTRACK_ANALYZER_REPORT_GENERATION_H

#include <string>
#include <vector>

#include "report/growth_table.h"

namespace vramtrack {

// One forward pass. Its end is the instant after the last layer has stored its keys and values.
struct DecodeRound {
  Moment end;
  Moment peak;  // of allocated memory within it
  uint64_t kv_bytes = 0;
  uint64_t kv_blocks = 0;
};

struct Generation {
  std::vector<DecodeRound> rounds;  // of the longest generation of the recording; the first: prompt
  size_t generations = 0;           // how many there are
  double bytes_per_token = 0;       // of the cache, all sequences together
  bool steady = false;              // every round added exactly that
  double prompt_tokens = 0;         // 0 where the cache does not grow
  uint64_t layers = 0;              // two blocks each; 0 where the blocks are no such pairs

  [[nodiscard]] double tokens(size_t round) const {
    return prompt_tokens + static_cast<double>(round);
  }
};

// Throws InputError where nothing is decoded.
Generation find_generation(const Recording& recording, int16_t device);

// By the number of tokens in the cache, over at most nine rounds.
GrowthTable generation_table(const Recording& recording, const Generation& generation,
                             int16_t device);

std::string generation_text(const Generation& generation);
nlohmann::ordered_json generation_json(const Generation& generation);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_GENERATION_H
