// The report on a job whose numbers were worked out by hand (golden.h).
#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>

#include "golden.h"
#include "import/open.h"
#include "report/build_report.h"
#include "report/check_report.h"
#include "report/heading.h"
#include "report/json_report.h"
#include "report/markdown_report.h"
#include "report/text_report.h"
#include "support/scratch.h"
#include "trace/input_error.h"
#include "wording/lines.h"
#include "wording/units.h"

using namespace vramtrack;
using namespace vramtrack::test;
using Catch::Matchers::Contains;

namespace {

struct Golden {
  Scratch scratch;
  std::unique_ptr<Recording> recording;

  explicit Golden(TraceOptions options = {}, bool out_of_memory = false)
      : recording(open_recording(
            scratch.file("golden.vrt", golden_trace(std::move(options), out_of_memory)))) {}
  [[nodiscard]] Report report(const ReportOptions& options = {}) const {
    return build_report(*recording, options);
  }
};

uint64_t mib(const MomentView& view, Category category) {
  const uint64_t bytes = view.categories.of(category).bytes;
  CHECK(bytes % kMiB == 0);
  return bytes / kMiB;
}

void expect_narrow(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(line.size() <= kReportWidth);
  }
}

}  // namespace

TEST_CASE("Categories, cached and outside sum to what is in use") {
  const Golden golden;
  const Report report = golden.report();
  REQUIRE(report.devices.size() == 1);
  const DeviceReport& device = report.devices[0];
  CHECK(device.name == "Test Card 1000");
  const MomentView& top = device.moment;
  CHECK(top.moment.name == "allocated-peak");
  CHECK(top.moment.step == 2);
  CHECK(top.phase == "forward");
  CHECK(top.totals.in_use == 375 * kMiB);
  CHECK(top.totals.reserved == 350 * kMiB);
  CHECK(top.allocated == 170 * kMiB);
  CHECK(top.categories.sum() == top.totals.in_use);
  CHECK(mib(top, Category::parameters) == 80);
  CHECK(mib(top, Category::kv_cache) == 30);
  CHECK(mib(top, Category::inputs) == 19);
  CHECK(mib(top, Category::rounding) == 1);
  CHECK(mib(top, Category::cached) == 180);
  CHECK(mib(top, Category::outside) == 25);
  CHECK(mib(top, Category::other) == 40);
  CHECK(top.categories.sub_rows.at("cached/pending").bytes == 10 * kMiB);
  CHECK(top.categories.sub_rows.at("cached/releasable").bytes == 50 * kMiB);
  CHECK(top.categories.sub_rows.at("cached/fragmented").bytes == 120 * kMiB);
  CHECK(device.course.most_reserved == 410 * kMiB);
  CHECK(device.peak.totals.in_use == 435 * kMiB);
  CHECK(device.peak.categories.sum() == 435 * kMiB);
  CHECK(top.moment.sequence == device.allocated_peak.moment.sequence);
}

TEST_CASE("The residual is what the ledger cannot explain, with its sign") {
  const Golden golden;
  const MomentView end = golden.report({.at = "end"}).devices[0].moment;
  REQUIRE(end.outside.measured);
  CHECK(end.outside.context == 500 * kMiB);
  CHECK(end.outside.residual == static_cast<int64_t>(3 * kMiB));
}

TEST_CASE("Call sites are the user's lines, merged over the ways to them") {
  const Golden golden;
  const std::vector<CallSite> sites = golden.report().devices[0].sites;
  REQUIRE(sites.size() == 3);
  CHECK(sites[0].name == "model.py:30 build");
  CHECK(sites[0].row == "parameters");
  CHECK(sites[0].amount.bytes == 80 * kMiB);
  // No stack: 40 of unknown memory and 25 of the other library.
  CHECK(sites[1].name == "(no stack)");
  CHECK(sites[1].amount.bytes == 65 * kMiB);
  CHECK(sites[2].name == "model.py:42 Attention.forward");
  CHECK(sites[2].amount.bytes == 50 * kMiB);
  CHECK(sites[2].stacks == 2);
  CHECK(sites[2].row == "kv_cache");
  CHECK(golden.recording->definitions().stack(sites[2].stack).size() == 4);

  const auto only = golden.report({.category = "kv_cache"}).devices[0].sites;
  REQUIRE(only.size() == 1);
  CHECK(only[0].amount.bytes == 30 * kMiB);
}

