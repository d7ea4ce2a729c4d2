// pipesim validate: the simulator against published figures, cell by cell.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>

#include "app/commands.h"
#include "app/common_options.h"
#include "app/progress.h"
#include "sim/core/data_folder.h"
#include "sim/core/text.h"
#include "sim/read/band.h"
#include "validate/papers/layouts/layouts.h"
#include "validate/papers/memory/golden.h"
#include "validate/papers/memory/ran.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/paper_keys.h"
#include "validate/papers/runs/anchored.h"
#include "validate/papers/runs/bands.h"
#include "validate/papers/runs/runs.h"
#include "validate/papers/schedule_runs.h"
#include "validate/papers/validation_page.h"

namespace pipesim {
namespace {

struct ValidateOptions {
  std::string name;
  std::string data;
  std::string json;
  std::string output;
  std::string residuals;
  std::string schedule_runs;
  std::string scenarios;
  bool rows = false;
  bool anchored = false;
  bool list = false;
};

int list() {
  for (const Validation& validation : validations()) {
    std::cout << fmt::format("{}: {}\n", validation.name, validation.title);
  }
  std::cout << "layouts: The order of measured layouts of one model on one cluster\n"
               "memory: Peaks of memory that PyTorch counted in Megatron-LM's tests\n";
  return kDone;
}

// The validation's name that was asked for, or none for all.
std::string wanted_name(const ValidateOptions& options, const CommandLine& line) {
  std::vector<std::string> names;
  for (const Validation& validation : validations()) names.push_back(validation.name);
  names.insert(names.end(), {"layouts", "memory"});
  std::string wanted = validation_name(options.name);
  if (!wanted.empty() && std::ranges::find(names, wanted) == names.end()) {
    throw InputError(
        line.where(options.name),
        fmt::format("unknown validation '{}'{}", options.name, suggestion(options.name, names)));
  }
  if (wanted == "runs" && !options.schedule_runs.empty()) {
    throw InputError(line.where(options.schedule_runs), "is of papers' tables: leave out 'runs'");
  }
  if (wanted != "runs") {
    for (const std::string& path : {options.residuals, options.scenarios}) {
      if (!path.empty()) throw InputError(line.where(path), "is of measured runs: 'validate runs'");
    }
  }
  const bool drawn = wanted == "runs" || wanted == "layouts";
  if (!wanted.empty() && !drawn && !options.output.empty()) {
    throw InputError(line.of_option(options.output),
                     "the page is of all papers: leave the name away, or the page");
  }
  return wanted;
}

std::vector<Compared> compare(const std::string& folder, const std::string& wanted,
                              const Location& asked) {
  const bool any = std::ranges::any_of(
      validations(), [&folder](const Validation& each) { return has_paper(folder, each.name); });
  std::vector<Compared> all;
  ProgressLine bar;
  for (const Validation& validation : validations()) {
    if (!wanted.empty() && validation.name != wanted) continue;
    // A folder of one's own need not hold every paper, unless it is asked for.
    if (wanted.empty() && any && !has_paper(folder, validation.name)) continue;
    bar.show(validation.name);
    all.push_back({&validation, validation.compare(folder, asked)});
  }
  return all;
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<Output> outputs(const ValidateOptions& options, const std::string& folder,
                            const std::vector<Compared>& all,
                            const std::optional<ExpectedErrors>& expected,
                            const CommandLine& line) {
  std::vector<Output> files{
      {options.json, line.of_option(options.json),
       [&all](std::ostream& out) { out << validation_json(all); }},
      {options.schedule_runs, line.of_option(options.schedule_runs),
       [&all](std::ostream& out) { out << schedule_runs_csv(schedule_runs_of(all)); }}};
  if (options.output.empty()) return files;
  const Location where = line.of_option(options.output);
  const std::filesystem::path to = options.output;
  files.push_back({(to / "validation.md").string(), where, [&, folder](std::ostream& out) {
                     out << validation_page(all, expected, text_of(folder + "/where_from.md"));
                   }});
  files.push_back({(to / "validation.svg").string(), where,
                   [&all](std::ostream& out) { out << validation_drawing(all); }});
  return files;
}

// By the catalogue's runs, or where it has none by those that were compared.
std::string coverage_of_schedules(const std::vector<Compared>& all) {
  const auto runs = schedule_runs_of(all);
  const auto known = catalogue_schedule_runs();
  const std::string text = schedule_coverage_text(runs, known.empty() ? runs : known);
  return text.empty() ? "" : "\n" + text;
}

// Measured runs, by group.
int validate_runs(const ValidateOptions& options, const std::string& folder,
                  const CommandLine& line) {
  ProgressLine bar;
  bar.show("measured runs");
  TrainingRuns all = compare_measured_runs(folder, line.where(options.data));
  if (options.anchored) anchor_runs(all);
  add_bands(all, catalogue_residuals(options.anchored));
  bar.clear();
  std::vector<Output> files{{options.json, line.of_option(options.json),
                             [&all](std::ostream& out) { out << runs_json(all); }},
                            {options.residuals, line.of_option(options.residuals),
                             [&all](std::ostream& out) { out << residuals_csv(all); }}};
  const auto add = [&](const std::string& in, const std::string& name, std::string text) {
    if (in.empty()) return;
    make_folder(in, line.where(in));
    files.push_back({(std::filesystem::path(in) / name).string(), line.where(in),
                     [text = std::move(text)](std::ostream& out) { out << text; }});
  };
  add(options.output, "runs.svg", runs_drawing(all));
  for (auto& [name, text] : runs_scenarios(all)) add(options.scenarios, name, std::move(text));
  write_outputs(files);
  if (options.json == "-" || options.residuals == "-") return kDone;
  std::cout << (options.rows ? runs_rows(all) + "\n" : "") << runs_text(all) << '\n'
            << coverage_text(all) << std::flush;
  return kDone;
}

// Families of measured layouts: of one file, or of the project's.
int validate_layouts(const ValidateOptions& options, const CommandLine& line) {
  const Location asked = line.where(options.data);
  ProgressLine bar;
  bar.show("measured layouts");
  std::vector<MeasuredLayout> layouts;
  if (options.data.empty()) {
    const std::string folder = data_folder("papers");
    layouts = measured_layouts(paper_file(folder, "layouts"), asked);
    std::ranges::move(layouts_of_runs(folder, asked), std::back_inserter(layouts));
  } else {
    layouts = measured_layouts(std::filesystem::is_directory(options.data)
                                   ? paper_file(options.data, "layouts")
                                   : options.data,
                               asked);
  }
  const auto families = families_of(std::move(layouts));
  bar.clear();
  std::vector<Output> files{{options.json, line.of_option(options.json),
                             [&](std::ostream& out) { out << layouts_json(families); }}};
  if (!options.output.empty()) {
    make_folder(options.output, line.where(options.output));
    files.push_back({(std::filesystem::path(options.output) / "layouts.svg").string(),
                     line.where(options.output),
                     [&](std::ostream& out) { out << layouts_drawing(families); }});
  }
  write_outputs(files);
  if (options.json == "-") return kDone;
  std::cout << (options.rows ? layouts_rows(families) + "\n" : "") << layouts_text(families)
            << std::flush;
  return kDone;
}

// A file's rules: NAME_rules.yaml or rules.yaml beside it, or the project's.
std::string rules_beside(const std::filesystem::path& file) {
  for (const std::string& name :
       {file.stem().string() + "_rules.yaml", std::string("rules.yaml")}) {
    const std::filesystem::path beside = file.parent_path() / name;
    if (std::filesystem::exists(beside)) return beside.string();
  }
  return data_folder("papers") + "/runs/rules.yaml";
}

// Peaks that Megatron-LM's tests record, and what runs that ran printed: of one file with either,
// or of the project's.
int validate_memory(const ValidateOptions& options, const CommandLine& line) {
  const Location asked = line.where(options.data);
  const std::string folder = data_folder("papers");
  const bool own = options.data.empty();
  const std::string file = own ? paper_file(folder, "memory") : options.data;
  const bool golden = own || has_rows(file, asked);
  ProgressLine bar;
  bar.show("measured peaks of memory");
  std::vector<GoldenPeak> peaks;
  std::vector<RunMemory> runs;
  if (golden) peaks = golden_peaks(file, asked);
  if (own || !golden) {
    const std::string of = own ? paper_file(folder, "runs") : file;
    runs = memory_of_runs(of, rules_beside(of), asked);
  }
  bar.clear();
  write_outputs({{options.json, line.of_option(options.json), [&](std::ostream& out) {
                    out << (golden ? golden_json(peaks) : run_memory_json(runs));
                  }}});
  if (options.json == "-") return kDone;
  std::string text;
  if (golden) text += (options.rows ? golden_rows(peaks) + "\n" : "") + golden_text(peaks);
  if (own) text += "\n";
  if (!runs.empty()) {
    text += (options.rows ? run_memory_rows(runs) + "\n" : "") + run_memory_text(runs);
  }
  std::cout << text << std::flush;
  return kDone;
}

// Nothing of the papers' tables.
std::optional<int> validate_measured(const std::string& wanted, const ValidateOptions& options,
                                     const CommandLine& line) {
  if (wanted == "layouts") return validate_layouts(options, line);
  if (wanted == "memory") return validate_memory(options, line);
  if (wanted != "runs") return std::nullopt;
  return validate_runs(options, options.data.empty() ? data_folder("papers") : options.data, line);
}

// A line for each table that is further off than recorded.
std::string worse_than(const ExpectedErrors& expected, const Compared& each) {
  std::string lines;
  for (const std::string& sentence :
       unexpected(each.validation->name, table_errors(each.cells), expected)) {
    lines += "MISSED " + sentence + "\n";
  }
  return lines;
}

void add_goals(const Compared& each, const std::optional<ExpectedErrors>& expected,
               GoalsMet& goals) {
  for (const TableError& error : table_errors(each.cells)) {
    const auto* recorded = recorded_of(expected, each.validation->name, error.table);
    if (recorded != nullptr) goals.add(error, *recorded);
  }
}

int validate(const ValidateOptions& options, const CommandLine& line) {
  if (options.list) return list();
  const std::string wanted = wanted_name(options, line);
  if (const auto code = validate_measured(wanted, options, line)) return *code;
  const std::string folder = options.data.empty() ? data_folder("papers") : options.data;
  const auto expected = read_expected(folder);
  const auto all = compare(folder, wanted, line.where(options.data));
  std::string text;
  GoalsMet goals;
  bool failed = false;
  for (const Compared& each : all) {
    text += validation_table(*each.validation, each.cells, expected);
    add_goals(each, expected, goals);
    const auto rest = not_compared(folder, each.validation->name);
    if (!rest.empty()) text += fmt::format("not compared: {}\n", fmt::join(rest, ", "));
    failed = failed || missed(each.cells);
    const std::string worse = expected ? worse_than(*expected, each) : std::string();
    failed = failed || !worse.empty();
    text += worse;
  }
  if (goals.tables > 0) text += goals.text();
  text += coverage_of_schedules(all);
  if (!options.output.empty()) make_folder(options.output, line.of_option(options.output));
  write_outputs(outputs(options, folder, all, expected, line));
  if (options.json != "-" && options.schedule_runs != "-") std::cout << text << std::flush;
  return failed ? kFailed : kDone;
}

}  // namespace

Subcommand add_validate(Parser& program) {
  auto options = std::make_shared<ValidateOptions>();
  Parser& parser = program.add_command("validate", "Compare with published figures, cell by cell",
                                       "  pipesim validate korthikanti\n"
                                       "  pipesim validate runs --rows");
  parser.add_option("name", options->name,
                    "Which paper (when not given all but search, which takes a minute)");
  parser.add_option("--data", options->data,
                    "Folder with tables of the same format; of 'layouts' and 'memory': a file");
  add_json(parser, options->json, "the cells");
  add_output(parser, options->output, "Folder for validation.md and validation.svg, of all papers");
  parser.add_option("--residuals", options->residuals,
                    "Of 'runs': write what is simulated beside what was measured as CSV");
  parser.add_option("--schedule-runs", options->schedule_runs,
                    "Write the papers' measured speeds of schedules beside the simulated as CSV");
  parser.add_option("--scenarios", options->scenarios,
                    "Of 'runs': folder for the scenario of every run");
  parser.add_flag(
      "--anchored", options->anchored,
      "Of 'runs': anchor each on the smallest of its model, GPU, precision and software");
  parser.add_flag("--rows", options->rows, "Of 'runs', 'layouts' and 'memory': print every one");
  parser.add_threads();
  parser.add_flag("--list", options->list, "List the papers");
  return {&parser, [options](const CommandLine& line) { return validate(*options, line); }};
}

}  // namespace pipesim
