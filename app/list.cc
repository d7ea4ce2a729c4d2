// pipesim list: what a scenario may name.
#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <iostream>
#include <memory>
#include <span>
#include <sstream>
#include <utility>

#include "app/commands.h"
#include "app/common_options.h"
#include "models/layer_parameters.h"
#include "models/transformer.h"
#include "sim/core/text.h"
#include "sim/planning/schedule.h"
#include "sim/read/hardware.h"
#include "sim/read/model.h"
#include "sim/report/json/gpus.h"
#include "sim/report/metrics/json.h"
#include "sim/report/metrics/row.h"
#include "sim/report/text/aligned.h"
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

void list_options(const Schedule& schedule) {
  if (!schedule.options.empty() || schedule.memory_limit) std::cout << "  options:\n";
  if (schedule.memory_limit) {
    std::cout << "      memory_limit: a multiple of p x one microbatch's activation on a device, "
                 "bytes of activations per device, or {total: bytes of all memory}\n";
  }
  for (const OptionSpec& option : schedule.options) std::cout << option_text(option);
}

void list_vocabulary(const Schedule& schedule) {
  for (const VocabularySupport& support : schedule.vocabulary) {
    std::cout << fmt::format("  vocabulary {}: bubble {}; in flight {}\n",
                             to_text(support.placement), to_text(support.claims.bubble),
                             to_text(support.claims.peak));
  }
}

void show(const Schedule& schedule) {
  std::cout << fmt::format("{}{}\n  {}\n  {}\n", schedule.name,
                           schedule.placement ? ", placement: " + schedule.placement->name : "",
                           schedule.summary, origin_text(schedule));
  if (schedule.max_chunks > 1) {
    const bool fixed = schedule.min_chunks == schedule.max_chunks;
    std::cout << fmt::format(
        "  chunks per device: {}{}\n", schedule.default_chunks,
        fixed ? ", no other number"
              : fmt::format(" unless set, {} to {}", schedule.min_chunks, schedule.max_chunks));
  }
  std::cout << fmt::format("  bubble: {}\n  in flight on device d: {}\n",
                           to_text(schedule.claims.bubble), to_text(schedule.claims.peak));
  list_vocabulary(schedule);
  if (schedule.versions) {
    const WeightVersions& versions = *schedule.versions;
    std::cout << fmt::format(
        "  asynchronous: a step after every {}, versions of weights on 4 devices: {} to {}\n",
        versions.every_microbatch ? "microbatch" : "iteration", versions.kept(4, 0),
        versions.kept(4, 3));
  }
  if (schedule.runs_on != Runtime::kNone) {
    std::cout << fmt::format("  runs on: {}\n", to_text(schedule.runs_on));
  }
  if (!schedule.left_out_of_plan.empty()) {
    std::cout << fmt::format("  plan does not try it by itself: {}\n", schedule.left_out_of_plan);
  }
  list_options(schedule);
}

void list_schedules() {
  for (const Schedule* schedule : schedules()) show(*schedule);
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
         "[the gallery](gallery.md) draws them. Schedules that the planner tries by itself "
         "have no\nreason in the last column.\n\n"
         "| schedule | file | whose | order | bubble | in flight on device d | runs on | why "
         "`plan` does not try it by itself |\n|---|---|---|---|---|---|---|---|\n";
  for (const Schedule* schedule : schedules()) {
    const Runtime runtime = schedule->runs_on;
    std::cout << fmt::format(
        "| `{0}` | [{1}](../../{2}) | {3} | {4} | {5} | {6} | {7} | {8} |\n",
        schedule->placement
            ? fmt::format("{{name: {}, placement: {}}}", schedule->name, schedule->placement->name)
            : schedule->name,
        schedule->file.substr(schedule->file.rfind('/') + 1), schedule->file,
        cell(origin_text(*schedule)),
        cell(schedule->order.empty() ? schedule->summary : schedule->order),
        claimed(schedule->claims.bubble), claimed(schedule->claims.peak),
        runtime == Runtime::kNone ? "" : to_text(runtime), cell(schedule->left_out_of_plan));
  }
  std::cout.flush();
}

