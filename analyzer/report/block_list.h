// Every live block at one moment, one by one.
#ifndef VRAMTRACK_ANALYZER_REPORT_BLOCK_LIST_H
#define VRAMTRACK_ANALYZER_REPORT_BLOCK_LIST_H

#include <cstdio>
#include <string>

#include "attribution/rules.h"

namespace vramtrack {

struct BlockListOptions {
  std::string at;        // empty: the default moment
  std::string category;  // only this row or category; empty: all
  int device = -2;       // -2: all; -1: CPU tensors
  size_t top = 50;       // for text: the largest
};

// Streams: a job may have hundreds of thousands of blocks.
void write_blocks_json(const Recording& recording, const BlockListOptions& options, FILE* out);
void write_blocks_text(const Recording& recording, const BlockListOptions& options, FILE* out);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_BLOCK_LIST_H
