// pipesim plot: figures, drawn by the scripts of plots/ with matplotlib. Scenarios are simulated
// here and handed on as documents; results that exist already are drawn as they are.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "app/commands.h"
#include "app/common_options.h"
#include "app/comparison.h"
#include "app/figure_script.h"
#include "app/refusals.h"
#include "app/temporary.h"
#include "sim/core/data_folder.h"
#include "sim/core/text.h"
#include "sim/read/band.h"
#include "sim/read/scenario.h"
#include "sim/report/json/json.h"
#include "sim/report/json/plot_data.h"
#include "sim/sensitivity/memory_scaling.h"
#include "sim/sensitivity/report.h"
#include "sim/sweep/results.h"

namespace pipesim {
namespace {

namespace fs = std::filesystem;

constexpr std::array kFactors{0.5, 2.0};  // of a sensitivity analysis that is made here

struct PlotCommand {
  std::string kind;
  std::vector<std::string> inputs;  // files, folders of sweeps, and key=value
  std::string output;
  // Handed on to the script.
  std::string x, y, value, panel, series, relative_to, published, title;
  std::vector<std::string> where;
  double width = 0;
  bool band = false;
};

// An option passed on to the script, and the kinds of figures that know it.
struct ScriptOption {
  const char* name;
  std::string PlotCommand::*text;
  std::string_view kinds;  // none: every kind

