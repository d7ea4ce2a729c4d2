// pipesim list: what a scenario may name.
#include <fmt/format.h>
#include <iostream>
#include <memory>

#include "app/commands.h"
#include "models/transformer.h"
#include "sim/core/data_folder.h"
#include "sim/planning/schedule.h"
#include "sim/read/hardware.h"
#include "sim/read/model.h"
#include "sim/report/text/costs.h"

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
      const bool fixed = schedule->min_chunks == schedule->max_chunks;
      std::cout << fmt::format(
          "  chunks per device: {}{}\n", schedule->default_chunks,
          fixed ? ", no other number"
                : fmt::format(" unless set, {} to {}", schedule->min_chunks, schedule->max_chunks));
    }
    std::cout << fmt::format("  bubble: {} [{}]\n  in flight on device d: {} [{}]\n",
                             schedule->claims.bubble.formula, schedule->claims.bubble.domain,
                             schedule->claims.peak.formula, schedule->claims.peak.domain);
    for (const VocabularySupport& support : schedule->vocabulary) {
      std::cout << fmt::format("  vocabulary {}: bubble {} [{}]; in flight {} [{}]\n",
                               to_text(support.placement), support.claims.bubble.formula,
                               support.claims.bubble.domain, support.claims.peak.formula,
                               support.claims.peak.domain);
    }
    if (!schedule->options.empty() || schedule->memory_limit) std::cout << "  options:\n";
    if (schedule->memory_limit) {
      std::cout << "      memory_limit: a multiple of p x one microbatch's activation on a device, "
                   "bytes of activations per device, or {total: bytes of all memory}\n";
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

void list_hardware(bool clusters, const CommandLine& line) {
  const auto catalog =
      read_hardware_folder(data_folder("catalog"), line.where(line.arguments().size() - 1));
  if (clusters) {
    for (const ClusterEntry& entry : catalog.clusters) {
      std::cout << fmt::format("{}\n  {}\n  gpu: {}\n", entry.hardware.name, entry.title,
                               entry.hardware.gpu.name);
      std::cout << sourced_list(entry.numbers);
    }
    return;
  }
  for (const GpuEntry& entry : catalog.gpus) {
    std::cout << fmt::format("{}\n  {}\n", entry.gpu.name, entry.title);
    std::cout << sourced_list(entry.numbers);
  }
}

}  // namespace

Subcommand add_list(Parser& program) {
  auto what = std::make_shared<std::string>("schedules");
  Parser& parser = program.add_command("list", "List what a scenario may name",
                                       "  pipesim list\n"
                                       "  pipesim list clusters");
  parser.add_option("what", *what, "schedules, models, clusters or gpus")
      .one_of({"schedules", "models", "clusters", "gpus"});
  return {&parser, [what](const CommandLine& line) {
            if (*what == "schedules") {
              list_schedules();
            } else if (*what == "models") {
              list_models();
            } else {
              list_hardware(*what == "clusters", line);
            }
            return kDone;
          }};
}

}  // namespace pipesim
