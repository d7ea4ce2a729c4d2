#include "sim/report/html/html.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/report/html/assemble.h"
#include "sim/report/html/parsed.h"
#include "sim/report/html/sweep.h"
#include "sim/report/html/timeline.h"
#include "sim/report/json/document.h"
#include "sim/report/metrics/json.h"
#include "sim/report/metrics/row.h"

namespace pipesim {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> kComponents{
    "data.js",    "svg_context.js", "save.js",   "plot.js",   "filter.js",
    "cards.js",   "header.js",      "detail.js", "pareto.js", "axes.js",
    "heat.js",    "table.js",       "side.js",   "orders.js", "difference.js",
    "what_if.js", "timeline.js",    "memory.js", "bubble.js", "main.js"};

PageParts parts_of_report() {
  PageParts parts{"page.html", {"page.css"}, {"format.js", "report.js"}};
  parts.scripts.insert(parts.scripts.end(), kComponents.begin(), kComponents.end());
  return parts;
}

PageParts parts_of_live_page() {
  return {"page.html",
          {"page.css", "live/live.css"},
          {"format.js", "live/ask.js", "live/live.js"},
          "live/ask.html",
          kComponents};
}

// Numbers by name, as idle time by cause.
bool is_table(const Json& value) {
  return value.is_object() && std::ranges::all_of(value, is_number_or_null);
}

bool is_device(const Json& value) {
  return value.is_object() && std::ranges::all_of(value, [](const Json& each) {
           return is_number_or_null(each) || each.is_string() || is_table(each);
         });
}

// The first part of a result that the page cannot use; nothing where it can use all.
std::optional<std::string> other_than_ours(const Json& result) {
  if (!result.is_object()) return "a result is no object";
  if (!result.contains("schedule") || !result["schedule"].is_string()) {
    return "a result has no 'schedule'";
  }
  for (const auto& [key, value] : result.items()) {
    const Metric* metric = find_metric(key);
    const bool number =
        metric != nullptr && metric->unit != MetricUnit::kFlag && metric->unit != MetricUnit::kFit;
    if (number && !is_number_or_null(value)) return fmt::format("'{}' is no number", key);
    const bool devices =
        key != "devices" || (value.is_array() && std::ranges::all_of(value, is_device));
    if (!devices) return "'devices' is no list of devices with their numbers";
  }
  return std::nullopt;
}

constexpr const char* kExpected = "a document of 'pipesim run --json' or 'pipesim plan --json'";

void check_results(const ReportInput& input, const Json& document) {
  for (const char* key : {"pipesim", "scenario", "results"}) {
    if (!document.contains(key)) {
      refuse_document(input, fmt::format("has no '{}'", key), kExpected);
    }
  }
  if (!document["results"].is_array()) refuse_document(input, "'results' is no list", kExpected);
  for (const Json& result : document["results"]) {
    if (const auto wrong = other_than_ours(result)) refuse_document(input, *wrong, kExpected);
  }
}

}  // namespace

struct HtmlReport::Data {
  explicit Data(std::string version)
      : page(Json{{"version", std::move(version)},
                  {"runs", Json::array()},
                  {"metrics", metrics_document()},
                  {"orders", nullptr},
                  {"sweep", nullptr},
                  {"plan", nullptr}}) {}

  // A result's timeline, unless the page would then hold more than `most` passes.
  Json timeline(const Result& result, bool memory, size_t most) {
    const size_t more = passes_of_iteration(result);
    if (passes + more > most) return {{"left_out", more}};
    passes += more;
    return timeline_json(result, memory);
  }

  Json page;
  size_t passes = 0;  // of the timelines so far
  std::vector<PlanRow> rows;
};

HtmlReport::HtmlReport(std::string version) : data_(std::make_unique<Data>(std::move(version))) {}
HtmlReport::HtmlReport(HtmlReport&&) noexcept = default;
HtmlReport& HtmlReport::operator=(HtmlReport&&) noexcept = default;
HtmlReport::~HtmlReport() = default;

