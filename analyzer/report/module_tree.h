// Live bytes as a tree of modules. Names are split at their dots, class paths at their slashes;
// each node counts what lies below it.
//
//   blocks.0.attention.qkv        layer by layer
//   blocks.*.attention.qkv        layers summed: a numbered module that has modules inside is a
//   layer
//                                 ("blocks.0"), one that has none is a part of its own ("mlp.0")
#ifndef VRAMTRACK_ANALYZER_REPORT_MODULE_TREE_H
#define VRAMTRACK_ANALYZER_REPORT_MODULE_TREE_H

#include <set>
#include <string>
#include <vector>

#include "report/groups.h"

namespace vramtrack {

struct ModuleNode {
  std::string path;                      // "blocks.0.attention"; of the root empty
  Amount amount;                         // with everything below
  Amount own;                            // made in this module itself
  size_t layers = 1;                     // how many modules a summed node stands for
  std::map<std::string, uint64_t> rows;  // by category, with everything below
  std::vector<CallSite> sites;           // of `own`, largest first
  std::vector<ModuleNode> children;      // largest first; equal ones in the order of their names
};

struct ModuleTrees {
  ModuleNode by_layer;
  ModuleNode summed;
};

// From groups by Grouping::module.
ModuleTrees module_trees(const std::vector<Group>& groups);

// One line of a table of modules: a node, `depth` levels below the root.
struct ModuleRow {
  const ModuleNode* node;
  size_t depth;
};

// The `most` largest nodes below the root, parents before children. A parent is never smaller than
// its children, so what is shown is always a tree.
std::vector<ModuleRow> largest_modules(const ModuleNode& root, size_t most);
size_t count_modules(const ModuleNode& root);  // below the root

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_MODULE_TREE_H
