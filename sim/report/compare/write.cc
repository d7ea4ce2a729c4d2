// Two orders compared, as text, JSON, a drawing and a page.
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/report/compare/orders.h"
#include "sim/report/compare/tables.h"
#include "sim/report/json/schema.h"
#include "sim/report/metrics/json.h"
#include "sim/report/metrics/row.h"
#include "sim/report/svg/svg.h"
#include "sim/report/svg/xml.h"

namespace pipesim {
namespace {

using Json = nlohmann::ordered_json;

Json placed_json(const PlacedPass& pass) {
  if (pass.name.empty()) return nullptr;
  return {{"pass", pass.name}, {"start_seconds", pass.start.value()}};
}

Json part_json(const std::optional<OrdersPart>& part) {
  if (!part) return nullptr;
  return {{"position", part->position}, {"a", placed_json(part->a)}, {"b", placed_json(part->b)}};
}

Json loss_json(const DeviceLoss& loss) {
  Json json{{"busy", loss.busy.value()}};
  for (size_t c = 0; c < kIdleCauseNames.size(); ++c) {
    json[std::string(kIdleCauseNames[c])] = loss.idle[static_cast<IdleCause>(c)].value();
  }
  json["sum"] = loss.sum().value();
  return json;
}

Json order_json(const Answer& answer, const PathSeconds& path) {
  Json devices = Json::array();
  for (const Seconds each : path.devices) devices.push_back(each.value());
  Json json{{"order", answer.made.label}, {"scenario", answer.made.scenario->file}};
  const MetricRow metrics = metrics_of(*answer.made.scenario, answer.result);
  for (const char* name : {"iteration_seconds", "makespan_seconds", "bubble_rate",
                           "bubble_rate_busiest", "peak_activation_bytes"}) {
    json[name] = metric_json(metric_named(name), metric(metrics, name));
  }
  json["critical_path_seconds"] = {
      {"devices", devices}, {"messages", path.messages.value()}, {"others", path.others.value()}};
  return json;
}

Json band_json(const Answer& a, const Answer& b) {
  const auto band = difference_band_of(a, b);
  if (!band) return nullptr;
  const double ratio = b.result.report.iteration / a.result.report.iteration;
  return {{"level", kBandLevel},
          {"b_over_a", {ratio * band->low(ratio), ratio * band->high(ratio)}},
          {"pairs", band->pairs},
          {"told_apart", !band->tied(ratio)}};
}

// One of the two drawings.
std::pair<std::string, SvgSize> drawing_of(const std::string& name, const Answer& answer,
                                           const SvgOptions& shared) {
  std::ostringstream text;
  SvgOptions options = shared;
  options.name = fmt::format("{}: {}", name, answer.made.label);
  options.bytes = knows_memory(*answer.made.scenario);
  options.prefix = name;
  const SvgSize size = write_svg(text, answer.made, answer.result, options);
  return {text.str(), size};
}

// By device the position where its order parts from the other's.
std::vector<std::optional<size_t>> marked(const OrdersCompared& compared) {
  std::vector<std::optional<size_t>> positions;
  for (const auto& part : compared.parts) {
    positions.push_back(part ? std::optional(part->position) : std::nullopt);
  }
  return positions;
}

std::vector<std::string> sentences(const Answer& a, const Answer& b,
                                   const OrdersCompared& compared) {
  std::vector<std::string> all{verdict(a, b), band_of_difference(a, b), first_part(compared),
                               whose_path(compared)};
  std::erase(all, "");
  return all;
}

}  // namespace

std::string orders_text(const Answer& a, const Answer& b, const OrdersCompared& compared) {
  const auto table = [](const OrdersTable& of) {
    return (of.title.empty() ? "" : "\n" + of.title + "\n") + aligned(of.rows, of.left);
  };
  std::string text = table(summary_table(a, b)) + '\n';
  for (const std::string& said : sentences(a, b, compared)) text += said + '\n';
  return text + table(parts_table(compared)) + table(losses_table(compared)) +
         table(path_table(compared));
}

std::string orders_json(const Answer& a, const Answer& b, const OrdersCompared& compared,
                        const std::string& version) {
  Json parts = Json::array();
  for (const auto& part : compared.parts) parts.push_back(part_json(part));
  Json losses = Json::array();
  for (const DeviceLoss& loss : compared.losses) losses.push_back(loss_json(loss));
  const Json document{
      {"schema", kJsonSchema},
      {"pipesim", {{"version", version}}},
      {"a", order_json(a, compared.path[0])},
      {"b", order_json(b, compared.path[1])},
      {"difference_band", band_json(a, b)},
      {"first_difference_device", compared.first ? Json(*compared.first) : Json(nullptr)},
      {"first_differences", parts},
      {"b_less_a_seconds", {{"devices", losses}, {"mean", loss_json(compared.mean)}}}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string orders_svg(const Answer& a, const Answer& b, const OrdersCompared& compared) {
  SvgOptions options;
  const SvgAxis of_a = axis_of(a.result);
  const SvgAxis of_b = axis_of(b.result);
  options.axis = SvgAxis{std::max(of_a.seconds, of_b.seconds), std::max(of_a.pixels, of_b.pixels)};
  options.marked = marked(compared);
  const auto [first, first_size] = drawing_of("A", a, options);
  const auto [second, second_size] = drawing_of("B", b, options);
  const double width = std::max(first_size.width, second_size.width);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.2f}\" height=\"{1:.2f}\" "
      "viewBox=\"0 0 {0:.2f} {1:.2f}\" role=\"img\">\n<title>{2}</title>\n{3}"
      "<g transform=\"translate(0 {4:.2f})\">\n{5}</g>\n</svg>\n",
      width, first_size.height + second_size.height,
      xml_escaped(verdict(a, b) + " " + first_part(compared)), first, first_size.height, second);
}

HtmlReport orders_report(const Answer& a, const Answer& b, const OrdersCompared& compared,
                         const std::string& version, const std::vector<std::string>& overrides) {
  Json orders{{"sentences", sentences(a, b, compared)},
              {"marked", Json::array()},
              {"tables", Json::array()}};
  for (const auto& position : marked(compared)) {
    orders["marked"].push_back(position ? Json(*position) : Json(nullptr));
  }
  for (const OrdersTable& table :
       {losses_table(compared), parts_table(compared), path_table(compared)}) {
    orders["tables"].push_back(
        {{"title", table.title}, {"rows", table.rows}, {"left", table.left}});
  }
  HtmlReport report(version);
  report.add_orders(overrides, a, b, std::move(orders));
  return report;
}

}  // namespace pipesim
