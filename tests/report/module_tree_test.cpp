// Trees of modules against sums that are done by hand.
#include "report/module_tree.h"

#include <catch2/catch.hpp>
#include <map>

#include "attribution/module_path.h"

namespace vramtrack {
namespace {

Group group(const std::string& name, uint64_t bytes, const std::string& site) {
  Group group{.name = name, .amount = {bytes, 1}, .rows = {{"activations", bytes}}};
  group.sites.push_back({.name = site,
                         .amount = {bytes, 1},
                         .stacks = 1,
                         .row = "activations",
                         .rows = {{"activations", bytes}}});
  return group;
}

const ModuleNode* find(const ModuleNode& node, const std::string& path) {
  if (node.path == path) return &node;
  for (const ModuleNode& child : node.children)
    if (const ModuleNode* found = find(child, path)) return found;
  return nullptr;
}

// Two layers, each with attention and a Sequential; a head; what no module made; a class path.
std::vector<Group> two_layers() {
  return {group("blocks.0.attention.qkv", 30, "a.py:1"),
          group("blocks.1.attention.qkv", 30, "a.py:1"),
          group("blocks.0.attention", 10, "a.py:2"),
          group("blocks.0.mlp.0", 7, "a.py:3"),
          group("blocks.1.mlp.0", 7, "a.py:3"),
          group("blocks.1.mlp.2", 5, "a.py:4"),
          group("head", 100, "a.py:5"),
          group("(none)", 3, "b.py:1"),
          group("GPT/Block", 2, "b.py:2")};
}

TEST_CASE("each module counts what lies below it, layer by layer and summed") {
  const ModuleTrees trees = module_trees(two_layers());
  CHECK(trees.by_layer.amount.bytes == 194);
  CHECK(trees.summed.amount.bytes == 194);
  const std::map<std::string, uint64_t> by_layer = {
      {"blocks", 89}, {"blocks.0", 47},    {"blocks.1", 42}, {"blocks.0.attention", 40},
      {"head", 100},  {"blocks.0.mlp", 7}, {"GPT", 2},       {"blocks.1.mlp.2", 5},
      {"(none)", 3},  {"GPT/Block", 2}};
  for (const auto& [path, bytes] : by_layer) {
    INFO(path);
    const ModuleNode* node = find(trees.by_layer, path);
    REQUIRE(node != nullptr);
    CHECK(node->amount.bytes == bytes);
  }
  const std::map<std::string, uint64_t> summed = {
      {"blocks", 89},         {"blocks.*", 89},      {"blocks.*.attention", 70},
      {"blocks.*.mlp.0", 14}, {"blocks.*.mlp.2", 5}, {"blocks.*.attention.qkv", 60}};
  for (const auto& [path, bytes] : summed) {
    INFO(path);
    const ModuleNode* node = find(trees.summed, path);
    REQUIRE(node != nullptr);
    CHECK(node->amount.bytes == bytes);
  }
  CHECK(find(trees.summed, "blocks.0") == nullptr);
  CHECK(find(trees.summed, "blocks.*")->layers == 2);
  CHECK(find(trees.summed, "blocks.*.mlp.2")->layers == 1);
}

TEST_CASE("a row has the call sites of its own memory, those of equal layers joined") {
  const ModuleTrees trees = module_trees(two_layers());
  const ModuleNode* qkv = find(trees.summed, "blocks.*.attention.qkv");
  REQUIRE(qkv->sites.size() == 1);
  CHECK(qkv->sites[0].amount.bytes == 60);
  CHECK(qkv->sites[0].amount.blocks == 2);
  const ModuleNode* attention = find(trees.summed, "blocks.*.attention");
  CHECK(attention->own.bytes == 10);
  REQUIRE(attention->sites.size() == 1);
  CHECK(attention->sites[0].name == "a.py:2");
}

TEST_CASE("the largest rows always make a tree") {
  const ModuleTrees trees = module_trees(two_layers());
  CHECK(count_modules(trees.summed) == 11);
  for (size_t most = 1; most <= 11; ++most) {
    const std::vector<ModuleRow> rows = largest_modules(trees.summed, most);
    CHECK(rows.size() == most);
    std::vector<std::string> above;  // of each depth, the row last seen
    for (const ModuleRow& row : rows) {
      REQUIRE(row.depth <= above.size());
      above.resize(row.depth);
      if (row.depth > 0) CHECK(row.node->path.starts_with(above.back()));
      above.push_back(row.node->path);
    }
  }
}

TEST_CASE("layers stand in the order of their numbers") {
  std::vector<Group> groups;
  groups.reserve(12);
  for (int i = 0; i < 12; ++i)
    groups.push_back(group("layers." + std::to_string(i) + ".mlp", 4, "a.py:1"));
  const ModuleTrees trees = module_trees(groups);
  const ModuleNode* layers = find(trees.by_layer, "layers");
  REQUIRE(layers->children.size() == 12);
  for (size_t i = 0; i < 12; ++i) CHECK(layers->children[i].path == "layers." + std::to_string(i));
}

TEST_CASE("a parameter, its gradient and its state belong to the module that owns it") {
  CHECK(module_in_label("parameters:blocks.0.mlp.2.weight") == "blocks.0.mlp.2");
  CHECK(module_in_label("gradients:head.weight") == "head");
  CHECK(module_in_label("optimizer_state:exp_avg of blocks.0.norm1.bias") == "blocks.0.norm1");
  CHECK(module_in_label("parameters:weight").empty());
  CHECK(module_in_label("parameters:param_groups[0][3]").empty());
  CHECK(module_in_label("optimizer_state:step").empty());
  CHECK(module_in_label("kv_cache:layer 0 keys").empty());
}

}  // namespace
}  // namespace vramtrack
