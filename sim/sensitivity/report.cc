#include "sim/sensitivity/report.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "sim/core/text.h"
#include "sim/metrics/report.h"
#include "sim/report/json/schema.h"
#include "sim/report/text/aligned.h"
#include "sim/report/text/csv.h"

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

std::string yes_or_no(const std::optional<bool>& fits) {
  if (!fits) return "-";
  return *fits ? "yes" : "no";
}

std::string factor_text(const Effect& effect) {
  if (effect.applied == effect.factor) return fmt::format("{:g}", effect.factor);
  return fmt::format("{:.3g} (of {:g})", effect.applied, effect.factor);
}

Row row_of(const Effect& effect, const Outcome& base, bool unequal) {
  Row row{std::string(effect.what), factor_text(effect), effect.from, effect.to};
  if (!effect.outcome) {
    row.insert(row.end(), {"cannot be run", "-", "-", "-", "-"});
    return row;
  }
  const Outcome& now = *effect.outcome;
  const auto peak = now.peak();
  row.insert(row.end(), {relative(now.iteration.value(), base.iteration.value()),
                         relative(now.microbatches_per_second, base.microbatches_per_second),
                         unequal ? points(now.bubble_rate_busiest, base.bubble_rate_busiest)
                                 : points(now.bubble_rate, base.bubble_rate),
                         peak && base.peak() ? relative(peak->value(), base.peak()->value()) : "-",
                         yes_or_no(now.fits)});
  return row;
}

Json optional_json(const std::optional<Bytes>& bytes) {
  return bytes ? Json(bytes->value()) : Json(nullptr);
}

Json outcome_json(const Outcome& outcome) {
  return {{"iteration_seconds", outcome.iteration.value()},
          {"microbatches_per_second", outcome.microbatches_per_second},
          {"bubble_rate", outcome.bubble_rate},
          {"bubble_rate_busiest", outcome.bubble_rate_busiest},
          {"peak_activation_bytes", optional_json(outcome.peak_activation)},
          {"peak_memory_bytes", optional_json(outcome.peak_memory)},
          {"fits", outcome.fits ? Json(*outcome.fits) : Json(nullptr)}};
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

std::string csv_outcome(const Outcome& outcome) {
  const auto bytes = [](const std::optional<Bytes>& of) {
    return of ? fmt::format("{}", of->value()) : "";
  };
  return fmt::format("{},{},{},{},{},{},{}", outcome.iteration.value(),
                     outcome.microbatches_per_second, outcome.bubble_rate,
                     outcome.bubble_rate_busiest, bytes(outcome.peak_activation),
                     bytes(outcome.peak_memory), outcome.fits ? (*outcome.fits ? "1" : "0") : "");
}

}  // namespace

std::string sensitivity_table(const Sensitivity& sensitivity) {
  const Outcome& base = sensitivity.base;
  const bool unequal = unequal_work(base.bubble_rate, base.bubble_rate_busiest);
  std::string text = fmt::format("{}: iteration {}, ", sensitivity.schedule, human(base.iteration));
  if (unequal) text += fmt::format("bubble of busiest {:.2f}%, ", 100 * base.bubble_rate_busiest);
  text += fmt::format("bubble rate {:.2f}%", 100 * base.bubble_rate);
  if (base.peak()) {
    text += fmt::format(", peak {} {}", base.peak_memory ? "memory" : "activation",
                        human(*base.peak()));
  }
  if (base.fits) text += *base.fits ? ", fits" : ", does not fit";
  std::vector<Row> rows{{"what if", "x", "from", "to", "iteration", "throughput",
                         unequal ? "bubble of busiest" : "bubble", "peak", "fits"}};
  for (const Effect& effect : sensitivity.effects) rows.push_back(row_of(effect, base, unequal));
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
  std::string text =
      "schedule,what,key,factor,applied,from,to,iteration_seconds,microbatches_per_second,bubble_"
      "rate,bubble_rate_busiest,"
      "peak_activation_bytes,peak_memory_bytes,fits,refusal\n";
  for (const Sensitivity& each : all) {
    text +=
        fmt::format("{},scenario,,1,1,,,{},\n", csv_field(each.schedule), csv_outcome(each.base));
    for (const Effect& effect : each.effects) {
      text += fmt::format("{},{},{},{},{},{},{},{},{}\n", csv_field(each.schedule), effect.what,
                          effect.key, effect.factor, effect.applied, csv_field(effect.from),
                          csv_field(effect.to),
                          effect.outcome ? csv_outcome(*effect.outcome) : ",,,,,,",
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
    Json json{{"schedule", each.schedule}, {"base", outcome_json(each.base)}};
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