std::string billions(double parameters) { return fmt::format("{:.2f}B", parameters / 1e9); }

// The last column is text of any length.
std::string table(std::vector<Row> rows) {
  std::vector<std::string> last;
  for (Row& row : rows) {
    last.push_back(std::move(row.back()));
    row.pop_back();
  }
  std::istringstream lines(aligned(rows));
  std::string text;
  std::string line;
  for (const std::string& end : last) {
    std::getline(lines, line);
    text += fmt::format("{}  {}\n", line, end);
  }
  return text;
}

void list_models() {
  std::vector<Row> rows{{"name", "parameters", "activated", "layers", "hidden", "source"}};
  for (const Transformer& model : catalogue_models()) {
    rows.push_back(
        {model.name, billions(total_parameters(model)), billions(total_activated_parameters(model)),
         fmt::format("{}", model.num_layers), fmt::format("{}", model.hidden_size), model.source});
  }
  std::cout << table(std::move(rows)) << std::flush;
}

std::string tera(double value) { return value > 0 ? fmt::format("{:g}", value / 1e12) : "-"; }
std::string giga(double value) { return fmt::format("{:.4g}", value / 1e9); }

void list_gpus(std::span<const GpuEntry> entries) {
  std::vector<Row> rows{{"name", "bf16", "fp8", "fp4 TFLOP/s", "memory GB", "TB/s", "processors",
                         "W", "curves", "title"}};
  for (const GpuEntry& entry : entries) {
    const Gpu& gpu = entry.gpu;
    rows.push_back({gpu.name, tera(gpu.peak[Precision::kBf16].value()),
                    tera(gpu.peak[Precision::kFp8].value()),
                    tera(gpu.peak[Precision::kFp4].value()), giga(gpu.memory.value()),
                    tera(gpu.memory_bandwidth.value()), fmt::format("{}", gpu.multiprocessors),
                    fmt::format("{:.0f}", gpu.busy_power.value()),
                    gpu.like.empty() ? "its own" : "as " + gpu.like, entry.title});
  }
  std::cout << table(std::move(rows)) << std::flush;
}

void list_clusters(std::span<const ClusterEntry> entries) {
  std::vector<Row> rows{{"name", "GPU", "a node", "NICs", "Gb/s each", "link GB/s", "title"}};
  for (const ClusterEntry& entry : entries) {
    const Cluster& cluster = entry.hardware.cluster;
    rows.push_back(
        {entry.hardware.name, entry.hardware.gpu.name, fmt::format("{}", cluster.gpus_per_node),
         fmt::format("{}", cluster.nics_per_node), giga(8 * entry.card.bandwidth.value()),
         giga(cluster.link_bandwidth.value()), entry.title});
  }
  std::cout << table(std::move(rows)) << std::flush;
}

void list_metrics(const std::string& format) {
  if (format == "json") {
    std::cout << metrics_json();
  } else if (format == "markdown") {
    std::cout << metrics_page();
  } else {
    std::vector<Row> rows{{"name", "unit", "in tables", "definition"}};
    for (const Metric& metric : kMetrics) {
      rows.push_back({std::string(metric.name),
                      std::string(kMetricUnitNames[static_cast<size_t>(metric.unit)]),
                      std::string(metric.label), std::string(metric.definition)});
    }
    std::cout << table(std::move(rows));
  }
  std::cout.flush();
}

void show(const GpuEntry& entry) {
  std::cout << fmt::format("{}\n  {}\n", entry.gpu.name, entry.title);
  if (!entry.gpu.like.empty()) {
    std::cout << fmt::format(
        "  from its data sheet: what it leaves out is as {}, and answers may be "
        "{:.0f}% further off\n",
        entry.gpu.like, 100 * entry.gpu.spread);
  }
  std::cout << sourced_list(entry.numbers);
}