void HtmlReport::add(const ReportInput& input, const std::vector<std::string>& overrides,
                     std::span<const Answer> answers, const std::vector<RefusedSchedule>& refused) {
  const Scenario& scenario = *answers.front().made.scenario;
  const bool measured = scenario.roofline && scenario.roofline->calibration;
  Json run{{"file", input.path}, {"text", nullptr}, {"overrides", overrides}};
  if (!input.text.empty()) run["text"] = input.text;
  run["calibration"] = measured ? Json(scenario.roofline->calibration->measured) : Json(nullptr);
  run["document"] = run_document(answers, {data_->page["version"], false, refused});
  run["timelines"] = Json::array();
  for (const Answer& answer : answers) {
    run["timelines"].push_back(
        data_->timeline(answer.result, knows_memory(scenario), kMostReportedPasses));
  }
  data_->page["runs"].push_back(std::move(run));
}

void HtmlReport::add_orders(const std::vector<std::string>& overrides, const Answer& a,
                            const Answer& b, Json orders) {
  for (const Answer* each : {&a, &b}) {
    add({each->made.scenario->file, ""}, overrides, {each, 1}, {});
  }
  data_->page["orders"] = std::move(orders);
}

void HtmlReport::add_document(const ReportInput& input) {
  Json document = parsed(input, kExpected);
  if (document.contains("plans")) return add_plan(input, std::move(document));
  check_results(input, document);
  data_->page["runs"].push_back({{"file", input.path},
                                 {"text", nullptr},
                                 {"overrides", Json::array()},
                                 {"calibration", nullptr},
                                 {"document", std::move(document)},
                                 {"timelines", Json::array()}});
}

void HtmlReport::add_plan(const ReportInput& input, Json document) {
  check_plan(input, document);
  data_->rows = rows_of_plan(document);
  data_->page["plan"] = {{"file", input.path},
                         {"command", nullptr},
                         {"document", std::move(document)},
                         {"rows", Json(data_->rows.size(), Json::object())}};
}

bool HtmlReport::has_plan() const { return data_->page["plan"].is_object(); }

const std::vector<PlanRow>& HtmlReport::plan_rows() const { return data_->rows; }

void HtmlReport::set_plan_command(const std::vector<std::string>& words) {
  data_->page["plan"]["command"] = words;
}

void HtmlReport::add_run(size_t row, const Answer& answer) {
  Json& drawn = data_->page["plan"]["rows"][row];
  drawn["timeline"] = data_->timeline(answer.result, true, kMostPlannedPasses);
  drawn["devices"] = run_document({&answer, 1}, {data_->page["version"]})["results"][0]["devices"];
}

void HtmlReport::add_configuration(size_t row, const std::string& framework,
                                   const std::string& text) {
  data_->page["plan"]["rows"][row]["configurations"].push_back(
      {{"framework", framework}, {"text", text}});
}

void HtmlReport::add_reason(size_t row, const std::string& reason) {
  data_->page["plan"]["rows"][row]["reason"] = reason;
}

void HtmlReport::add_sweep(const SweepFolder& sweep) { data_->page["sweep"] = sweep_json(sweep); }

const Json& HtmlReport::data() const { return data_->page; }

std::string HtmlReport::page(const std::string& folder, const Location& asked) const {
  const Json& runs = data_->page["runs"];
  std::string title = fmt::format("{} inputs", runs.size());
  if (runs.size() == 1) title = runs[0]["file"].get<std::string>();
  if (has_plan()) title = "Plan";
  if (data_->page["sweep"].is_object()) title = data_->page["sweep"]["folder"].get<std::string>();
  return assembled_page(folder, parts_of_report(), title, data_->page, asked);
}

std::string live_page(const std::string& folder, const Json& choices, const Location& asked) {
  return assembled_page(folder, parts_of_live_page(), "Plan", choices, asked);
}

}  // namespace pipesim
