// pipesim list: what a scenario may name.
#include <fmt/format.h>
#include <iostream>
#include <memory>

#include "app/commands.h"
#include "models/layer_parameters.h"
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
    std::cout << fmt::format("  bubble: {}\n  in flight on device d: {}\n",
                             to_text(schedule->claims.bubble), to_text(schedule->claims.peak));
    for (const VocabularySupport& support : schedule->vocabulary) {
      std::cout << fmt::format("  vocabulary {}: bubble {}; in flight {}\n",
                               to_text(support.placement), to_text(support.claims.bubble),
                               to_text(support.claims.peak));
    }
    if (schedule->runs_on != Runtime::kNone) {
      std::cout << fmt::format("  runs on: {}\n", to_text(schedule->runs_on));
    }
    if (!schedule->left_out_of_plan.empty()) {
      std::cout << fmt::format("  plan tries it only by name: {}\n", schedule->left_out_of_plan);
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

// The page docs/reference/schedule-list.md, whose links start there.
void list_schedules_as_page() {
  const auto cell = [](std::string_view text) {
    std::string escaped;
    for (const char each : text) {
      if (each == '|') escaped += '\\';
      escaped += each;
    }
    return escaped;
  };
  const auto claimed = [&](const auto& claim) {
    return cell(claim.is_made() ? std::string(claim.formula) : to_text(claim));
  };
  std::cout
      << "# List of schedules\n\nMade by `pipesim list --format markdown` from their records. "
         "`pipesim list` says where each formula holds,\nand prints options and sources; "
         "[the gallery](gallery.md) draws them. What the planner tries by itself has no\n"
         "reason in the last column.\n\n"
         "| schedule | file | order | bubble | in flight on device d | runs on | why `plan` "
         "tries it only by name |\n|---|---|---|---|---|---|---|\n";
  for (const Schedule* schedule : schedules()) {
    const Runtime runtime = schedule->runs_on;
    std::cout << fmt::format(
        "| `{0}` | [{1}](../../{2}) | {3} | {4} | {5} | {6} | {7} |\n", schedule->name,
        schedule->file.substr(schedule->file.rfind('/') + 1), schedule->file,
        cell(schedule->order.empty() ? schedule->summary : schedule->order),
        claimed(schedule->claims.bubble), claimed(schedule->claims.peak),
        runtime == Runtime::kNone ? "" : to_text(runtime), cell(schedule->left_out_of_plan));
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
  auto format = std::make_shared<std::string>("text");
  Parser& parser = program.add_command("list", "List what a scenario may name",
                                       "  pipesim list\n"
                                       "  pipesim list clusters");
  parser.add_option("what", *what, "schedules, models, clusters or gpus")
      .one_of({"schedules", "models", "clusters", "gpus"});
  parser.add_option("--format", *format, "Of schedules: text, or markdown for a page of docs")
      .one_of({"text", "markdown"});
  return {&parser, [what, format](const CommandLine& line) {
            if (*format == "markdown" && *what != "schedules") {
              throw InputError(line.where("--format"), "only schedules are listed as markdown");
            }
            if (*what == "schedules") {
              *format == "markdown" ? list_schedules_as_page() : list_schedules();
            } else if (*what == "models") {
              list_models();
            } else {
              list_hardware(*what == "clusters", line);
            }
            return kDone;
          }};
}

}  // namespace pipesim
