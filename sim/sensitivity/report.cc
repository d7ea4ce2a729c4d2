#include "sim/sensitivity/report.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "sim/core/csv.h"
#include "sim/core/text.h"
#include "sim/metrics/report.h"
#include "sim/report/json/choice.h"
#include "sim/report/json/schema.h"
#include "sim/report/metrics/json.h"
#include "sim/report/metrics/row.h"
#include "sim/report/text/aligned.h"

namespace pipesim {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLeastShown = 5e-5;  // less is "="

std::string relative(double now, double before) {
  const double change = now / before - 1;
  return std::abs(change) < kLeastShown ? "=" : fmt::format("{:+.2f}%", 100 * change);
}

std::string points(double now, double before) {
  const double change = now - before;
  return std::abs(change) < kLeastShown ? "=" : fmt::format("{:+.2f}", 100 * change);
}

// A line per reason, in the order in which reasons come up.
std::string not_applicable_lines(const std::vector<NotApplicable>& lacking) {
  std::vector<std::pair<std::string, std::string>> names_of_reason;
  for (const NotApplicable& each : lacking) {
    const auto known = std::ranges::find(names_of_reason, each.reason,
                                         &std::pair<std::string, std::string>::first);
    if (known == names_of_reason.end()) {
      names_of_reason.emplace_back(each.reason, each.what);
    } else {
      known->second += fmt::format(", {}", each.what);
    }
  }
  std::string text;
  for (const auto& [reason, names] : names_of_reason) {
    text += fmt::format("does not apply, {}: {}\n", reason, names);
  }
  return text;
}

std::string factor_text(const Effect& effect) {
  if (effect.applied == effect.factor) return fmt::format("{:g}", effect.factor);
  return fmt::format("{:.3g} (of {:g})", effect.applied, effect.factor);
}

// The bubble that people see: of the busiest device where that is another.
const char* bubble_of(const Outcome& base) {
  const bool unequal = unequal_work(*base["bubble_rate"], *base["bubble_rate_busiest"]);
  return unequal ? "bubble_rate_busiest" : "bubble_rate";
}

Row row_of(const Effect& effect, const Outcome& base) {
  Row row{std::string(effect.what), factor_text(effect), effect.from, effect.to};
  if (!effect.outcome) {
    row.insert(row.end(), {"cannot be run", "-", "-", "-", "-"});
    return row;
  }
  const auto change = [&](const char* name) -> std::string {
    const auto now = (*effect.outcome)[name];
    const auto before = base[name];
    if (!now || !before) return "-";
    const bool share = metric_named(name).unit == MetricUnit::kShare;
    return share ? points(*now, *before) : relative(*now, *before);
  };
  row.insert(row.end(), {change("iteration_seconds"), change("microbatches_per_second"),
                         change(bubble_of(base)), change(base.peak()),
                         metric_text(metric_named("fits"), (*effect.outcome)["fits"])});
  return row;
}

Json outcome_json(const Outcome& outcome) {
  Json json;
  for (const std::string_view name : kOutcomeMetrics) {
    json[std::string(name)] = metric_json(metric_named(name), outcome[name]);
  }
  return json;
}

Json effect_json(const Effect& effect) {
  return {{"what", effect.what},
          {"key", effect.key},
          {"factor", effect.factor},
          {"applied", effect.applied},
          {"from", effect.from},
          {"to", effect.to},
          {"outcome", effect.outcome ? outcome_json(*effect.outcome) : Json(nullptr)},
          {"refusal", effect.refusal.empty() ? Json(nullptr) : Json(effect.refusal)}};
}

// ",value" for every metric; empty cells where nothing could be run.
std::string csv_outcome(const std::optional<Outcome>& outcome) {
  std::string text;
  for (const std::string_view name : kOutcomeMetrics) {
    text += ',' + metric_field(metric_named(name), outcome ? (*outcome)[name] : std::nullopt);
  }
  return text;
}

}  // namespace

std::string sensitivity_table(const Sensitivity& sensitivity) {
  const Outcome& base = sensitivity.base;
  const auto said = [&](const char* name) {
    return fmt::format("{} {}", metric_named(name).label,
                       metric_text(metric_named(name), base[name]));
  };
  std::string text = sensitivity.label + ": " + said("iteration_seconds");
  const std::string_view bubble = bubble_of(base);
  if (bubble != "bubble_rate") text += ", " + said("bubble_rate_busiest");
  text += ", " + said("bubble_rate");
  if (base[base.peak()]) text += ", " + said(base.peak());
  if (base["fits"]) text += ", " + said("fits");
  std::vector<Row> rows{{"what if", "x", "from", "to", "iteration", "throughput",
                         bubble == "bubble_rate" ? "bubble" : "bubble of busiest", "peak", "fits"}};
  for (const Effect& effect : sensitivity.effects) rows.push_back(row_of(effect, base));
  text += '\n' + aligned(rows);
  for (const Effect& effect : sensitivity.effects) {
    if (effect.outcome) continue;
    text +=
        fmt::format("{} x {:g} cannot be run: {}\n", effect.what, effect.factor, effect.refusal);
  }
  text += "each row plans the schedule, and a balance that is asked for, anew\n";
  if (std::ranges::any_of(sensitivity.effects,
                          [](const Effect& effect) { return effect.applied != effect.factor; })) {
    text +=
        "a (of b): multiplied by a where b was asked for: no efficiency is above 1, and counts are "
        "whole\n";
  }
  return text + not_applicable_lines(sensitivity.not_applicable);
}

std::string sensitivity_csv(std::span<const Sensitivity> all) {
  std::string text = choice_header() + ",what,key,factor,applied,from,to";
  for (const std::string_view name : kOutcomeMetrics) text += fmt::format(",{}", name);
  text += ",refusal\n";
  for (const Sensitivity& each : all) {
    const std::string choice = choice_fields(each.choice);
    text += fmt::format("{},scenario,,1,1,,{},\n", choice, csv_outcome(each.base));
    for (const Effect& effect : each.effects) {
      text += fmt::format("{},{},{},{},{},{},{}{},{}\n", choice, effect.what, effect.key,
                          effect.factor, effect.applied, csv_field(effect.from),
                          csv_field(effect.to), csv_outcome(effect.outcome),
                          effect.refusal.empty() ? "" : csv_field(effect.refusal));
    }
  }
  return text;
}

void write_sensitivity_json(std::ostream& out, std::span<const Sensitivity> all,
                            const std::string& version) {
  Json document;
  document["schema"] = kJsonSchema;
  document["pipesim"] = {{"version", version}};
  document["sensitivity"] = Json::array();
  for (const Sensitivity& each : all) {
    Json json;
    add_choice(json, each.choice);
    json["label"] = each.label;
    json["base"] = outcome_json(each.base);
    json["effects"] = Json::array();
    for (const Effect& effect : each.effects) json["effects"].push_back(effect_json(effect));
    json["not_applicable"] = Json::array();
    for (const NotApplicable& lacks : each.not_applicable) {
      json["not_applicable"].push_back({{"what", lacks.what}, {"reason", lacks.reason}});
    }
    document["sensitivity"].push_back(std::move(json));
  }
  out << document.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace pipesim
