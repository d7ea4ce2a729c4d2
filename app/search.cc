// pipesim search: the best schedule under a limit on activation memory, or the frontier of both.
#include "sim/search/search.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <variant>

#include "app/commands.h"
#include "app/common_options.h"
#include "app/memory_limit.h"
#include "app/orders.h"
#include "app/progress.h"
#include "app/ranges.h"
#include "sim/case/program.h"
#include "sim/case/simulate.h"
#include "sim/core/csv.h"
#include "sim/core/error.h"
#include "sim/core/text.h"
#include "sim/interop/torch/csv_writer.h"
#include "sim/interop/torch/rules.h"
#include "sim/metrics/report.h"
#include "sim/planning/memory_ladder.h"
#include "sim/planning/room.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/microbatch_order.h"
#include "sim/prepare/prepare.h"
#include "sim/read/band.h"
#include "sim/read/scenario.h"
#include "sim/read/schedules.h"
#include "sim/read/sweep_text.h"
#include "sim/report/text/difference.h"
#include "sim/search/considered.h"
#include "sim/search/found_metrics.h"

namespace pipesim {
namespace {

constexpr int kPoints = 20;  // of a frontier

struct SearchCommand {
  std::string file;
  std::vector<std::string> overrides;
  std::string limit;
  bool pareto = false;
  std::optional<int> points;
  std::string schedules;
  std::string csv, output;
  SearchOptions search;
  std::optional<double> effort;
  bool no_refinement = false;
};

std::string option_text(const OptionValue& value) {
  return std::visit([](const auto& of) { return fmt::format("{}", of); }, value);
}

// A description is one family for each choice of its parameters, a schedule with several placements
// one for each of them.
std::string name_of(const Found& found) {
  std::string parameters;
  const bool open =
      !found.choice.program && (found.choice.described || schedule_of(found.choice).placement);
  if (open) {
    for (const auto& [name, value] : found.choice.options) {
      parameters +=
          fmt::format("{}{} {}", parameters.empty() ? "" : ", ", name, option_text(value));
    }
  }
  const char* how = !found.refined                   ? ""
                    : found.program->pairs().empty() ? " (refined)"
                                                     : " (with pairs)";
  return label_of(found.choice, parameters) + how;
}

// Bytes, or what they are of what p microbatches keep where no bytes are known.
std::string shown(Bytes bytes, Bytes unit, bool known) {
  return known ? human(bytes) : fmt::format("{:.4f}", bytes / unit);
}

struct Columns {
  explicit Columns(const std::vector<SearchResult>& results) {
    for (const SearchResult& result : results) {
      if (!result.best) continue;
      width = std::max(width, static_cast<int>(name_of(*result.best).size()));
      unequal = unequal || unequal_work(result.best->bubble_rate, result.best->bubble_rate_busiest);
    }
  }

