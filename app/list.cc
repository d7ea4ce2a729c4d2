// pipesim list: what a scenario may name.
#include <fmt/format.h>
#include <iostream>
#include <memory>

#include "app/commands.h"
#include "models/transformer.h"
#include "sim/pipeline/schedule.h"
#include "sim/scenario/read_model.h"

namespace pipesim {
namespace {

std::string option_text(const OptionSpec& option) {
  std::string range;
  if (option.type == OptionSpec::Type::kInteger || option.type == OptionSpec::Type::kNumber) {
    range = fmt::format(", {} to {}", option.minimum, option.maximum);
  }
  return fmt::format("      {}: {} (default: {}{})\n", option.name, option.help,
                     option.default_text, range);
}

void list_schedules() {
  for (const Schedule* schedule : schedules()) {
    std::cout << fmt::format("{}\n  {}\n  source: {}\n", schedule->name, schedule->summary,
                             schedule->source);
    if (schedule->max_chunks > 1) {
      std::cout << fmt::format("  chunks per device: {} unless set, at least {}\n",
                               schedule->default_chunks, schedule->min_chunks);
    }
    std::cout << fmt::format("  bubble: {} [{}]\n  in flight on device d: {} [{}]\n",
                             schedule->claims.bubble.formula, schedule->claims.bubble.domain,
                             schedule->claims.peak.formula, schedule->claims.peak.domain);
    if (!schedule->options.empty() || schedule->memory_limit) std::cout << "  options:\n";
    if (schedule->memory_limit) {
      std::cout
          << "      memory_limit: a multiple of p x one microbatch's activation on a device, or "
             "bytes of activations per device\n";
    }
    for (const OptionSpec& option : schedule->options) std::cout << option_text(option);
  }
  std::cout.flush();
}

std::string billions(double parameters) { return fmt::format("{:.2f}B", parameters / 1e9); }

void list_models() {
  std::cout << fmt::format("{:<16} {:>11} {:>10} {:>7} {:>7}  source\n", "name", "parameters",
                           "activated", "layers", "hidden");
  for (const Transformer& model : catalogue_models()) {
    std::cout << fmt::format("{:<16} {:>11} {:>10} {:>7} {:>7}  {}\n", model.name,
                             billions(total_parameters(model)),
                             billions(total_activated_parameters(model)), model.num_layers,
                             model.hidden_size, model.source);
  }
  std::cout.flush();
}

}  // namespace

Subcommand add_list(CLI::App& app) {
  auto what = std::make_shared<std::string>("schedules");
  CLI::App* parser = app.add_subcommand("list", "List what a scenario may name");
  parser->add_option("what", *what, "schedules or models")
      ->check(CLI::IsMember({"schedules", "models"}));
  return {parser, [what](const CommandLine&) {
            *what == "models" ? list_models() : list_schedules();
            return kDone;
          }};
}

}  // namespace pipesim
