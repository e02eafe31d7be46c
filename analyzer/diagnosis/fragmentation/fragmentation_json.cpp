// The fragmentation of a device as JSON; docs/json.md describes the fields.
#include "attribution/call_site.h"
#include "diagnosis/fragmentation/fragmentation_report.h"

namespace vramtrack {
namespace {

using Json = nlohmann::ordered_json;

Json sums_json(const FragmentationSums& sums) {
  Json reasons = Json::object();
  for (size_t i = 0; i < kHoleReasons; ++i)
    reasons[std::string(kHoleReasonNames[i])] = sums.by_reason[i];
  return {{"segments", sums.segments},
          {"reserved", sums.reserved},
          {"allocated", sums.allocated},
          {"requested", sums.requested},
          {"rounding", sums.rounding()},
          {"free", sums.free},
          {"holes", sums.holes},
          {"largest_free", sums.largest_free},
          {"free_by_reason", reasons},
          {"utilisation", sums.utilisation()},
          {"availability", sums.availability()},
          {"gap_index", sums.gap_index()}};
}

Json segment_json(const FragmentedSegment& segment, const Definitions& definitions) {
  Json holes = Json::array();
  for (const Hole& hole : segment.holes)
    holes.push_back({{"address", hole.address},
                     {"size", hole.size},
                     {"reason", kHoleReasonNames[static_cast<size_t>(hole.reason)]}});
  Json pins = Json::array();
  if (segment.pinned)
    for (const SegmentBlock& block : segment.blocks)
      pins.push_back({{"address", block.address},
                      {"size", block.size},
                      {"site", call_site(definitions, block.stack)}});
  return {{"address", segment.address},
          {"size", segment.size},
          {"pool", segment.pool},
          {"stream", segment.stream},
          {"small_pool", segment.small_pool},
          {"expandable", segment.expandable},
          {"allocated", segment.live},
          {"free", segment.free},
          {"largest_free", segment.largest_hole},
          {"blocks", segment.blocks.size()},
          {"pinned_by", pins},
          {"holes", holes}};
}

Json prediction_json(const Prediction& prediction) {
  return {{"settings", prediction.settings.text()},
          {"reserved_peak_low", prediction.reserved_peak.low},
          {"reserved_peak_high", prediction.reserved_peak.high},
          {"saving", prediction.saving()},
          {"fails_earlier", prediction.fails_earlier},
          {"driver_calls", prediction.driver_calls},
          {"cache_flushes", prediction.last_resorts},
          {"oom_avoided", prediction.oom_avoided ? Json(*prediction.oom_avoided) : Json(nullptr)},
          {"notes", prediction.notes}};
}

Json replay_json(const FragmentationReport& report) {
  if (!report.replay) return nullptr;
  const DriverCounts& replay = *report.replay;
  Json predictions = Json::array();
  for (const Prediction& prediction : report.predictions)
    predictions.push_back(prediction_json(prediction));
  return {{"exact", report.replay_exact},
          {"requests", replay.requests},
          {"addresses_equal", replay.addresses_equal},
          {"segment_events", replay.segment_events},
          {"segment_events_equal", replay.segment_events_equal},
          {"rounded_requests", replay.rounded_requests},
          {"began_empty", replay.began_empty},
          {"settings", report.replayed_settings.text()},
          {"first_difference",
           replay.first_difference.empty() ? Json(nullptr) : Json(replay.first_difference)},
          {"recorded_reserved_peak", replay.recorded_reserved_peak},
          {"predictions", predictions}};
}

}  // namespace

Json json_report(const FragmentationReport& report, const Definitions& definitions) {
  const Fragmentation& now = report.now;
  Json pools = Json::array();
  for (const auto& [key, sums] : now.pools) {
    Json pool = {{"pool", key.pool}, {"stream", key.stream}, {"small_pool", key.small_pool}};
    pool.update(sums_json(sums));
    pools.push_back(std::move(pool));
  }
  Json segments = Json::array();
  for (const FragmentedSegment& segment : now.segments)
    segments.push_back(segment_json(segment, definitions));
  Json pins = Json::array();
  for (const Pin& pin : now.pins)
    pins.push_back({{"site", pin.site},
                    {"kept_free", pin.pinned},
                    {"segments", pin.segments},
                    {"blocks", pin.blocks},
                    {"bytes", pin.bytes}});
  Json json = {{"device", now.device},
               {"moment", now.moment.name},
               {"time_s", static_cast<double>(now.moment.time_ns) * 1e-9},
               {"sequence", now.moment.sequence},
               {"in_use", now.in_use},
               {"reserved_peak", report.reserved_peak},
               {"settings", report.settings},
               {"requests_known", now.requests_known},
               {"smallest_request", now.smallest_request}};
  json.update(sums_json(now.total));
  json["pools"] = pools;
  json["pins"] = pins;
  json["segment_list"] = segments;
  json["replay"] = replay_json(report);
  json["ideal"] = report.ideal ? Json({{"blocks", report.ideal->items},
                                       {"lower_bound", report.ideal->lower_bound},
                                       {"best_packing", report.ideal->best_found},
                                       {"excess", report.ideal->excess()}})
                               : Json(nullptr);
  return json;
}

}  // namespace vramtrack
