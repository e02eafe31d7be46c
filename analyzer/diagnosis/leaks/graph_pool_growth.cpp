#include "diagnosis/leaks/graph_pool_growth.h"

#include <algorithm>
#include <map>

#include "attribution/call_site.h"

namespace vramtrack {
namespace {

void add_to(std::vector<double>& sum, const std::vector<double>& series) {
  sum.resize(std::max(sum.size(), series.size()), 0);
  for (size_t i = 0; i < series.size(); ++i) sum[i] += series[i];
}

}  // namespace

std::vector<GraphPoolSite> graph_pool_sites(const LiveSeries& series,
                                            const Definitions& definitions) {
  std::map<std::pair<std::string, int16_t>, GraphPoolSite> by_line;
  for (const GraphPoolSeries& pools : series.graph_pools) {
    const std::string name = call_site(definitions, pools.stack);
    GraphPoolSite& site = by_line[{name, pools.device}];
    site.name = name;
    site.device = pools.device;
    site.stacks.push_back(pools.stack);
    add_to(site.bytes, pools.bytes);
    add_to(site.pools, pools.pools);
    add_to(site.graphs, pools.graphs);
    site.last_pools.insert(site.last_pools.end(), pools.last_pools.begin(), pools.last_pools.end());
    site.blocks_of.insert(pools.blocks_of.begin(), pools.blocks_of.end());
  }
  std::vector<GraphPoolSite> sites;
  sites.reserve(by_line.size());
  for (auto& [line, site] : by_line) {
    std::stable_sort(site.last_pools.begin(), site.last_pools.end(),
                     [](const GraphPool& a, const GraphPool& b) { return a.bytes > b.bytes; });
    sites.push_back(std::move(site));
  }
  return sites;
}

std::vector<double> graph_pool_bytes(const LiveSeries& series, int16_t device) {
  std::vector<double> sum(series.samples(), 0);
  for (const GraphPoolSeries& pools : series.graph_pools)
    if (pools.device == device) add_to(sum, pools.bytes);
  return sum;
}

std::vector<double> captured_bytes(const LiveSeries& series, int16_t device) {
  std::vector<double> sum(series.samples(), 0);
  for (const StackSeries& stack : series.stacks)
    if (stack.device == device && stack.captured) add_to(sum, stack.bytes);
  return sum;
}

std::string graph_pool_advice(const GraphPoolSite& site) {
  std::string advice =
      "round shapes up to a few sizes and pad, so that few graphs serve all of them; drop graphs "
      "that are not replayed any more";
  if (site.pools.back() > 1)
    advice =
        "let the captures share one pool where their graphs never run at the same time "
        "(pool = torch.cuda.graph_pool_handle(), then torch.cuda.graph(graph, pool=pool)); " +
        advice;
  return advice;
}

}  // namespace vramtrack