TEST_CASE("Memory is grouped by what it belongs to") {
  const Golden golden;
  const auto groups = [&](Grouping by) {
    std::map<std::string, uint64_t> sizes;
    const Report report = golden.report({.by = by});
    for (const Group& group : report.devices[0].groups) {
      sizes[group.name] = group.amount.bytes / kMiB;
    }
    return sizes;
  };
  using Sizes = std::map<std::string, uint64_t>;
  CHECK(groups(Grouping::module) == Sizes{{"(none)", 65}, {"wte", 80}, {"GPT/Attention", 50}});
  CHECK(groups(Grouping::phase) == Sizes{{"(none)", 105}, {"forward", 60}, {"kv_cache", 30}});
  CHECK(groups(Grouping::step) == Sizes{{"1", 105}, {"2", 90}});
  CHECK(groups(Grouping::site).at("model.py:30 build") == 80);
  CHECK(groups(Grouping::category).at("parameters") == 80);
}

TEST_CASE("An OOM is the default moment and is said first") {
  const Golden golden({}, /*out_of_memory=*/true);
  const Report report = golden.report();
  CHECK(report.devices[0].moment.moment.name == "oom");
  CHECK(report.devices[0].moment.allocated == 170 * kMiB);
  CHECK_THAT(verdict(report, report.devices[0]),
             Contains("Out of memory") && Contains("step 2") && Contains("asked for 700.00 MiB"));
  const Report peak = golden.report({.at = "allocated-peak"});
  CHECK_THAT(verdict(peak, peak.devices[0]), Contains("ran out of memory 1 time"));
  CHECK_THROWS_AS(Golden().report({.at = "oom"}), InputError);
}

TEST_CASE("Text says where the numbers are from, what was lost, and fits the terminal") {
  const Golden golden({.metadata = R"({"command": ["python", ")" + std::string(200, 'x') +
                                   R"("], "simulated": true})",
                       .finished = false,
                       .dropped_events = 12345});
  for (const Grouping by : {Grouping::category, Grouping::site, Grouping::module}) {
    const std::string text = text_report(golden.report({.by = by}));
    expect_narrow(text);
    CHECK_THAT(text, Catch::Matchers::StartsWith("SIMULATED GPU"));
    std::string flowing = text;  // sentences may break anywhere
    std::replace(flowing.begin(), flowing.end(), '\n', ' ');
    CHECK_THAT(flowing, Contains("12,345 dropped") && Contains("12,345 events were lost"));
    CHECK_THAT(flowing, Contains("parameters") && Contains("375.00 MiB in use"));
    CHECK_THAT(flowing, Contains("killed or still runs"));
  }
  CHECK_THAT(text_report(Golden().report()), Catch::Matchers::StartsWith("Measured on a GPU"));
  CHECK_THAT(text_report(Golden().report()), Contains("0 dropped"));
}

