// pipesim new: a first scenario of one's own, from a model and a cluster of the catalogue.
#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "app/commands.h"
#include "sim/core/text.h"
#include "sim/layouts/first_scenario.h"
#include "sim/read/hardware.h"
#include "sim/read/model.h"

namespace pipesim {
namespace {

struct NewOptions {
  std::string model;
  std::string cluster;
  std::optional<int> gpus;
  std::string output = "-";
};

Hardware find_cluster(const std::string& name, const Location& where) {
  const HardwareCatalog catalog = read_all_hardware(where);
  std::vector<std::string> names;
  for (const ClusterEntry& each : catalog.clusters) names.push_back(each.hardware.name);
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    throw InputError(where, fmt::format("unknown cluster '{}'{}", name, suggestion(name, names)));
  }
  return catalog.clusters[static_cast<size_t>(found - names.begin())].hardware;
}

int write_new(const NewOptions& options, const CommandLine& line) {
  const Transformer model = find_model(options.model, line.where("--model", options.model));
  const Hardware hardware = find_cluster(options.cluster, line.where("--cluster", options.cluster));
  const std::string asked = options.gpus ? fmt::format("{}", *options.gpus) : "";
  const FirstSizes sizes = first_sizes(model, hardware, options.gpus, line.where("--gpus", asked));
  const std::string text = first_scenario(model, hardware, sizes);
  write_outputs({{options.output, line.of_option(options.output),
                  [&text](std::ostream& out) { out << text; }}});
  return kDone;
}

}  // namespace

Subcommand add_new(Parser& program) {
  auto options = std::make_shared<NewOptions>();
  Parser& parser =
      program.add_command("new", "Write a first scenario from a model and a cluster, with comments",
                          "  pipesim new --model llama3-70b --cluster dgx-h100 -o mine.yaml\n"
                          "  pipesim new --model mixtral-8x7b --cluster hgx-b200 --gpus 64");
  parser.add_option("--model", options->model, "A name of `pipesim list models`").required();
  parser.add_option("--cluster", options->cluster, "A name of `pipesim list clusters`").required();
  parser.add_option("--gpus", options->gpus, "How many (default: enough to hold the model)")
      .range(2, 1000000);
  parser.add_option("-o,--output", options->output, "File to write ('-': standard output)");
  return {&parser, [options](const CommandLine& line) { return write_new(*options, line); }};
}

}  // namespace pipesim
