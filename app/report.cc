// pipesim report: results as one self-contained HTML page.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <iterator>
#include <memory>

#include "app/commands.h"
#include "app/common_options.h"
#include "app/comparison.h"
#include "app/plan_page.h"
#include "app/refusals.h"
#include "sim/core/data_folder.h"
#include "sim/read/scenario.h"
#include "sim/report/html/html.h"
#include "sim/sweep/results.h"

namespace pipesim {
namespace {

namespace fs = std::filesystem;

struct ReportOptions {
  std::vector<std::string> arguments;
  std::string output;
};

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// `path.to.key=value`, unless a file is called so.
bool is_override(const std::string& argument) {
  std::error_code ignored;
  return argument.find('=') != std::string::npos && !fs::exists(argument, ignored);
}

std::vector<RefusedSchedule> add_scenario(HtmlReport& report, const std::string& path,
                                          const std::vector<std::string>& overrides,
                                          const CommandLine& line) {
  const Location where = line.where(path);
  Comparison comparison = compare(read_scenario_file(path, where, line.overrides(overrides)));
  report.add(read_report_input(path, where), overrides, comparison.answers, comparison.refused);
  return std::move(comparison.refused);
}

SweepFolder read_sweep(const std::string& folder, const Location& where) {
  const auto file = [&](const std::string& path) {
    if (!fs::exists(path)) {
      throw InputError(where, fmt::format("'{}' is no folder of a sweep: it has no {}", folder,
                                          fs::path(path).filename().string()));
    }
    return read_report_input(path, where);
  };
  const bool stopped = was_stopped(folder);
  return {folder, file(table_path(folder, "results", stopped)),
          file(table_path(folder, "failed", stopped)), file(folder + "/sweep.yaml"), stopped};
}

// In the current folder: "scenarios/mine.yaml" becomes "mine.html", as does a folder "out/mine".
std::string page_beside(const std::string& input) {
  const fs::path name = fs::absolute(input).lexically_normal();
  const bool ends_with_slash = !name.has_filename();
  const fs::path last = (ends_with_slash ? name.parent_path() : name).filename();
  return is_folder(input) ? last.string() + ".html" : last.stem().string() + ".html";
}

// Refused schedules are added to `refused`.
HtmlReport collect(const std::vector<std::string>& inputs,
                   const std::vector<std::string>& overrides, const CommandLine& line,
                   std::vector<RefusedSchedule>& refused) {
  HtmlReport report(PIPESIM_VERSION);
  for (const std::string& path : inputs) {
    const bool document = fs::path(path).extension() == ".json";
    if (!overrides.empty() && (document || is_folder(path))) {
      throw InputError(line.where(overrides.front()),
                       fmt::format("'{}' holds results: only a scenario can be changed", path));
    }
    if (is_folder(path)) {
      if (inputs.size() > 1) throw InputError(line.where(path), "a sweep is reported alone");
      report.add_sweep(read_sweep(path, line.where(path)));
    } else if (document) {
      report.add_document(read_report_input(path, line.where(path)));
      if (report.has_plan()) {
        if (inputs.size() > 1) throw InputError(line.where(path), "a plan is reported alone");
        add_planned_rows(report);
      }
    } else {
      std::ranges::move(add_scenario(report, path, overrides, line), std::back_inserter(refused));
    }
  }
  return report;
}

int report(const ReportOptions& options, const CommandLine& line) {
  std::vector<std::string> inputs, overrides;
  for (const std::string& argument : options.arguments) {
    (is_override(argument) ? overrides : inputs).push_back(argument);
  }
  if (inputs.empty()) {
    throw InputError(
        line.where(line.arguments().size()),
        "expected a scenario, a document of 'run --json' or 'plan --json', or a sweep's folder");
  }
  const std::string output = options.output.empty() ? page_beside(inputs.front()) : options.output;
  check_writable({output}, line);
  std::vector<RefusedSchedule> refused;
  const std::string page =
      collect(inputs, overrides, line, refused).page(data_folder("report"), line.where(0));
  write_outputs(
      {{output, line.of_option(options.output), [&page](std::ostream& out) { out << page; }}});
  if (options.output.empty()) std::cout << "written: " << output << '\n';
  std::cerr << refusals(refused);
  return refused.empty() ? kDone : kFailed;
}

}  // namespace

Subcommand add_report(Parser& program) {
  auto options = std::make_shared<ReportOptions>();
  Parser& parser =
      program.add_command("report", "Write results as one HTML page that needs nothing else",
                          "  pipesim report scenarios/quickstart.yaml\n"
                          "  pipesim report out/figure1 -o sweep.html");
  parser
      .add_option(
          "inputs", options->arguments,
          "Scenarios (YAML), documents of 'run --json', one of 'plan --json', or one folder of a "
          "sweep; path.to.key=value changes the scenarios")
      .required();
  add_output(parser, options->output,
             "File to write ('-': standard output; default: INPUT.html in the current folder)");
  return {&parser, [options](const CommandLine& line) { return report(*options, line); }};
}

}  // namespace pipesim
