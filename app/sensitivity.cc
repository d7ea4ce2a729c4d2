// pipesim sensitivity: what moves when each number of a scenario is multiplied, one at a time.
#include <charconv>
#include <fmt/format.h>
#include <iostream>
#include <memory>
#include <sstream>

#include "app/commands.h"
#include "app/common_options.h"
#include "app/comparison.h"
#include "app/ranges.h"
#include "app/refusals.h"
#include "sim/prepare/knife_edge.h"
#include "sim/read/scenario.h"
#include "sim/sensitivity/report.h"

namespace pipesim {
namespace {

struct SensitivityCommand {
  std::string file;
  std::vector<std::string> overrides;
  std::string factors = "0.5,2";
  std::string json, csv;
};

std::vector<double> factors_of(const SensitivityCommand& command, const CommandLine& line) {
  std::vector<double> factors;
  std::istringstream list(command.factors);
  for (std::string text; std::getline(list, text, ',');) {
    double factor = 0;
    const char* end = text.data() + text.size();
    const auto [read, error] = std::from_chars(text.data(), end, factor);
    if (error != std::errc() || read != end ||
        !(factor >= kSensitivityFactors.least && factor <= kSensitivityFactors.most)) {
      throw InputError(
          line.where(command.factors),
          fmt::format("expected factors from {} to {} with commas between, such "
                      "as 0.5,2, not '{}'",
                      kSensitivityFactors.least, kSensitivityFactors.most, command.factors));
    }
    factors.push_back(factor);
  }
  if (factors.empty()) {
    throw InputError(line.where(command.factors), "expected at least one factor, such as 0.5,2");
  }
  return factors;
}

int run_sensitivity(const SensitivityCommand& command, const CommandLine& line) {
  const std::vector<double> factors = factors_of(command, line);
  Scenario scenario =
      read_scenario_file(command.file, line.where(command.file), line.overrides(command.overrides));
  check_writable({command.json, command.csv}, line);
  std::vector<Sensitivity> all;
  std::vector<std::string> edges;
  const auto refused = each_feasible(std::move(scenario), [&](const Case& made) {
    all.push_back(sensitivity_of(made, factors));
    edges.push_back(knife_edge_of(made));
  });
  write_outputs({{command.json, line.of_option(command.json),
                  [&](std::ostream& out) { write_sensitivity_json(out, all, PIPESIM_VERSION); }},
                 {command.csv, line.of_option(command.csv),
                  [&](std::ostream& out) { out << sensitivity_csv(all); }}});
  const int code = refused.empty() ? kDone : kFailed;
  if (command.json == "-" || command.csv == "-") {
    std::cerr << refusals(refused);
    return code;
  }
  for (size_t i = 0; i < all.size(); ++i) {
    std::cout << (i == 0 ? "" : "\n") << sensitivity_table(all[i]);
    if (!edges[i].empty()) std::cout << all[i].label << ": " << edges[i] << '\n';
  }
  std::cout << refusals(refused);
  return code;
}

}  // namespace

Subcommand add_sensitivity(Parser& program) {
  auto command = std::make_shared<SensitivityCommand>();
  Parser& parser =
      program.add_command("sensitivity", "Show what moves when each number of a scenario changes",
                          "  pipesim sensitivity scenarios/quickstart.yaml schedule=zb-h1\n"
                          "  pipesim sensitivity scenarios/llama3-70b-h100.yaml 1f1b "
                          "--factor 0.9,1.1 --csv moves.csv");
  add_scenario(parser, command->file, command->overrides);
  parser.add_option("--factor", command->factors,
                    "Factors on every value, with commas between (default 0.5,2)");
  add_json(parser, command->json, "the results");
  add_csv(parser, command->csv, "the results");
  parser.add_threads();
  return {&parser, [command](const CommandLine& line) { return run_sensitivity(*command, line); }};
}

}  // namespace pipesim
