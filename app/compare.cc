// pipesim compare: two orders side by side.
#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <utility>

#include "app/commands.h"
#include "app/common_options.h"
#include "app/orders.h"
#include "sim/core/data_folder.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "sim/report/compare/orders.h"

namespace pipesim {
namespace {

struct CompareOptions {
  std::vector<std::string> arguments;
  std::string json, html, svg;
  std::string format;  // of an earlier release: the form of what --output names
  std::string output = "-";
};

std::vector<Case> both_of(Scenario scenario, const Location& where) {
  if (scenario.schedules.size() != 2) {
    throw InputError(where, fmt::format("two orders are compared, and this scenario has {}: name "
                                        "two behind it",
                                        scenario.schedules.size()));
  }
  std::vector<Case> cases;
  for (const Prepared& each : prepare_all(std::make_shared<const Scenario>(std::move(scenario)))) {
    cases.push_back(each.get());
  }
  return cases;
}

// A and B, from one scenario with two schedules, two scenarios, or a scenario and orders for it: of
// three arguments the first YAML file is the scenario.
std::vector<Case> cases_of(const std::vector<std::string>& inputs,
                           const std::vector<std::string>& overrides, const CommandLine& line) {
  const auto scenarios = std::ranges::count_if(inputs, is_yaml);
  if (inputs.empty() || scenarios == 0) {
    throw InputError(
        inputs.empty() ? line.where(line.arguments().size()) : line.where(inputs.front()),
        "expected a scenario (.yaml), whose costs both orders take");
  }
  if (inputs.size() > 3) {
    throw InputError(line.where(inputs.back()),
                     "expected two scenarios, or one and two orders of it");
  }
  if (inputs.size() == 1) {
    const Location where = line.where(inputs[0]);
    return both_of(read_scenario_file(inputs[0], where, line.overrides(overrides)), where);
  }
  if (inputs.size() == 2 && scenarios == 2) {
    return {case_of({inputs[0]}, overrides, line), case_of({inputs[1]}, overrides, line)};
  }
  const auto scenario = std::ranges::find_if(inputs, is_yaml);
  std::vector<Case> cases;
  for (auto input = inputs.begin(); input != inputs.end(); ++input) {
    const bool itself = input == scenario;
    if (itself && inputs.size() == 3) continue;
    cases.push_back(case_of({*scenario, itself ? "" : *input}, overrides, line));
  }
  return cases;
}

// The options without those of an earlier release.
CompareOptions settled(CompareOptions options) {
  for (const auto& [format, path] :
       {std::pair("json", &CompareOptions::json), std::pair("html", &CompareOptions::html),
        std::pair("svg", &CompareOptions::svg)}) {
    if (options.format == format) options.*path = std::exchange(options.output, "");
  }
  // A document on standard output stands there alone.
  const bool printed = options.json == "-" || options.html == "-" || options.svg == "-";
  if (printed && options.output == "-") options.output.clear();
  return options;
}

// `overrides` changed the scenarios of both.
std::vector<Output> outputs(const CompareOptions& options,
                            const std::vector<std::string>& overrides, const CommandLine& line,
                            const Answer& a, const Answer& b) {
  const OrdersCompared compared = compare_orders(a.result, b.result);
  const auto output = [&line](const std::string& path, std::string text) {
    return Output{path, line.of_option(path),
                  [text = std::move(text)](std::ostream& out) { out << text; }};
  };
  std::vector<Output> all;
  if (!options.json.empty()) {
    all.push_back(output(options.json, orders_json(a, b, compared, PIPESIM_VERSION)));
  }
  if (!options.html.empty()) {
    const HtmlReport report = orders_report(a, b, compared, PIPESIM_VERSION, overrides);
    all.push_back(output(options.html, report.page(data_folder("report"), line.where(0))));
  }
  if (!options.svg.empty()) all.push_back(output(options.svg, orders_svg(a, b, compared)));
  all.push_back(output(options.output, orders_text(a, b, compared)));
  return all;
}

int compare_two(const CompareOptions& asked, const CommandLine& line) {
  const CompareOptions options = settled(asked);
  const OrderArguments arguments(options.arguments);
  const std::vector<std::string>& inputs = arguments.inputs;
  const std::vector<Case> cases = cases_of(inputs, arguments.overrides, line);
  const auto size = [&cases](size_t i) {
    const Scenario& scenario = *cases[i].scenario;
    return std::pair(scenario.parallel.pipeline, scenario.parallel.pipelines);
  };
  if (size(0) != size(1)) {
    throw InputError(line.where(inputs.back()),
                     fmt::format("orders are compared device by device: A has {} pipelines of {} "
                                 "devices, B {} of {}",
                                 size(0).second, size(0).first, size(1).second, size(1).first));
  }
  check_writable({options.json, options.html, options.svg, options.output}, line);
  const Answer a{cases[0], simulate(cases[0])};
  const Answer b{cases[1], simulate(cases[1])};
  write_outputs(outputs(options, arguments.overrides, line, a, b));
  return kDone;
}

}  // namespace

Subcommand add_compare(Parser& program) {
  auto options = std::make_shared<CompareOptions>();
  Parser& parser = program.add_command(
      "compare", "Two orders side by side: where they part, who waits for what",
      "  pipesim compare scenarios/quickstart.yaml 1f1b zb-h1\n"
      "  pipesim compare scenarios/quickstart.yaml 1f1b zb-h1 --html page.html");
  parser
      .add_option(
          "orders", options->arguments,
          "A scenario (YAML) and two of: a schedule's name, a description (YAML), a PyTorch "
          "schedule CSV; or two scenarios; path.to.key=value changes the scenarios")
      .required();
  add_output(parser, options->output, "File for the text ('-': standard output)");
  add_json(parser, options->json, "the comparison");
  add_html(parser, options->html, "the comparison");
  parser.add_option("--svg", options->svg, "Write both as a drawing ('-': standard output)");
  parser.retire(
      parser.add_option("--format", options->format, "").one_of({"text", "json", "svg", "html"}),
      "instead of --format FORM -o FILE write --json FILE, --html FILE or --svg FILE");
  return {&parser, [options](const CommandLine& line) { return compare_two(*options, line); }};
}

}  // namespace pipesim