  int width = 24;        // widest of the names, so that columns stand under each other
  bool unequal = false;  // somewhere the device with the largest span is not the busiest
};

std::string header(const Columns& columns) {
  return fmt::format(
      "limit/pM_B       limit        peak  {:{}}  chunks        cost    makespan  {} bubble   "
      "registered       bound     gap\n",
      "schedule", columns.width, columns.unequal ? "bubble of busiest  " : "");
}

std::string row(const SearchResult& result, Bytes unit, bool known, const Columns& columns) {
  std::string text =
      fmt::format("{:10.4f}  {:>10}", result.limit / unit, known ? human(result.limit) : "-");
  if (!result.best) return text + "  nothing fits\n";
  const Found& best = *result.best;
  const std::string registered = result.registered ? human(result.registered->time) : "-";
  return text +
         fmt::format(
             "  {:>10}  {:{}}  {:6}  {:>10}  {:>10}  {}{:6.2f}%  {:>11}  {:>10}  {:5.2f}%\n",
             shown(best.peak, unit, known), name_of(best), columns.width, best.problem.shape.chunks,
             human(best.cost), human(best.makespan),
             columns.unequal ? fmt::format("{:16.2f}%  ", 100 * best.bubble_rate_busiest) : "",
             100 * best.bubble_rate, registered, human(result.bound), 100 * result.gap());
}

size_t activations_that_leave(const Program& program) {
  size_t copies = 0;
  if (program.copies() == nullptr) return copies;
  for (const LinkCopies& link : program.copies()->links) copies += link.out.size();
  return copies;
}

std::string on_host(const HostMemory& host) {
  return fmt::format("{} on the host of a node, which has {}", human(*host.node),
                     human(*host.capacity));
}

// The program that the host's memory rules out.
std::string without_room(const SearchResult& result) {
  if (!result.without_room) return "";
  const Found& found = *result.without_room;
  return fmt::format("no room on the host: {} would take {}, but {}", name_of(found),
                     human(found.time), on_host(*found.host));
}

// The chosen offload and recomputation, and the alternative.
std::string reason_of(const SearchResult& result, Bytes unit, bool known) {
  const Found& best = *result.best;
  std::string text = "chosen: " + name_of(best);
  if (keeps_all(best)) {
    return text + fmt::format(
                      ", which keeps every activation: none that offloads or recomputes{} takes "
                      "less\n",
                      result.without_room ? " and has room" : "");
  }
  if (const size_t copies = activations_that_leave(*best.program); copies > 0) {
    const size_t all = static_cast<size_t>(best.program->placement().virtual_stages()) *
                       static_cast<size_t>(best.program->shape().units());
    text += fmt::format(", {} of {} activations wait on the host", copies, all);
    if (const auto planned = best.problem.activation_limit) {
      text += fmt::format(", planned for a memory limit of {}", shown(*planned, unit, known));
    }
    if (best.host) text += ", " + on_host(*best.host);
  }
  if (!result.kept) {
    return text + "; nothing that keeps every activation fits the limit\n";
  }
  return text + fmt::format(
                    "; {:.2f}% less time than {}, the best that keeps every activation "
                    "({}, peak {})\n",
                    100 * (1 - best.time / result.kept->time), name_of(*result.kept),
                    human(result.kept->time), human(result.kept->peak));
}

void write_csv(std::ostream& out, const std::vector<SearchResult>& results, Bytes unit,
               const SearchOptions& options) {
  const bool relieved = options.offload || options.recompute;
  const bool ordered = std::ranges::any_of(results, [](const SearchResult& result) {
    return result.best && !result.best->microbatch_order.empty();
  });
  out << "limit_bytes,limit_over_p_microbatches,schedule,refined,chunks";
  for (const FoundMetric& metric : kFoundMetrics) out << ',' << metric.name;
  out << ",registered_schedule,registered_cost_seconds,bound_seconds"
      << (relieved ? ",offload_chunks,recompute_chunks,activations_on_host" : "")
      << (ordered ? ",microbatch_order\n" : "\n");
  for (const SearchResult& result : results) {
    if (!result.best) continue;
    const Found& best = *result.best;
    out << fmt::format("{},{},{},{},{}", result.limit.value(), result.limit / unit,
                       csv_field(best.choice.name), best.refined ? 1 : 0,
                       best.problem.shape.chunks);
    for (const FoundMetric& metric : kFoundMetrics) out << fmt::format(",{}", metric.of(best));
    if (result.registered) {
      out << fmt::format(",{},{}", csv_field(result.registered->choice.name),
                         result.registered->cost.value());
    } else {
      out << ",,";
    }
    out << fmt::format(",{}", result.bound.value());
    if (relieved) {
      out << fmt::format(",{},{},{}", offload_chunks_of(best.choice),
                         recompute_chunks_of(best.choice), activations_that_leave(*best.program));
    }
    if (ordered) out << fmt::format(",{}", fmt::join(best.microbatch_order, " "));
    out << '\n';
  }
}

std::string offload_text(const Offload& offload, bool by_itself) {
  std::string text = fmt::format("{{bandwidth: {}, prefetch: {}",
                                 offload.bandwidth == CopyBandwidth::kAlone ? "alone" : "duplex",
                                 offload.prefetch);
  if (offload.devices_per_link) {
    text += fmt::format(", devices_per_link: {}", *offload.devices_per_link);
  }
  const std::string scope = by_itself ? "" : scope_text(offload);
  return fmt::format("{}{}{}}}", text, scope.empty() ? "" : ", ", scope);
}

// In GiB: rounded up to hundredths, or to the last bit.
enum class LimitText { kRounded, kExact };

std::string limit_text(Bytes limit, LimitText text) {
  const double gib = limit / kGiB;
  return fmt::format("{} GiB", text == LimitText::kExact ? gib : std::ceil(100 * gib) / 100);
}

// Beside the schedule's name or CSV; what names layers stays the scenario's.
std::string recompute_text(const ScheduleChoice& choice) {
  const RecomputeGranularity granularity = granularity_of(choice);
  const bool none = granularity == RecomputeGranularity::kNone;
  if (none || choice.recompute->layers != RecomputedLayers{}) return "";
  const int chunks = recompute_chunks_of(choice);
  return fmt::format(", recompute: {{granularity: {}{}}}", to_text(granularity),
                     chunks > 0 ? fmt::format(", chunks: {}", chunks) : "");
}

// The entry `schedule` that plans what was found, or takes its order from `csv`.
std::string schedule_text(const Found& found, const std::string& csv, bool in_memory,
                          LimitText written) {
  const ScheduleChoice& choice = found.choice;
  const Offload offload = choice.offload.value_or(Offload{});
  if (!csv.empty()) {
    const bool copies = found.program->copies() != nullptr;
    return fmt::format("{{csv: '{}'{}{}}}", csv, recompute_text(choice),
                       copies ? ", offload: " + offload_text(offload, false) : "");
  }
  const Schedule& schedule = schedule_of(choice);
  std::string text =
      choice.described ? fmt::format("{{file: '{}'", schedule.file) : "{name: " + choice.name;
  if (schedule.max_chunks > 1) {
    text += fmt::format(", virtual_pipeline_model_parallel_size: {}", chunks_of(choice));
  }
  for (const auto& [name, value] : choice.options) {
    if (name != "offload_plan") text += fmt::format(", {}: {}", name, option_text(value));
  }
  if (schedule.memory_limit && found.problem.activation_limit) {
    const Bytes limit = *found.problem.activation_limit;
    text += in_memory ? fmt::format(", memory_limit: {}", limit_text(limit, written))
                      : fmt::format(", memory_limit: {}", limit / memory_of_1f1b(found.problem));
  }
  text += recompute_text(choice);
  if (choice.offload) text += ", offload: " + offload_text(offload, schedule.copies());
  return text + "}";
}

bool plans_the_same(const YamlSource& source, const Found& found) {
  Scenario scenario = read_scenario(source);
  scenario.engine = EngineKind::kReplay;
  scenario.perturb = {};
  const Report report =
      simulate(prepare_first(scenario), nullptr, nullptr, Detail::kNumbers).report;
  return report.makespan_from_rest == found.makespan && report.peak_activation == found.peak;
}

// The scenario with what was found in place of its schedules. Without `csv` it is read back, and
// InfeasibleError where it plans another program.
std::string scenario_text(const SearchCommand& command, const CommandLine& line, const Found& found,
                          const std::string& csv, bool in_memory,
                          LimitText written = LimitText::kRounded) {
  std::vector<Override> overrides = line.overrides(command.overrides);
  const Location where = line.of_option(command.output);
  overrides.push_back({"schedule", schedule_text(found, csv, in_memory, written), where});
  overrides.push_back({"offload", "false", where});
  const auto& recompute = found.choice.recompute;
  const bool names_layers = recompute && recompute->layers != RecomputedLayers{};
  if (!names_layers) overrides.push_back({"recompute", "none", where});
  if (!found.microbatch_order.empty()) {
    overrides.push_back(parse_override(order_text(found.microbatch_order), where));
  }
  const YamlSource source =
      YamlSource::from_file(command.file, line.where(command.file), std::move(overrides));
  if (!csv.empty() || plans_the_same(source, found)) return text_of(source);
  if (written == LimitText::kRounded) {
    return scenario_text(command, line, found, csv, in_memory, LimitText::kExact);
  }
  throw InfeasibleError("no scenario says what was found, " + label_of(found.choice) +
                        ": its split of layers follows the limit");
}

bool names_scenario(const std::string& file) {
  return file.ends_with(".yaml") || file.ends_with(".yml");
}

// InfeasibleError where the order needs its schedule's calls, which a CSV has not.
void check_csv(const Search& search, const Found& best) {
  const Seconds seconds = search.time_as_csv(best);
  if (seconds <= kRounding * best.time) return;
  const bool waits = std::isinf(seconds.value());
  throw InfeasibleError(fmt::format(
      "no CSV is written: it has no calls of the schedule's own, and without them {}; name a "
      "scenario, such as found.yaml",
      waits ? "the devices wait for each other" : "it takes " + human(seconds)));
}

// A CSV, or where activations wait on the host, or the name asks for one, a scenario; of an order
// that no key names, a scenario and beside it the CSV that it runs.
std::vector<Output> program_outputs(const SearchCommand& command, const CommandLine& line,
                                    const Search& search, const Found& best, bool in_memory) {
  const Location where = line.of_option(command.output);
  // Copies are the scenario's to plan.
  const auto write_order = [&best](std::ostream& out) {
    const Program& order = *best.program;
    write_csv(out,
              Program(order.shape(), order.placement(), order.lists(),
                      {order.pairs().begin(), order.pairs().end()}, order.wrap_around()),
              best.choice.name);
  };
  const bool copies = best.program->copies() != nullptr;
  if (command.output.empty()) return {};
  if (!copies && !names_scenario(command.output)) {
    check_csv(search, best);
    return {{command.output, where, write_order}};
  }
  const bool is_named = !best.refined && !best.choice.program;
  const bool needs_calls = is_named && search.time_as_csv(best) > kRounding * best.time;
  std::string csv;
  std::vector<Output> files;
  if (!is_named || !(copies || needs_calls)) {
    const auto beside = std::filesystem::path(command.output).replace_extension(".csv");
    if (command.output == "-" || beside == command.output) {
      throw InputError(where,
                       "a scenario and the CSV of its order, beside it, are written: name the "
                       "scenario, such as found.yaml");
    }
    csv = beside.filename().string();
    files.push_back({beside.string(), where, write_order});
  }
  const std::string text = scenario_text(command, line, best, csv, in_memory);
  files.push_back({command.output, where, [text](std::ostream& out) { out << text; }});
  return files;
}

std::vector<std::string> schedules_named(const SearchCommand& command, const CommandLine& line,
                                         const Scenario& scenario) {
  std::vector<std::string> names;
  std::vector<std::string> valid = schedule_names();
  for (const ScheduleChoice& choice : scenario.schedules) {
    if (choice.described || choice.program) valid.push_back(choice.name);
  }
  std::istringstream list(command.schedules);
  for (std::string name; std::getline(list, name, ',');) {
    name.erase(0, name.find_first_not_of(' '));
    name = meant_name(name, valid);
    if (std::ranges::find(valid, name) == valid.end()) {
      throw InputError(line.where(command.schedules),
                       fmt::format("unknown schedule '{}'{}", name, suggestion(name, valid)));
    }
    names.push_back(std::move(name));
  }
  return names;
}

// Which gains measured schedules bear out; nothing where costs are given.
std::string told_apart(const Scenario& scenario, const std::vector<SearchResult>& results) {
  const auto band = read_difference_band(scenario);
  if (!band) return "";
  std::string text =
      fmt::format("{}: schedules that differ by less than {:.1f}% cannot be told apart",
                  pairs_text(*band), 100 * band->least_told_apart());
  const SearchResult& first = results.front();
  if (results.size() == 1 && first.best && first.best->refined && first.registered) {
    const double ratio = first.registered->time / first.best->time;
    text += fmt::format("; {}, the best that is not refined, takes {:.1f}% longer",
                        name_of(*first.registered), 100 * (ratio - 1));
  }
  return text + '\n';
}

void print_for_people(const Search& search, const std::vector<SearchResult>& results,
                      const Scenario& scenario, const SearchOptions& options) {
  const bool in_memory = knows_memory(scenario);
  const Columns columns(results);
  std::cout << header(columns);
  for (const SearchResult& result : results) {
    std::cout << row(result, search.unit(), in_memory, columns);
  }
  if (results.size() == 1 && results.front().best) {
    std::cout << order_line(results.front().best->microbatch_order);
  }
  if (results.size() == 1 && (options.offload || options.recompute)) {
    std::cout << reason_of(results.front(), search.unit(), in_memory);
    if (const std::string crowded = without_room(results.front()); !crowded.empty()) {
      std::cout << crowded << '\n';
    }
  }
  if (results.size() == 1) {
    const auto& reason = results.front().reason;
    std::cout << fmt::format("bound {}{}\n", human(results.front().bound),
                             reason ? ", held by " + to_text(*reason) : "");
  }
  std::cout << told_apart(scenario, results);
  for (const std::string& reason : search.left_out()) std::cout << "left out: " << reason << '\n';
  std::cout.flush();
}

// Who runs the CSV, where PyTorch's runtime does not.
std::string csv_line(const SearchCommand& command, const SearchResult& result) {
  if (command.output.empty() || names_scenario(command.output)) return "";
  const Program& order = *result.best->program;
  const auto objection = order.copies() == nullptr ? torch_objection(order) : std::nullopt;
  return objection ? fmt::format("the CSV is for pipesim alone: {}\n", *objection) : "";
}

std::string progress_text(const SearchProgress& now) {
  std::string count = fmt::format("{} of {}", now.done, now.all);
  switch (now.step) {
    case SearchProgress::Step::kFamilies:
      return count + " families prepared";
    case SearchProgress::Step::kFamiliesAtLimit:
      return count + " families planned";
    case SearchProgress::Step::kLimits:
      return count + " limits";
  }
  return count;
}

[[noreturn]] void nothing_fits(const Search& search, const SearchResult& result, int devices,
                               bool in_memory, bool keeps_all) {
  const auto of = [&](Bytes bytes) { return shown(bytes, search.unit(), in_memory); };
  const std::string crowded = without_room(result);
  const char* unit = keeps_all ? "" : " where nothing is recomputed or copied";
  throw InfeasibleError(
      fmt::format("no schedule fits into {}{}; one microbatch keeps {}{}{}{}{}{}", of(result.limit),
                  in_memory ? "" : fmt::format(" of what {} microbatches keep", devices),
                  of(search.unit() / devices), unit, crowded.empty() ? "" : "\n  ", crowded,
                  search.left_out().empty() ? "" : "\n  left out: ",
                  fmt::join(search.left_out(), "\n  left out: ")));
}

// A frontier has points, which are its limits, and several programs; a search has one of each.
void refuse_what_does_not_go_together(const SearchCommand& command, const CommandLine& line) {
  if (command.pareto && !command.output.empty()) {
    throw InputError(line.of_option(command.output),
                     "a frontier has no single program: leave out -o");
  }
  if (command.pareto && !command.limit.empty()) {
    throw InputError(line.where("--memory-limit", command.limit),
                     "a frontier goes through all limits: leave out --memory-limit or --pareto");
  }
  if (!command.pareto && command.points) {
    throw InputError(line.where("--points", fmt::format("{}", *command.points)),
                     "points are of a frontier: expected --pareto beside --points");
  }
}

// A case is made where there are bytes to take off.
std::variant<double, Bytes> limit_of(const SearchCommand& command, const CommandLine& line,
                                     const Scenario& scenario) {
  if (command.limit.empty()) return 1.0;
  const Location where = line.where("--memory-limit", command.limit);
  const auto limit = parse_memory_limit(command.limit, where);
  if (std::holds_alternative<double>(limit)) return limit;
  return activation_limit(command.limit, prepare_first(scenario), where);
}

int run_search(const SearchCommand& command, const CommandLine& line) {
  refuse_what_does_not_go_together(command, line);
  const Scenario scenario =
      read_scenario_file(command.file, line.where(command.file), line.overrides(command.overrides));
  check_writable({command.output, command.csv}, line);
  const auto limit = limit_of(command, line, scenario);
  const bool in_bytes = std::holds_alternative<Bytes>(limit);
  const bool in_memory = knows_memory(scenario);
  SearchOptions options = command.search;
  options.schedules = schedules_named(command, line, scenario);
  options.refine = !command.no_refinement;
  options.refinement.effort =
      command.effort.value_or(command.pareto ? kFrontierEffort : RefineOptions{}.effort);
  const int points = command.points.value_or(kPoints);
  if (command.pareto) {
    options.limits = points;
  } else {
    std::visit([&options](auto of) { options.order_within = of; }, limit);
  }
  ProgressLine bar;
  std::mutex of_bar;
  options.progress = [&](const SearchProgress& now) {
    const std::scoped_lock lock(of_bar);
    bar.tick([&now] { return "search: " + progress_text(now); });
  };
  const Search search(scenario, options);
  std::vector<SearchResult> results;
  if (command.pareto) {
    results = search.frontier(points);
  } else {
    results.push_back(
        search.at(in_bytes ? std::get<Bytes>(limit) : std::get<double>(limit) * search.unit()));
    if (!results.front().best) {
      nothing_fits(search, results.front(), scenario.parallel.pipeline, in_memory,
                   std::ranges::all_of(fixed_reliefs(scenario, options), &FixedRelief::keeps_all) &&
                       !options.offload && !options.recompute);
    }
  }
  bar.clear();
  if (command.csv != "-" && command.output != "-") {
    print_for_people(search, results, scenario, options);
    std::cout << csv_line(command, results.front()) << std::flush;
  }
  std::vector<Output> files{{command.csv, line.of_option(command.csv), [&](std::ostream& out) {
                               write_csv(out, results, search.unit(), options);
                             }}};
  if (!command.pareto) {
    auto program = program_outputs(command, line, search, *results.front().best, in_memory);
    files.insert(files.end(), program.begin(), program.end());
  }
  write_outputs(files);
  return kDone;
}

}  // namespace

Subcommand add_search(Parser& program) {
  auto command = std::make_shared<SearchCommand>();
  Parser& parser = program.add_command(
      "search", "Find the fastest schedule within a memory limit",
      "  pipesim search scenarios/quickstart.yaml --memory-limit 0.75 -o best.csv\n"
      "  pipesim search scenarios/quickstart.yaml --pareto --points 5 --no-refinement");
  parser
      .add_option(
          "file", command->file,
          "Scenario (YAML); of its schedules, those that it describes are considered beside the "
          "registered ones")
      .required();
  parser.add_option("overrides", command->overrides, "path.to.key=value, over what the file says");
  add_memory_limit(parser, command->limit, "1");
  parser.add_flag("--pareto", command->pareto, "The whole frontier of memory against cost");
  parser.add_option("--points", command->points, "Limits of the frontier (default 20)")
      .range(kFrontierPoints);
  parser
      .add_option("--schedules", command->schedules,
                  "Only these families (names with commas between)")
      .check([](const std::string& text) {
        return text.empty() ? std::string("names of schedules are expected") : std::string();
      });
  parser
      .add_option("--max-chunks", command->search.max_chunks,
                  "Most chunks per device that a family may take (default 2)")
      .range(kSearchedChunks);
  parser
      .add_option("--max-splits", command->search.max_splits,
                  "Most sequence splits that a family may take (default 1)")
      .range(kSearchedSplits);
  parser.add_flag("--offload", command->search.offload,
                  "Families may also let activations of some chunks wait on the host");
  parser.add_flag("--recompute", command->search.recompute,
                  "Families may also recompute some chunks in full");
  parser.add_flag("--no-refinement", command->no_refinement, "Only the families as they are");
  parser
      .add_option("--effort", command->effort,
                  "Passes that refinement evaluates (default 2e7; of a frontier 2e6 per limit)")
      .range(kRefinedPasses);
  parser.add_option("--seed", command->search.refinement.seed, "Seed of refinement (default 1)");
  parser
      .add_option("--max-passes", command->search.max_passes,
                  "Passes that may be planned in all (default 2^30)")
      .range(kSearchedPasses);
  parser.add_threads();
  add_csv(parser, command->csv, "the results");
  add_output(parser, command->output,
             "Write the best program as PyTorch schedule CSV, which `schedule: {csv: FILE}` "
             "reads back; where it offloads, a scenario that runs it");
  return {&parser, [command](const CommandLine& line) { return run_search(*command, line); }};
}

}  // namespace pipesim