  [[nodiscard]] bool taken_by(std::string_view kind) const {
    return kinds.empty() || kinds.find(kind) != std::string_view::npos;
  }
};
constexpr std::string_view kOfTables = "pareto, curves and heatmap";
constexpr std::array<ScriptOption, 8> kScriptOptions{{
    {"x", &PlotCommand::x, kOfTables},
    {"y", &PlotCommand::y, kOfTables},
    {"value", &PlotCommand::value, "heatmap and sensitivity"},
    {"panel", &PlotCommand::panel, kOfTables},
    {"series", &PlotCommand::series, "pareto and curves"},
    {"relative-to", &PlotCommand::relative_to, kOfTables},
    {"published", &PlotCommand::published, kOfTables},
    {"title", &PlotCommand::title, ""},
}};

// The one that may be repeated.
constexpr ScriptOption kWhere{"where", nullptr, kOfTables};
// The one that has no value.
constexpr ScriptOption kBand{"band", nullptr, "pareto and curves"};

constexpr const char* kMemoryScaling = "memory-scaling";
const std::vector<std::string> kKinds{"timeline", "memory",  "bubble",      "pareto",
                                      "curves",   "heatmap", "sensitivity", kMemoryScaling};
const std::vector<std::string> kFormats{"pdf", "svg", "png"};

// Returns the schedules that were refused: the document is of the others.
std::vector<RefusedSchedule> write_document(std::ostream& out, const std::string& kind,
                                            Scenario scenario) {
  if (kind == "sensitivity") {
    std::vector<Sensitivity> all;
    auto refused = each_feasible(std::move(scenario), [&](const Case& made) {
      all.push_back(sensitivity_of(made, kFactors));
    });
    write_sensitivity_json(out, all, PIPESIM_VERSION);
    return refused;
  }
  Comparison comparison = compare(std::move(scenario));
  if (kind == "timeline" || kind == "memory") {
    write_plot_data(out, comparison.answers);
  } else {
    write_json(out, comparison.answers, {PIPESIM_VERSION});
  }
  return std::move(comparison.refused);
}

// Scalings of every schedule of a scenario.
std::vector<MemoryScaling> memory_scalings(const std::string& file, const CommandLine& line,
                                           const std::vector<Override>& overrides) {
  const Scenario scenario = read_scenario_file(file, line.where(file), overrides);
  // One size changes and the others stay, so that the world size follows.
  const auto at = [&](std::string_view key, int size) {
    std::vector<Override> all = overrides;
    for (const std::string& fixed :
         {std::string("parallel.world_size=null"),
          fmt::format("parallel.data_parallel_size={}", scenario.parallel.data),
          fmt::format("parallel.{}={}", key, size)}) {
      all.push_back(parse_override(fixed, line.where(file)));
    }
    return read_scenario_file(file, line.where(file), all);
  };
  std::vector<MemoryScaling> all;
  for (size_t i = 0; i < scenario.schedules.size(); ++i) {
    all.push_back(memory_scaling(scenario, i, at));
  }
  return all;
}

// The script's inputs.
struct Inputs {
  std::vector<std::string> arguments;  // "name=file"
  std::vector<RefusedSchedule> refused;
  std::vector<MemoryScaling> scalings;
};

// A scenario's model and sizes: what its panel is called.
std::string setting_of(const Scenario& scenario) {
  const std::string model = scenario.modelled ? scenario.modelled->model.name + ", " : "";
  return fmt::format("{}{} devices, {} microbatches", model, scenario.parallel.pipeline,
                     scenario.batch.microbatches);
}

// A scenario as the document that its figure is drawn from; it is called `name`, where
// that is asked for.
std::string drawn_from(const std::string& file, const std::vector<std::string>& overrides,
                       const PlotCommand& command, const CommandLine& line,
                       TemporaryFolder& workplace, Inputs& inputs, std::string* name) {
  const size_t number = inputs.arguments.size();
  if (command.kind == kMemoryScaling) {
    const auto scalings = memory_scalings(file, line, line.overrides(overrides));
    std::ranges::copy(scalings, std::back_inserter(inputs.scalings));
    return workplace.file(fmt::format("{}.csv", number),
                          [&](std::ostream& out) { out << memory_scaling_csv(scalings); });
  }
  Scenario scenario = read_scenario_file(file, line.where(file), line.overrides(overrides));
  if (command.kind == "curves" || command.kind == "heatmap") {
    throw InputError(line.where(file),
                     fmt::format("{} draws several points: expected results.csv or the folder "
                                 "of a sweep, or a JSON document",
                                 command.kind));
  }
  if (name != nullptr) *name = setting_of(scenario);
  return workplace.file(fmt::format("{}.json", number), [&](std::ostream& out) {
    std::ranges::move(write_document(out, command.kind, std::move(scenario)),
                      std::back_inserter(inputs.refused));
  });
}

// Scenarios become documents, folders of sweeps their results.
Inputs prepared(const PlotCommand& command, const CommandLine& line, TemporaryFolder& workplace) {
  std::vector<std::string> files, overrides;
  Inputs inputs;
  for (const std::string& input : command.inputs) {
    (input.find('=') != std::string::npos && !fs::exists(input) ? overrides : files)
        .push_back(input);
  }
  bool used = overrides.empty();
  for (const std::string& file : files) {
    const std::string extension = fs::path(file).extension().string();
    std::string name = fs::path(file).stem().string();
    std::string path = file;
    if (fs::is_directory(file)) {
      name = fs::path(file).lexically_normal().filename().string();
      const bool stopped = was_stopped(file);
      path = table_path(file, "results", stopped);
      if (stopped) {
        std::cerr << fmt::format(
            "pipesim: '{}' is of a sweep that was stopped: points are missing\n", file);
      }
    } else if (extension != ".json" && extension != ".csv") {
      path = drawn_from(file, overrides, command, line, workplace, inputs,
                        files.size() > 1 ? &name : nullptr);
      used = true;
    }
    const bool taken = std::ranges::any_of(inputs.arguments, [&name](const std::string& argument) {
      return argument.starts_with(name + '=');
    });
    if (taken) name += fmt::format(", {}", inputs.arguments.size() + 1);
    inputs.arguments.push_back(fmt::format("{}={}", name, path));
  }
  if (files.empty()) throw InputError(line.where(line.arguments().size()), "expected an input");
  if (!used) {
    throw InputError(line.where(overrides.front()), "changes a scenario, but no input is one");
  }
  return inputs;
}

// Without its inputs.
std::vector<std::string> script_of(const PlotCommand& command, const CommandLine& line,
                                   const std::string& figure) {
  // -B: the scripts may stand where nothing can be written.
  std::vector<std::string> script{"-B", data_folder("plots"), command.kind, "--out", figure};
  const auto check = [&](const ScriptOption& option) {
    if (option.taken_by(command.kind)) return;
    throw InputError(line.where(fmt::format("--{}", option.name)),
                     fmt::format("a figure of kind {} takes no --{}: {} do", command.kind,
                                 option.name, option.kinds));
  };
  const auto add = [&](const ScriptOption& option, const std::string& text) {
    check(option);
    script.push_back(fmt::format("--{}={}", option.name, text));
  };
  for (const ScriptOption& each : kScriptOptions) {
    if (const std::string& text = command.*each.text; !text.empty()) add(each, text);
  }
  for (const std::string& each : command.where) add(kWhere, each);
  if (command.band) {
    check(kBand);
    script.emplace_back("--band");
    if (const auto band = difference_band(catalogue_schedule_runs())) {
      const double base = band->half_width(0);
      script.push_back(fmt::format("--differences={},{}", base, band->half_width(1) - base));
    }
  }
  if (command.width > 0) script.push_back(fmt::format("--width={}", command.width));
  script.emplace_back("--");
  return script;
}

// The table instead of the figure.
bool wants_table(const PlotCommand& command) {
  return command.kind == kMemoryScaling && fs::path(command.output).extension() == ".csv";
}

void check_format(const PlotCommand& command, const CommandLine& line) {
  const std::string format = fs::path(command.output).extension().string();
  const bool figure =
      !format.empty() && std::ranges::find(kFormats, format.substr(1)) != kFormats.end();
  if (figure || wants_table(command)) return;
  throw InputError(
      line.of_option(command.output),
      fmt::format("expected a file that ends in .pdf, .svg or .png, not '{}'", command.output));
}

int plot(const PlotCommand& command, const CommandLine& line) {
  check_format(command, line);
  check_writable({command.output}, line);
  TemporaryFolder workplace;
  const std::string format = fs::path(command.output).extension().string().substr(1);
  const std::string figure = workplace.file("figure." + format);
  std::vector<std::string> script = script_of(command, line, figure);
  Inputs inputs = prepared(command, line, workplace);
  for (const MemoryScaling& scaling : inputs.scalings) std::cout << memory_scaling_table(scaling);
  std::cout.flush();
  if (wants_table(command)) {
    write_outputs({{command.output, line.of_option(command.output),
                    [&inputs](std::ostream& out) { out << memory_scaling_csv(inputs.scalings); }}});
    return kDone;
  }
  std::ranges::move(inputs.arguments, std::back_inserter(script));
  const int code = draw_figure(script);
  if (code != kDone) return code == kBadInput ? kBadInput : kFailed;  // the script has said why
  write_outputs({{command.output, line.of_option(command.output), [&figure](std::ostream& out) {
                    out << std::ifstream(figure, std::ios::binary).rdbuf();
                  }}});
  std::cerr << refusals(inputs.refused);
  return inputs.refused.empty() ? kDone : kFailed;
}

}  // namespace

Subcommand add_plot(Parser& program) {
  auto command = std::make_shared<PlotCommand>();
  Parser& parser = program.add_command(
      "plot", "Draw a figure (needs Python with matplotlib)",
      "  pipesim plot timeline scenarios/quickstart.yaml schedule=zb-h1 -o timeline.pdf\n"
      "  pipesim plot memory-scaling scenarios/llama3-70b-h100.yaml schedule=1f1b -o sizes.svg");
  parser.add_option("kind", command->kind, fmt::format("{}", fmt::join(kKinds, ", ")))
      .required()
      .one_of(kKinds);
  parser
      .add_option("inputs", command->inputs,
                  "Scenarios (YAML) with key=value, JSON documents of pipesim, results.csv or the "
                  "folder of a sweep")
      .required();
  add_output(parser, command->output,
             "The figure: .pdf, .svg or .png (of memory-scaling also .csv: the table)")
      .required();
  parser.add_option("--x", command->x, "Column on the x axis, or of a heat map's columns");
  parser.add_option("--y", command->y, "Column on the y axis, or of a heat map's rows");
  parser.add_option("--value", command->value, "Column that a heat map shows");
  parser.add_option("--panel", command->panel, "A panel for every value of this column");
  parser.add_option("--series", command->series,
                    "A line or a mark for every value of this column (default schedule)");
  parser.add_option("--where", command->where, "Only rows with COLUMN=VALUE; may be repeated")
      .one_each();
  parser.add_option("--relative-to", command->relative_to,
                    "Change of y, or of the heat map's value, or how the frontier moves, against "
                    "rows with COLUMN=VALUE");
  parser.add_option("--published", command->published,
                    "Published points to draw beside (CSV with the same columns)");
  parser.add_flag("--band", command->band,
                  "A thin line through every point: where measured runs near it would lie");
  parser.add_option("--title", command->title, "Above the figure");
  parser.add_option("--width", command->width, "Width of the figure, in inches").range(2.0, 40.0);
  return {&parser, [command](const CommandLine& line) { return plot(*command, line); }};
}

}  // namespace pipesim
