// pipesim new: a first scenario of one's own, with the layout that `pipesim plan` finds.
#include <algorithm>
#include <fmt/format.h>
#include <iostream>
#include <memory>

#include "app/commands.h"
#include "app/common_options.h"
#include "app/plan_options.h"
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
  std::optional<long> global_batch;
  std::optional<int> seq_length;
  std::string output = "-";
};

Hardware find_cluster(const std::string& name, const Location& where) {
  const HardwareCatalog catalog = read_all_hardware(where);
  std::vector<std::string> names;
  for (const ClusterEntry& each : catalog.clusters) names.push_back(each.hardware.name);
  const auto found = std::ranges::find(names, meant_name(name, names));
  if (found == names.end()) {
    throw InputError(where, fmt::format("unknown cluster '{}'{}", name, suggestion(name, names)));
  }
  return catalog.clusters[static_cast<size_t>(found - names.begin())].hardware;
}

// Without a number of GPUs twice as many are tried, a few times, where nothing fits.
ClusterPlan planned(const NewOptions& options, const Transformer& model, const Hardware& hardware,
                    const CommandLine& line) {
  constexpr int kDoublings = 4;
  PlanCommand command;
  command.model = model.name;
  command.clusters = {hardware.name};
  command.seq_length = options.seq_length.value_or(first_seq_length(model));
  command.baseline = "none";
  command.gpus = options.gpus.value_or(fewest_gpus(model, hardware));
  for (int doublings = 0;; ++doublings) {
    command.global_batch = options.global_batch.value_or(std::max(32, command.gpus));
    ClusterPlan plan = find_layouts(command, line);
    if (plan.result.stopped) {
      throw InfeasibleError("the search was ended early: no scenario is written");
    }
    if (!plan.result.best.empty()) return plan;
    if (options.gpus || doublings == kDoublings) {
      throw InfeasibleError(no_fit_text(plan, read_all_hardware(line.where("--cluster")).clusters));
    }
    command.gpus *= 2;
  }
}

int write_new(const NewOptions& options, const CommandLine& line) {
  const Transformer model = find_model(options.model, line.where("--model", options.model));
  const Hardware hardware = find_cluster(options.cluster, line.where("--cluster", options.cluster));
  check_writable({options.output}, line);
  const ClusterPlan plan = planned(options, model, hardware, line);
  const std::string text = first_scenario(plan, plan.result.best.front());
  write_outputs({{options.output, line.of_option(options.output),
                  [&text](std::ostream& out) { out << text; }}});
  return kDone;
}

}  // namespace

Subcommand add_new(Parser& program) {
  auto options = std::make_shared<NewOptions>();
  Parser& parser = program.add_command(
      "new", "Write a first scenario, with the layout that plan finds",
      "  pipesim new --model llama3-70b --cluster dgx-h100 -o mine.yaml\n"
      "  pipesim new --model mixtral-8x7b --cluster hgx-b200 --gpus 64 --seq-length 8k");
  parser.add_option("--model", options->model, "A name of `pipesim list models`").required();
  parser.add_option("--cluster", options->cluster, "A name of `pipesim list clusters`").required();
  parser.add_option("--gpus", options->gpus, "How many (default: enough to hold the model)")
      .range(1, 1 << 20);
  parser
      .add_option("--global-batch-size,--gbs", options->global_batch,
                  "Samples of an iteration (default: one for each GPU, 32 at least)")
      .range(1, 1 << 30);
  parser
      .add_option("--seq-length", options->seq_length,
                  "Tokens of a sample, such as 8k (default: 4096, or fewer where positions are "
                  "learned)")
      .with_binary_units()
      .range(1, 1 << 28);
  add_output(parser, options->output);
  parser.add_threads();
  return {&parser, [options](const CommandLine& line) { return write_new(*options, line); }};
}

}  // namespace pipesim
