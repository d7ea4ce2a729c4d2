#include "sim/sweep/results.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>

#include "sim/report/csv.h"

namespace pipesim {
namespace {

using Json = nlohmann::ordered_json;

std::string header(const Sweep& sweep) {
  std::string text = "point";
  for (const std::string& key : sweep.keys()) text += ',' + csv_field(key);
  return text + ",schedule";
}

std::string first_fields(const Sweep& sweep, std::uint32_t point, const std::string& schedule) {
  std::string text = fmt::format("{}", point);
  for (const std::string& value : sweep.values(sweep.setting(point))) {
    text += ',' + csv_field(value);
  }
  return text + ',' + csv_field(schedule);
}

// All that have no metrics, in order: those of the store and those that were lost.
void visit_failed(const Sweep& sweep, const ResultStore& store, const LostPoints& lost,
                  const std::function<void(const PointResult&)>& see) {
  auto next = lost.begin();
  const auto see_lost_before = [&](std::uint32_t point) {
    for (; next != lost.end() && next->first < point; ++next) {
      PointResult result;
      result.point = next->first;
      result.schedule = Sweep::schedule_name(sweep.source(sweep.setting(next->first)),
                                             sweep.schedule(next->first));
      result.reason = next->second;
      see(result);
    }
  };
  store.visit([&](const PointResult& result) {
    if (result.outcome == PointResult::Outcome::kDone) return;
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
  Json json{{"point", result.point}, {"values", Json::object()}, {"schedule", result.schedule}};
  const auto values = sweep.values(sweep.setting(result.point));
  for (size_t i = 0; i < values.size(); ++i)
    json["values"][sweep.keys()[i]] = json_value(values[i]);
  return json;
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The fields of a CSV row; a quoted field may not go over a line's end, which our writers never do.
std::vector<std::string> fields_of(const std::string& line, const Location& where) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[++i];
    } else if (c == '"' && (quoted || fields.back().empty())) {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (quoted) throw InputError(where, "a quoted field does not end");
  return fields;
}

template <class T>
T number_of(const std::string& text, const Location& where) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw InputError(where, fmt::format("expected a number, not '{}'", text));
  }
  return value;
}

}  // namespace

void write_results_csv(std::ostream& out, const Sweep& sweep, const ResultStore& store) {
  out << header(sweep) << metric_header() << '\n';
  store.visit([&](const PointResult& result) {
    if (result.outcome != PointResult::Outcome::kDone) return;
    out << first_fields(sweep, result.point, result.schedule) << metric_fields(result.metrics)
        << '\n';
  });
}

void write_failed_csv(std::ostream& out, const Sweep& sweep, const ResultStore& store,
                      const LostPoints& lost) {
  out << header(sweep) << ",reason\n";
  visit_failed(sweep, store, lost, [&](const PointResult& result) {
    out << first_fields(sweep, result.point, result.schedule) << ',' << csv_field(result.reason)
        << '\n';
  });
}

void write_sweep_json(std::ostream& out, const Sweep& sweep, const ResultStore& store,
                      const LostPoints& lost, const std::string& version) {
  out << fmt::format("{{\"pipesim\": {},\n \"sweep\": {},\n \"results\": [",
                     dump(Json{{"version", version}}),
                     dump(Json{{"keys", sweep.keys()}, {"points", sweep.points()}}));
  const char* separator = "\n  ";
  store.visit([&](const PointResult& result) {
    if (result.outcome != PointResult::Outcome::kDone) return;
    Json json = json_point(sweep, result);
    for (size_t i = 0; i < kMetricNames.size(); ++i) {
      const auto& value = result.metrics[i];
      json[std::string(kMetricNames[i])] = value ? Json(*value) : Json(nullptr);
    }
    out << separator << dump(json);
    separator = ",\n  ";
  });
  out << "],\n \"failed\": [";
  separator = "\n  ";
  visit_failed(sweep, store, lost, [&](const PointResult& result) {
    Json json = json_point(sweep, result);
    json["reason"] = result.reason;
    out << separator << dump(json);
    separator = ",\n  ";
  });
  out << "]}\n";
}

SweepTable read_results_csv(const std::string& path, const Location& asked) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  if (!std::getline(file, line)) throw InputError(asked, fmt::format("cannot read '{}'", path));
  const auto names = fields_of(line, {path, 1, 1, line});
  const auto schedule = std::ranges::find(names, "schedule");
  if (names.front() != "point" || schedule == names.end()) {
    throw InputError({path, 1, 1, line},
                     "expected the columns of a sweep: point, swept keys, schedule, metrics");
  }
  SweepTable table;
  table.keys.assign(names.begin() + 1, schedule);
  const size_t first_metric = table.keys.size() + 2;
  for (int number = 2; std::getline(file, line); ++number) {
    const Location where{path, number, 1, line};
    const auto fields = fields_of(line, where);
    if (fields.size() != names.size()) {
      throw InputError(where,
                       fmt::format("expected {} fields, not {}", names.size(), fields.size()));
    }
    SweepRow row;
    row.point = number_of<std::uint32_t>(fields[0], where);
    row.values.assign(fields.begin() + 1, fields.begin() + static_cast<long>(first_metric) - 1);
    row.schedule = fields[first_metric - 1];
    for (size_t i = first_metric; i < fields.size(); ++i) {
      const auto metric = std::ranges::find(kMetricNames, names[i]);
      if (metric == kMetricNames.end() || fields[i].empty()) continue;
      row.metrics[static_cast<size_t>(metric - kMetricNames.begin())] =
          number_of<double>(fields[i], where);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace pipesim
