// pipesim reproduce: the figures and tables of the papers, each drawn with our points beside the
// published ones, as a table of both, and with a sentence that says how far they are apart.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <iostream>
#include <memory>

#include "app/commands.h"
#include "app/common_options.h"
#include "app/comparison.h"
#include "app/figure_script.h"
#include "app/progress.h"
#include "app/temporary.h"
#include "sim/core/data_folder.h"
#include "sim/core/text.h"
#include "sim/core/thread_team.h"
#include "sim/read/scenario.h"
#include "sim/report/json/plot_data.h"
#include "validate/reproduce/reproduction.h"

namespace pipesim {
namespace {

struct ReproduceCommand {
  std::string name;
  std::string output;
  std::string format = "svg";
  bool all = false;
};

int list_figures(const std::vector<reproduce::Figure>& figures) {
  size_t width = 0;
  for (const auto& figure : figures) width = std::max(width, figure.name.size());
  for (const auto& figure : figures) {
    std::cout << fmt::format("{:<{}}  {}{}\n", figure.name, width, figure.title,
                             figure.has_published() ? "" : " (ours alone)");
  }
  return kDone;
}

// The chosen one, or all.
std::vector<reproduce::Figure> chosen(const ReproduceCommand& command, const CommandLine& line,
                                      std::vector<reproduce::Figure> figures) {
  if (command.all) return figures;
  const auto found = std::ranges::find(figures, command.name, &reproduce::Figure::name);
  if (found != figures.end()) return {*found};
  std::vector<std::string> names;
  for (const auto& figure : figures) names.push_back(figure.name);
  // "figure7" is of every paper that has one.
  std::vector<std::string> near;
  for (const std::string& name : names) {
    if (name.ends_with('/' + command.name)) near.push_back(fmt::format("'{}'", name));
  }
  if (const std::string nearest = nearest_name(command.name, names);
      near.empty() && !nearest.empty()) {
    near.push_back(fmt::format("'{}'", nearest));
  }
  throw InputError(
      line.where(command.name),
      fmt::format("unknown figure '{}'{}", command.name,
                  near.empty() ? "; 'pipesim reproduce' lists them"
                               : fmt::format("; did you mean {}?", fmt::join(near, " or "))));
}

// "controllable-memory/figure7" as the stem of files.
std::string stem_of(const reproduce::Figure& figure) {
  std::string stem = figure.name;
  std::ranges::replace(stem, '/', '-');
  return stem;
}

// The passes of every scenario of a timeline, as documents.
std::vector<std::string> documents(const reproduce::Figure& figure,
                                   const reproduce::Sources& sources, TemporaryFolder& workplace) {
  std::vector<std::string> inputs;
  for (const reproduce::Part& part : figure.parts) {
    Comparison comparison = compare(
        read_scenario_file(sources.scenario_path(part), part.where, reproduce::overrides_of(part)));
    for (Answer& answer : comparison.answers) {
      answer.made.label =
          part.series.fill({{"schedule", part.paper_name(answer.made.choice.name)}});
    }
    const std::string& path =
        workplace.file(fmt::format("{}-{}.json", stem_of(figure), inputs.size()),
                       [&](std::ostream& out) { write_plot_data(out, comparison.answers); });
    inputs.push_back(fmt::format("{}={}", inputs.size(), path));
  }
  return inputs;
}

std::string written(TemporaryFolder& workplace, const std::string& name, const std::string& text) {
  return workplace.file(name, [&](std::ostream& out) { out << text; });
}

std::vector<std::string> figure_script_of(const reproduce::Figure& figure,
                                          const reproduce::Points& points,
                                          const reproduce::Sources& sources,
                                          const std::string& drawing, TemporaryFolder& workplace) {
  std::vector<std::string> script{"-B",    data_folder("plots"),     figure.draw, "--out",
                                  drawing, "--title=" + figure.title};
  const std::string stem = stem_of(figure);
  if (figure.draw == "timeline") {
    script.emplace_back("--");
    std::ranges::move(documents(figure, sources, workplace), std::back_inserter(script));
    return script;
  }
  script.emplace_back("--panel=panel");
  script.push_back("--x=" + figure.x);
  script.push_back(fmt::format("--y={}", fmt::join(figure.y, ",")));
  if (figure.draw == "heatmap") script.push_back("--value=" + figure.value);
  if (figure.draw != "heatmap") script.emplace_back("--series=series");
  if (!figure.relative_to.empty()) script.push_back("--relative-to=series=" + figure.relative_to);
  const std::string published = reproduce::published_csv(figure, points);
  if (!published.empty()) {
    script.push_back("--published=" + written(workplace, stem + "-published.csv", published));
  }
  script.emplace_back("--");
  script.push_back("pipesim=" +
                   written(workplace, stem + ".csv", reproduce::ours_csv(figure, points)));
  return script;
}

int reproduce_figures(const ReproduceCommand& command, const CommandLine& line) {
  auto figures = reproduce::read_figures(data_folder("reproduce"));
  if (command.name.empty() && !command.all) return list_figures(figures);
  if (!command.name.empty() && command.all) {
    throw InputError(line.where(command.name), "--all and a name: choose one");
  }
  figures = chosen(command, line, std::move(figures));
  if (command.output.empty()) {
    throw InputError(line.where(line.arguments().size()), "expected -o with a folder");
  }
  const Location where = line.of_option(command.output);
  make_folder(command.output, where);
  reproduce::Sources sources(data_folder("papers"), data_folder("scenarios"), available_threads());
  ProgressLine bar;
  std::string shown;
  sources.progress = [&](const std::string& what) { bar.show(shown + what); };
  int code = kDone;
  for (size_t i = 0; i < figures.size(); ++i) {
    const reproduce::Figure& figure = figures[i];
    shown = fmt::format("{}/{} {}: ", i + 1, figures.size(), figure.name);
    bar.show(shown);
    const reproduce::Points points = sources.points(figure);
    const std::string path = (std::filesystem::path(command.output) / stem_of(figure)).string();
    bar.show(shown + "drawing");
    TemporaryFolder workplace;
    const std::string drawing = workplace.file("figure." + command.format);
    const int drawn = draw_figure(figure_script_of(figure, points, sources, drawing, workplace));
    bar.clear();
    if (drawn != kDone) {  // the script has said why
      code = kFailed;
      continue;
    }
    write_outputs({{path + ".csv", where,
                    [&points](std::ostream& out) { out << reproduce::beside_csv(points); }},
                   {path + '.' + command.format, where, [&drawing](std::ostream& out) {
                      out << std::ifstream(drawing, std::ios::binary).rdbuf();
                    }}});
    std::cout << reproduce::sentence(figure, points) << '\n' << std::flush;
  }
  return code;
}

}  // namespace

Subcommand add_reproduce(Parser& program) {
  auto command = std::make_shared<ReproduceCommand>();
  Parser& parser = program.add_command(
      "reproduce", "Draw the papers' figures beside their published points",
      "  pipesim reproduce controllable-memory/figure7 -o figures\n"
      "  pipesim reproduce vocabulary-parallelism/table5 -o figures --format pdf");
  parser.add_option("name", command->name, "Which figure (when not given all are listed)");
  parser.add_flag("--all", command->all, "Every figure");
  add_output(parser, command->output,
             "Folder for the figure and its CSV; made when it is not there");
  parser.add_option("--format", command->format, "Format of the figure: pdf, svg or png")
      .one_of({"pdf", "svg", "png"})
      .with_default();
  parser.add_threads();
  return {&parser,
          [command](const CommandLine& line) { return reproduce_figures(*command, line); }};
}

}  // namespace pipesim
