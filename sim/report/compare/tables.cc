#include "sim/report/compare/tables.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "sim/core/text.h"
#include "sim/report/metrics/row.h"
#include "sim/report/text/difference.h"

namespace pipesim {
namespace {

// "+1.2 ms", "-3 ms", "0 s".
std::string change(Seconds seconds) {
  const std::string text = human(seconds);
  return text != "0 s" && seconds > Seconds(0) ? "+" + text : text;
}

std::string placed(const PlacedPass& pass) { return pass.name.empty() ? "(ended)" : pass.name; }

std::string started(const PlacedPass& pass) { return pass.name.empty() ? "-" : human(pass.start); }

Row losses_row(std::string name, const DeviceLoss& loss, const std::vector<IdleCause>& causes) {
  Row row{std::move(name), change(loss.busy)};
  for (const IdleCause cause : causes) row.push_back(change(loss.idle[cause]));
  row.push_back(change(loss.sum()));
  return row;
}

constexpr std::array<std::string_view, 4> kSummary{"iteration_seconds", "makespan_seconds",
                                                   "bubble_rate_busiest", "peak_activation_bytes"};

Row summary_head() {
  Row row{"", "order"};
  for (const std::string_view name : kSummary) row.emplace_back(metric_named(name).label);
  return row;
}

Row summary_row(const std::string& name, const Answer& answer) {
  const MetricRow metrics = metrics_of(*answer.made.scenario, answer.result);
  Row row{name, answer.made.label};
  for (const std::string_view each : kSummary) {
    row.push_back(metric_text(metric_named(each), metric(metrics, each)));
  }
  return row;
}

Row path_row(std::string name, Seconds a, Seconds b) {
  return {std::move(name), human(a), human(b), change(b - a)};
}

}  // namespace

OrdersTable summary_table(const Answer& a, const Answer& b) {
  return {"", {summary_head(), summary_row("A", a), summary_row("B", b)}, 2};
}

OrdersTable parts_table(const OrdersCompared& compared) {
  OrdersTable table{"first difference of each device's order, positions from 0",
                    {{"device", "position", "A runs", "at", "B runs", "at"}}};
  for (size_t d = 0; d < compared.parts.size(); ++d) {
    const auto& part = compared.parts[d];
    if (part) {
      table.rows.push_back({fmt::format("{}", d), fmt::format("{}", part->position),
                            placed(part->a), started(part->a), placed(part->b), started(part->b)});
    } else {
      table.rows.push_back({fmt::format("{}", d), "none", "-", "-", "-", "-"});
    }
  }
  return table;
}

OrdersTable losses_table(const OrdersCompared& compared) {
  const auto causes = causes_in(compared);
  OrdersTable table{"time that B takes more than A, busy and idle by cause", {{"device", "busy"}}};
  for (const IdleCause cause : causes) {
    std::string name(kIdleCauseNames[static_cast<size_t>(cause)]);
    std::ranges::replace(name, '_', '-');
    table.rows.front().push_back(std::move(name));
  }
  table.rows.front().emplace_back("sum");
  for (size_t d = 0; d < compared.losses.size(); ++d) {
    table.rows.push_back(losses_row(fmt::format("{}", d), compared.losses[d], causes));
  }
  table.rows.push_back(losses_row("mean", compared.mean, causes));
  return table;
}

OrdersTable path_table(const OrdersCompared& compared) {
  const auto& [a, b] = compared.path;
  OrdersTable table{"critical path: what the last end waits for", {{"on", "A", "B", "B less A"}}};
  for (size_t d = 0; d < a.devices.size(); ++d) {
    table.rows.push_back(path_row(fmt::format("device {}", d), a.devices[d], b.devices[d]));
  }
  table.rows.push_back(path_row("messages", a.messages, b.messages));
  if (a.others + b.others > Seconds(0)) {
    table.rows.push_back(path_row("collectives and copies", a.others, b.others));
  }
  table.rows.push_back(path_row("sum", a.sum(), b.sum()));
  return table;
}

std::string verdict(const Answer& a, const Answer& b) {
  const Seconds of_a = a.result.report.iteration;
  const Seconds of_b = b.result.report.iteration;
  const Seconds apart(std::abs((of_b - of_a).value()));
  if (apart.value() < 1e-13) return "A and B take the same time.";
  return fmt::format("B takes {} {} than A ({:+.2f}%).", human(apart),
                     of_b < of_a ? "less" : "more", 100 * (of_b / of_a - 1));
}

std::string band_of_difference(const Answer& a, const Answer& b) {
  const auto band = difference_band_of(a, b);
  if (!band) return "";
  const double ratio = b.result.report.iteration / a.result.report.iteration;
  return fmt::format("{}: B takes {} than A{}.", pairs_text(*band), difference_text(*band, ratio),
                     band->tied(ratio) ? ", which does not tell them apart" : "");
}

std::string first_part(const OrdersCompared& compared) {
  if (!compared.first) return "The orders are the same on every device.";
  const OrdersPart& part = *compared.parts[*compared.first];
  return fmt::format("They part first on device {}: at position {} A runs {}, B {}.",
                     *compared.first, part.position, placed(part.a), placed(part.b));
}

std::string whose_path(const OrdersCompared& compared) {
  const auto share = [](const PathSeconds& path) {
    const Seconds sum = path.sum();
    const int most = path.most();
    return fmt::format("device {} ({:.0f}%)", most,
                       sum > Seconds(0) ? 100 * (path.devices[most] / sum) : 0);
  };
  return fmt::format("A's critical path runs most on {}, B's on {}.", share(compared.path[0]),
                     share(compared.path[1]));
}

}  // namespace pipesim