TEST_CASE("JSON and Markdown show the same numbers") {
  const Golden golden({}, true);
  const Report report = golden.report();
  const auto json = nlohmann::json::parse(dump(json_report(report)));
  CHECK(json["schema"] == "vramtrack.report/1");
  CHECK(json["simulated"] == false);
  CHECK(json["dropped_events"] == 0);
  CHECK(json["events"] == golden.recording->info().event_count);
  const auto& device = json["devices"][0];
  for (const char* name : {"peak", "allocated_peak", "moment"}) {
    const auto& view = device[name];
    uint64_t sum = 0;
    for (const auto& [category, bytes] : view["categories"].items()) sum += bytes.get<uint64_t>();
    CHECK(sum == view["in_use_bytes"]);
    CHECK(view["categories"].size() == kCategoryCount);
  }
  CHECK(device["moment"]["allocated_bytes"] == 170 * kMiB);
  CHECK(device["moment"]["reserved_bytes"] == 350 * kMiB);
  CHECK(device["moment"]["residual_bytes"] == 3 * kMiB);
  CHECK(device["moment"]["step"] == 2);
  CHECK(device["moment"]["phase"] == "forward");
  CHECK(device["oom"][0]["size_bytes"] == 700 * kMiB);
  CHECK(device["sites"][0]["file"] == "/home/me/model.py");
  CHECK(device["sites"][0]["line"] == 30);
  const std::string markdown = markdown_report(report);
  CHECK_THAT(markdown, Contains("| parameters | 80.00 |") || Contains("| parameters | 0.08 |"));
  CHECK_THAT(markdown, Contains("Out of memory"));
}

TEST_CASE("Only CPU tensors, and nothing at all, are reported as such") {
  TraceWriter cpu;
  cpu.event({.kind = EventKind::block_alloc, .device = -1, .address = 0x1000, .size = 4096});
  const Scratch scratch;
  auto recording = open_recording(scratch.file("cpu.vrt", cpu.bytes()));
  CHECK_THAT(text_report(build_report(*recording, {})), Catch::Matchers::StartsWith("CPU tensors"));
  TraceWriter nothing;
  recording = open_recording(scratch.file("nothing.vrt", nothing.bytes()));
  CHECK_THAT(text_report(build_report(*recording, {})), Contains("No device memory was allocated"));
}

TEST_CASE("A whole recording checks as whole, a broken one says how") {
  const Golden golden;
  const CheckReport whole = check(*golden.recording);
  INFO(text_check(whole));
  CHECK(whole.whole());
  CHECK(json_check(whole)["ledgers"]["reconcile"] == true);
  TraceWriter w;
  w.alloc(0x1000000, kMiB);
  w.block(0x1000000, 4096, /*stack=*/77);
  w.free_block(0x5000, 512);
  const Scratch scratch;
  const auto recording = open_recording(scratch.file("t.vrt", w.bytes()));
  const CheckReport broken = check(*recording);
  CHECK_FALSE(broken.whole());
  CHECK(broken.stacks_undefined == 1);
  CHECK_THAT(text_check(broken), Contains("1 frees of something that was never allocated"));
  expect_narrow(text_check(broken));
}

TEST_CASE("Numbers are printed in the unit of their size") {
  CHECK(quantity(0) == "0 bytes");
  CHECK(quantity(3 * kMiB / 2) == "1.50 MiB");
  CHECK(quantity(uint64_t{5} << 30) == "5.00 GiB");
  CHECK(quantity(1023 * kMiB) == "1023.00 MiB");
  CHECK(signed_quantity(INT64_MIN) == "-8589934592.00 GiB");
  CHECK(signed_quantity(2048) == "+2.00 KiB");
  CHECK(rounded_quantity(-1.5 * kMiB) == "-1.50 MiB");
  CHECK(rounded_quantity(1e30L) == quantity(UINT64_MAX));
  CHECK(counted(1, "step") == "1 step");
  CHECK(counted(1200, "process") == "1,200 processes");
  CHECK(grouped(1234567) == "1,234,567");
  CHECK(grouped(123) == "123");
  CHECK(shortened("abcdefghij", 7) == "ab...ij");
  CHECK(percent(1, 3) == "33.3");
  CHECK(wrapped("  one two") == "  one two");
  const std::string word(kReportWidth / 2, 'w');
  CHECK(paragraph("  a:  ", word + " " + word) == "  a:  " + word + "\n      " + word + "\n");
}