void show(const ClusterEntry& entry) {
  std::cout << fmt::format("{}\n  {}\n  gpu: {}\n", entry.hardware.name, entry.title,
                           entry.hardware.gpu.name)
            << sourced_list(entry.numbers);
}

void show(const Transformer& model) {
  std::cout << fmt::format("{}\n  {} parameters, {} of them activated by a token\n", model.name,
                           billions(total_parameters(model)),
                           billions(total_activated_parameters(model)));
  for (const auto& [key, value] : catalogue_entry(model.name)) {
    std::cout << fmt::format("    {}: {}\n", key, value);
  }
}

void show(const Metric& metric) {
  std::cout << fmt::format("{}\n  {}\n  in tables: {}\n  unit: {}\n", metric.name,
                           metric.definition, metric.label,
                           kMetricUnitNames[static_cast<size_t>(metric.unit)]);
}

struct ListOptions {
  std::string what = "schedules";
  std::string name;
  std::string check;
  std::string json;
  std::string format = "text";
};

// A name that a scenario or an output may use, of one kind.
struct ListedEntry {
  std::string name;
  std::function<void()> show;
};

struct ListedKind {
  const char* name;
  std::function<std::vector<ListedEntry>(const HardwareCatalog&)> entries;
  std::function<void(const HardwareCatalog&, const std::string& format)> list;
};

template <class Range, class Name>
std::vector<ListedEntry> entries_of(const Range& range, Name name) {
  std::vector<ListedEntry> entries;
  for (const auto& each : range) {
    entries.push_back({std::string(name(each)), [&each] { show(each); }});
  }
  return entries;
}

std::vector<ListedEntry> schedule_entries() {
  std::vector<ListedEntry> entries;
  for (const Schedule* each : schedules()) {
    entries.push_back({std::string(each->name), [each] { show(*each); }});
  }
  return entries;
}

const std::vector<ListedKind>& kinds() {
  static const std::vector<ListedKind> kKinds{
      {"schedules", [](const HardwareCatalog&) { return schedule_entries(); },
       [](const HardwareCatalog&, const std::string& format) {
         format == "markdown" ? list_schedules_as_page() : list_schedules();
       }},
      {"models",
       [](const HardwareCatalog&) {
         return entries_of(catalogue_models(), [](const Transformer& each) { return each.name; });
       },
       [](const HardwareCatalog&, const std::string&) { list_models(); }},
      {"gpus",
       [](const HardwareCatalog& catalog) {
         return entries_of(catalog.gpus, [](const GpuEntry& each) { return each.gpu.name; });
       },
       [](const HardwareCatalog& catalog, const std::string&) { list_gpus(catalog.gpus); }},
      {"clusters",
       [](const HardwareCatalog& catalog) {
         return entries_of(catalog.clusters,
                           [](const ClusterEntry& each) { return each.hardware.name; });
       },
       [](const HardwareCatalog& catalog, const std::string&) { list_clusters(catalog.clusters); }},
      {"metrics",
       [](const HardwareCatalog&) {
         return entries_of(kMetrics, [](const Metric& each) { return each.name; });
       },
       [](const HardwareCatalog&, const std::string& format) { list_metrics(format); }}};
  return kKinds;
}

// The details of `name`, which is of the kind `of`, or of any where that is empty.
void show_named(const std::string& of, const std::string& name, const HardwareCatalog& catalog,
                const CommandLine& line) {
  std::vector<std::string> names;
  std::vector<std::string> kind_names;  // where the name may be meant as one
  bool found = false;
  for (const ListedKind& kind : kinds()) {
    if (of.empty()) kind_names.emplace_back(kind.name);
    if (!of.empty() && of != kind.name) continue;
    for (const ListedEntry& entry : kind.entries(catalog)) {
      names.push_back(entry.name);
      if (entry.name != name) continue;
      entry.show();
      found = true;
    }
  }
  if (found) return;
  const bool kind_meant = !nearest_name(name, kind_names).empty();
  const std::vector<std::string>& valid = kind_meant ? kind_names : names;
  const std::string meant =
      suggested_names(name, valid).empty()
          ? "; `pipesim list` with schedules, models, gpus, clusters or metrics prints the names"
          : suggestion(name, valid);
  throw InputError(line.where(name), fmt::format("'{}' is not known{}", name, meant));
}

