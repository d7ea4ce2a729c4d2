#include "sim/sweep/results.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <ostream>
#include <vector>

#include "sim/core/csv.h"
#include "sim/report/json/choice.h"
#include "sim/report/json/schema.h"
#include "sim/report/metrics/json.h"

namespace pipesim {
namespace {

using Json = nlohmann::ordered_json;

std::string header(const Sweep& sweep) {
  std::string text = "point";
  for (const std::string& key : key_columns(sweep)) text += ',' + csv_field(key);
  return text + ',' + choice_header();
}

std::string first_fields(const Sweep& sweep, const PointResult& result) {
  std::string text = fmt::format("{}", result.point);
  for (const std::string& value : sweep.values(sweep.setting(result.point))) {
    text += ',' + csv_field(value);
  }
  return text + ',' + choice_fields(result.choice);
}

// All that have no metrics, in order: those of the store and those that were lost.
void visit_failed(const Sweep& sweep, const ResultStore& store, const LostPoints& lost,
                  const std::function<void(const PointResult&)>& see) {
  auto next = lost.begin();
  const auto see_lost_before = [&](std::uint32_t point) {
    for (; next != lost.end() && next->first < point; ++next) {
      PointResult result;
      result.point = next->first;
      result.choice.front() = Sweep::schedule_name(sweep.source(sweep.setting(next->first)),
                                                   sweep.schedule(next->first));
      result.reason = next->second;
      see(result);
    }
  };
  store.visit(ResultStore::Rows::kRefused, [&](const PointResult& result) {
    see_lost_before(result.point);
    see(result);
  });
  see_lost_before(sweep.points());
}

// A number where the text is one in JSON's eyes too.
Json json_value(const std::string& text) {
  const Json value = Json::parse(text, nullptr, false);
  return value.is_number() || value.is_boolean() ? value : Json(text);
}

Json json_point(const Sweep& sweep, const PointResult& result) {
  Json json{{"point", result.point}, {"values", Json::object()}};
  add_choice(json, result.choice);
  const auto values = sweep.values(sweep.setting(result.point));
  for (size_t i = 0; i < values.size(); ++i)
    json["values"][sweep.keys()[i]] = json_value(values[i]);
  return json;
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::vector<std::string> key_columns(const Sweep& sweep) {
  std::vector<std::string> columns;
  for (const std::string& key : sweep.keys()) {
    const bool taken = std::ranges::count(kChoiceColumns, key) > 0;
    columns.push_back(taken ? "sweep." + key : key);
  }
  return columns;
}

std::string table_path(const std::string& folder, const std::string& table, bool stopped) {
  return (std::filesystem::path(folder) / (table + (stopped ? ".partial.csv" : ".csv"))).string();
}

bool was_stopped(const std::string& folder) {
  std::error_code ignored;
  return !std::filesystem::exists(table_path(folder, "results", false), ignored) &&
         std::filesystem::exists(table_path(folder, "results", true), ignored);
}

void write_results_csv(std::ostream& out, const Sweep& sweep, const ResultStore& store) {
  out << header(sweep) << metric_header() << '\n';
  store.visit(ResultStore::Rows::kDone, [&](const PointResult& result) {
    out << first_fields(sweep, result) << metric_fields(result.metrics) << '\n';
  });
}

void write_failed_csv(std::ostream& out, const Sweep& sweep, const ResultStore& store,
                      const LostPoints& lost) {
  out << header(sweep) << ",reason\n";
  visit_failed(sweep, store, lost, [&](const PointResult& result) {
    out << first_fields(sweep, result) << ',' << csv_field(result.reason) << '\n';
  });
}

void write_sweep_json(std::ostream& out, const Sweep& sweep, const ResultStore& store,
                      const SweepRun& run, const std::string& version) {
  out << fmt::format(
      "{{\"schema\": {},\n \"pipesim\": {},\n \"sweep\": {},\n \"results\": [", kJsonSchema,
      dump(Json{{"version", version}}),
      dump(Json{{"keys", sweep.keys()}, {"points", sweep.points()}, {"stopped", run.stopped}}));
  const char* separator = "\n  ";
  store.visit(ResultStore::Rows::kDone, [&](const PointResult& result) {
    Json json = json_point(sweep, result);
    for (size_t i = 0; i < result.metrics.size(); ++i) {
      const Metric& metric = run_metrics()[i];
      json[std::string(metric.name)] = metric_json(metric, result.metrics[i]);
    }
    out << separator << dump(json);
    separator = ",\n  ";
  });
  out << "],\n \"failed\": [";
  separator = "\n  ";
  visit_failed(sweep, store, run.lost, [&](const PointResult& result) {
    Json json = json_point(sweep, result);
    json["reason"] = result.reason;
    out << separator << dump(json);
    separator = ",\n  ";
  });
  out << "]}\n";
}

}  // namespace pipesim
