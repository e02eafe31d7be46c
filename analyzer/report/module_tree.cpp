#include "report/module_tree.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <unordered_set>

namespace vramtrack {
namespace {

// Deeper nests come from damaged names.
constexpr size_t kDeepest = 64;

struct Part {
  std::string name;
  char before = 0;  // what joins it to the part before: '.' or '/'
};

std::vector<Part> parts_of(const std::string& path) {
  const char separator = path.find('/') != std::string::npos ? '/' : '.';
  std::vector<Part> parts;
  size_t begin = 0;
  while (parts.size() < kDeepest) {
    const size_t end = path.find(separator, begin);
    parts.push_back({path.substr(begin, end - begin), parts.empty() ? char{0} : separator});
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
  parts.back().name += path.substr(begin - 1);
  return parts;
}

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::string joined(const std::string& path, const Part& part) {
  return path.empty() ? part.name : path + part.before + part.name;
}

// A tree under construction: children by name, sites by name.
struct Sprout {
  Amount amount;
  Amount own;
  std::map<std::string, uint64_t> rows;
  std::map<std::string, CallSite> sites;
  std::set<std::string> layers;  // the paths that a summed node stands for
  std::map<std::string, std::pair<Part, std::unique_ptr<Sprout>>> children;
};

void add(std::map<std::string, uint64_t>& to, const std::map<std::string, uint64_t>& more) {
  for (const auto& [row, bytes] : more) to[row] += bytes;
}

void add_sites(std::map<std::string, CallSite>& to, const std::vector<CallSite>& sites) {
  for (const CallSite& site : sites) {
    const auto [place, added] = to.try_emplace(site.name, site);
    if (!added) merge(place->second, site);
  }
}

void count(Sprout& node, const Group& group, const std::string& real_path) {
  node.amount.add(group.amount);
  add(node.rows, group.rows);
  node.layers.insert(real_path);
}

// Numbered modules that have modules inside, by path: layers.
std::unordered_set<std::string> layers_in(const std::vector<Group>& groups) {
  std::unordered_set<std::string> layers;
  for (const Group& group : groups) {
    std::string path;
    const std::vector<Part> parts = parts_of(group.name);
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      path = joined(path, parts[i]);
      if (is_number(parts[i].name)) layers.insert(path);
    }
  }
  return layers;
}

void plant(Sprout& root, const Group& group, const std::unordered_set<std::string>& layers) {
  Sprout* node = &root;
  count(root, group, "");
  std::string real_path;
  for (Part& part : parts_of(group.name)) {
    real_path = joined(real_path, part);
    if (layers.contains(real_path)) part.name = "*";
    auto& [kept, child] = node->children[part.name];
    if (!child) child = std::make_unique<Sprout>();
    kept = part;
    node = child.get();
    count(*node, group, real_path);
  }
  node->own.add(group.amount);
  add_sites(node->sites, group.sites);
}

// "2" before "10".
bool name_before(const std::string& a, const std::string& b) {
  return a.size() != b.size() && is_number(a.substr(a.rfind('.') + 1)) &&
                 is_number(b.substr(b.rfind('.') + 1))
             ? a.size() < b.size()
             : a < b;
}

ModuleNode grown(Sprout& sprout, std::string path) {
  ModuleNode node;
  node.amount = sprout.amount;
  node.own = sprout.own;
  node.layers = sprout.layers.size();
  node.rows = std::move(sprout.rows);
  for (auto& [name, site] : sprout.sites) node.sites.push_back(std::move(site));
  std::stable_sort(node.sites.begin(), node.sites.end(), [](const CallSite& a, const CallSite& b) {
    return a.amount.bytes > b.amount.bytes;
  });
  for (auto& [name, child] : sprout.children)
    node.children.push_back(grown(*child.second, joined(path, child.first)));
  std::sort(node.children.begin(), node.children.end(),
            [](const ModuleNode& a, const ModuleNode& b) {
              return a.amount.bytes != b.amount.bytes ? a.amount.bytes > b.amount.bytes
                                                      : name_before(a.path, b.path);
            });
  node.path = std::move(path);
  return node;
}

void collect(const ModuleNode& node, size_t depth, std::vector<ModuleRow>& rows) {
  for (const ModuleNode& child : node.children) {
    rows.push_back({&child, depth});
    collect(child, depth + 1, rows);
  }
}

}  // namespace

ModuleTrees module_trees(const std::vector<Group>& groups) {
  Sprout by_layer;
  Sprout summed;
  const std::unordered_set<std::string> layers = layers_in(groups);
  for (const Group& group : groups) {
    plant(by_layer, group, {});
    plant(summed, group, layers);
  }
  return {.by_layer = grown(by_layer, ""), .summed = grown(summed, "")};
}

std::vector<ModuleRow> largest_modules(const ModuleNode& root, size_t most) {
  std::vector<ModuleRow> rows;
  collect(root, 0, rows);
  if (rows.size() <= most) return rows;
  // Ties are broken by depth, then by order, so that no child comes without its parent.
  std::vector<size_t> order(rows.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const uint64_t of_a = rows[a].node->amount.bytes;
    const uint64_t of_b = rows[b].node->amount.bytes;
    return of_a != of_b ? of_a > of_b : rows[a].depth < rows[b].depth;
  });
  order.resize(most);
  std::sort(order.begin(), order.end());
  std::vector<ModuleRow> largest;
  largest.reserve(order.size());
  for (const size_t i : order) largest.push_back(rows[i]);
  return largest;
}

size_t count_modules(const ModuleNode& root) {
  size_t count = root.children.size();
  for (const ModuleNode& child : root.children) count += count_modules(child);
  return count;
}

}  // namespace vramtrack