// Prints the reading of a file of GPUs.
void check_gpus(const ListOptions& options, const CommandLine& line) {
  const auto read = read_gpu_file(options.check, line.where("--check", options.check));
  for (const GpuEntry& entry : read) show(entry);
  if (options.json.empty()) return;
  write_outputs({{options.json, line.where("--json", options.json),
                  [&](std::ostream& out) { write_gpus(out, read); }}});
}

void check_options(const ListOptions& options, const CommandLine& line) {
  const bool metrics = options.what == "metrics";
  if (options.format == "markdown" && options.what != "schedules" && !metrics) {
    throw InputError(line.where("--format"), "only schedules and metrics are listed as markdown");
  }
  if (options.format == "json" && !metrics) {
    throw InputError(line.where("--format"), "only metrics are listed as JSON");
  }
  if (options.format == "json") {
    std::cerr << "pipesim: hint: instead of --format json write --json FILE\n";
  }
  if (!options.check.empty() && options.what != "gpus") {
    throw InputError(line.where("--check"),
                     "checks a file of gpus: pipesim list gpus --check FILE");
  }
  if (!options.name.empty() && (!options.json.empty() || options.format != "text")) {
    throw InputError(line.where(options.name),
                     "a name is printed as text: leave out --json and --format");
  }
  if (!options.json.empty() && options.check.empty() && !metrics) {
    throw InputError(line.where("--json"), "writes metrics, or the GPUs that --check reads");
  }
}

void list_all(const ListedKind& kind, const ListOptions& options, const HardwareCatalog& catalog,
              const CommandLine& line) {
  write_outputs({{options.json, line.of_option(options.json),
                  [](std::ostream& out) { out << metrics_json(); }}});
  if (options.json != "-") kind.list(catalog, options.format);
}

int list(const ListOptions& options, const CommandLine& line) {
  check_options(options, line);
  if (!options.check.empty()) {
    check_gpus(options, line);
    return kDone;
  }
  const auto kind = std::ranges::find(kinds(), options.what, &ListedKind::name);
  const bool asks_hardware = kind == kinds().end() || !options.name.empty() ||
                             options.what == "gpus" || options.what == "clusters";
  const HardwareCatalog catalog =
      asks_hardware ? read_all_hardware(line.where(options.what)) : HardwareCatalog();
  if (kind == kinds().end()) {
    if (!options.name.empty()) {
      throw InputError(line.where(options.what),
                       fmt::format("'{}' is no kind: expected schedules, models, gpus, clusters or "
                                   "metrics before a name",
                                   options.what));
    }
    show_named("", options.what, catalog, line);
  } else if (options.name.empty()) {
    list_all(*kind, options, catalog, line);
  } else {
    show_named(kind->name, options.name, catalog, line);
  }
  std::cout.flush();
  return kDone;
}

}  // namespace

Subcommand add_list(Parser& program) {
  auto options = std::make_shared<ListOptions>();
  Parser& parser =
      program.add_command("list", "List what a scenario may name, and the metrics of results",
                          "  pipesim list clusters\n"
                          "  pipesim list zb-h1");
  parser.add_option("what", options->what,
                    "schedules (default), models, clusters, gpus or metrics; or a name of any");
  parser.add_option("name", options->name, "One of them, with its details and sources");
  parser.add_option("--check", options->check,
                    "A file of data sheets of GPUs; prints what it is taken to say");
  add_json(parser, options->json, "metrics, or the GPUs that --check reads,");
  parser
      .add_option("--format", options->format,
                  "text, or markdown: schedules or metrics as a page of docs")
      .one_of({"text", "markdown", "json"});
  return {&parser, [options](const CommandLine& line) { return list(*options, line); }};
}

}  // namespace pipesim
