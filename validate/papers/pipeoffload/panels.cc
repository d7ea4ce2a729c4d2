#include "validate/papers/pipeoffload/panels.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "sim/anchor/fitted_factor.h"
#include "sim/case/simulate.h"
#include "sim/core/data_folder.h"
#include "sim/prepare/prepare.h"
#include "sim/read/model.h"
#include "sim/read/scenario.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/paper_keys.h"

namespace pipesim::pipeoffload {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 6> kNames{{{"1F1B", "1f1b"},
                                                                     {"1F1B-I", "interleaved-1f1b"},
                                                                     {"GIS", "gis"},
                                                                     {"GIS-H", "gis-h"},
                                                                     {"PO-H", "po-h"},
                                                                     {"PO-F", "po-f"}}};

// An A100's: more is out of memory.
constexpr Bytes kMemory = 80 * kGiB;

// The schedule by its name in the paper.
std::string schedule_of(const YamlValue& name) {
  std::vector<std::string> known;
  for (const auto& each : kNames) known.emplace_back(each.first);
  const std::string given = name.choice(known);
  for (const auto& [paper, ours] : kNames) {
    if (given == paper) return ours;
  }
  throw LogicError("no schedule is called " + given);
}

struct Panel {
  std::string name;   // "m10p5B_8gpu"
  std::string model;  // "10.5B"
  int gpus = 0;
  int batch = 0;
  int chunks = 1;
  bool ends_count = true;  // embedding and output stand for a layer each
  std::string fault;       // why nothing of it is modelled; empty: it is
};

// The panel of a name like m10p5B_8gpu; nothing for other names.
std::optional<Panel> panel_of(const std::string& name) {
  const size_t end = name.find_first_of("Bb");
  if (!name.starts_with('m') || end == std::string::npos || end < 2) return std::nullopt;
  Panel panel;
  panel.name = name;
  panel.model = name.substr(1, end - 1);
  std::ranges::replace(panel.model, 'p', '.');
  if (panel.model.find_first_not_of("0123456789.") != std::string::npos) return std::nullopt;
  panel.model += 'B';
  const std::string rest = name.substr(end + 1);
  if (!rest.starts_with('_')) return std::nullopt;
  const auto [after, error] =
      std::from_chars(rest.data() + 1, rest.data() + rest.size(), panel.gpus);
  const std::string unit(after, rest.data() + rest.size());
  if (error != std::errc() || (unit != "gpu" && unit != "gpus")) return std::nullopt;
  return panel;
}

// One layer in a chunk, the first and the last stage one less; where layers divide over the GPUs
// only without the two that these stages are short of, none less.
void complete(Panel& panel, const YamlValue& where, const Batches& batches) {
  const std::string name = "po-" + panel.model.substr(0, panel.model.size() - 1) + "b";
  const Transformer model = find_model(name, where.where());
  const int layers = model.num_layers;
  const auto batch = batches.find(panel.model);
  if (panel.gpus < 2) where.fail("expected at least 2 GPUs");
  panel.ends_count = (layers + 2) % panel.gpus == 0;
  panel.chunks = (panel.ends_count ? layers + 2 : layers) / panel.gpus;
  if (!panel.ends_count && layers % panel.gpus != 0) {
    panel.fault = fmt::format("neither {} layers nor {}, with embedding and output, divide by {}",
                              layers, layers + 2, panel.gpus);
  }
  if (batch == batches.end()) panel.fault = "table2_models has no batch of this model";
  if (batch != batches.end()) panel.batch = batch->second;
}

// Assumed, where the paper does not say: micro batch 1; norms, activations and dropouts made again.
Result run(const Panel& panel, const std::string& schedule, int seq_length, double factor) {
  const bool chunked = schedule != "1f1b";
  const std::string split = panel.ends_count ? R"(
           account_for_embedding_in_pipeline_split: true, account_for_loss_in_pipeline_split: true,)"
                                             : "";
  Scenario scenario = read_scenario(YamlSource(
      "pipeoffload",
      fmt::format(
          R"(
schedule: {}
model: po-{}b
cluster: a100-roce
parallel: {{{} {}pipeline_model_parallel_size: {}}}
batch: {{global_batch_size: {}, micro_batch_size: 1, seq_length: {}}}
cost: {{kind: roofline, software: {}}}
memory: {{kind: model, capacity: {:.0f} B}}
recompute: pointwise
)",
          schedule, panel.model.substr(0, panel.model.size() - 1), split,
          chunked ? fmt::format("virtual_pipeline_model_parallel_size: {}, ", panel.chunks) : "",
          panel.gpus, panel.batch, seq_length, software_of_catalog("megatron-deepspeed-2023").name,
          kMemory.value())));
  if (factor != 1) scenario.roofline->anchor = Anchor{.file = "", .factors = {.compute = factor}};
  return simulate(prepare_first(std::move(scenario)));
}

struct Tried {
  std::optional<Result> result;
  std::string fault;
};

Tried try_to_run(const Panel& panel, const std::string& schedule, int seq_length,
                 double factor = 1) {
  if (!panel.fault.empty()) return {std::nullopt, panel.fault};
  try {
    return {run(panel, schedule, seq_length, factor), {}};
  } catch (const InfeasibleError& error) {
    return {std::nullopt, error.what()};
  } catch (const InputError& error) {
    return {std::nullopt, error.message()};
  }
}

struct Row {
  int seq = 0;
  std::string name;  // of the schedule, in the paper
  std::string schedule;
  Printed mfu;
  Printed memory;
};

Row read_row(const YamlValue& value) {
  YamlMap map(value);
  Row row;
  row.seq = static_cast<int>(map.require("seq", "tokens").integer(1, 1 << 20));
  const YamlValue name = map.require("schedule", "as the paper calls it");
  row.name = name.text();
  row.schedule = schedule_of(name);
  row.mfu = read_printed(map.require("mfu_pct", "percent, OOM or SKIP"), 100);
  row.memory = read_printed(map.require("act_mem_gb", "GB, OOM or SKIP"), 1e6);
  finish_row(map);
  return row;
}

void add(std::vector<Cell>& cells, Cell cell, const Tried& tried,
         const std::function<std::optional<double>(const Result&)>& value) {
  if (!tried.result) {
    cell.note = "not modelled: " + tried.fault;
  } else {
    cell.simulated = value(*tried.result);
  }
  cells.push_back(std::move(cell));
}

// A cell of the figure without its table. The panel that was known first goes without its name.
Cell named(const Panel& panel, const Row& row) {
  Cell cell;
  cell.cell = fmt::format("{}{} s={}", panel.name == "m10p5B_8gpu" ? "" : panel.name + " ",
                          row.name, row.seq);
  cell.digits = 1;
  cell.relative = true;
  return cell;
}

std::optional<double> mfu_percent(const Result& result) {
  const bool known = result.throughput && result.throughput->mfu;
  return known ? std::optional(100 * *result.throughput->mfu) : std::nullopt;
}

bool has_mfu(const Row& row) { return row.mfu.kind == Printed::Kind::kNumber; }

// The factor on compute seconds with which a panel's 1F1B cells have their published MFU on
// average: whole percents say too little one by one. 1 where there are none.
double anchor_of(const Panel& panel, const std::vector<Row>& rows) {
  std::vector<Row> anchors;
  std::ranges::copy_if(rows, std::back_inserter(anchors),
                       [](const Row& row) { return row.schedule == "1f1b" && has_mfu(row); });
  if (!panel.fault.empty() || anchors.empty()) return 1;
  double published = 0;
  for (const Row& row : anchors) published += 1 / row.mfu.number;
  return fitted_factor(Seconds(published), [&](double factor) {
    double simulated = 0;
    for (const Row& row : anchors) {
      simulated += 1 / mfu_percent(run(panel, "1f1b", row.seq, factor)).value();
    }
    return Seconds(simulated);
  });
}

void compare_mfu(std::vector<Cell>& cells, const Panel& panel, const Row& row, double factor,
                 const Tried& anchored) {
  Cell cell = named(panel, row);
  cell.published = row.mfu.number;
  cell.table = "Figure 15, MFU";
  cell.run = {panel.name, fmt::format("s={}", row.seq), row.name};
  add(cells, cell, try_to_run(panel, row.schedule, row.seq), mfu_percent);
  if (factor == 1) return;
  cell.run.reset();
  cell.table = row.schedule == "1f1b" ? "Figure 15, MFU, fitted" : "Figure 15, MFU anchored";
  cell.note = fmt::format("factor {:.3f}", factor);
  add(cells, cell, anchored, mfu_percent);
}

// Memory is of the anchored run, since offload keeps more the longer copies take beside passes.
void compare_row(std::vector<Cell>& cells, const Panel& panel, const Row& row, double factor) {
  using enum Printed::Kind;
  const Tried anchored = try_to_run(panel, row.schedule, row.seq, factor);
  Cell cell = named(panel, row);
  if (row.mfu.kind == kNothing && row.memory.kind == kNothing) {
    if (!panel.fault.empty()) return;
    cell.table = "Figure 15, skipped";
    cell.published = 1;
    cell.relative = false;
    cell.simulated = anchored.result ? 0.0 : 1.0;
    cell.note = anchored.fault;
    cells.push_back(std::move(cell));
    return;
  }
  if (row.mfu.kind == kOutOfMemory || row.memory.kind == kOutOfMemory) {
    cell.table = "Figure 15, out of memory";
    cell.published = 1;
    cell.relative = false;
    add(cells, cell, anchored,
        [](const Result& result) { return *result.report.peak_memory > kMemory ? 1.0 : 0.0; });
    return;
  }
  if (row.memory.kind == kNumber) {
    cell.table = "Figure 15, memory";
    cell.published = row.memory.number;
    add(cells, cell, anchored,
        [](const Result& result) { return result.report.peak_activation / kGiB; });
  }
  if (row.mfu.kind == kNumber) compare_mfu(cells, panel, row, factor, anchored);
}

Batches batches_of(const YamlValue& rows) {
  Batches batches;
  for (const YamlValue& each : rows.list()) {
    YamlMap map(each);
    const std::string model = map.require("model", "10.5B, ...").text();
    batches[model] =
        static_cast<int>(map.require("batch", "samples of an iteration").integer(1, 1 << 20));
    finish_row(map, {"layers", "heads", "hidden", "gpus"});
  }
  return batches;
}

}  // namespace

Batches read_batches(YamlMap& root) {
  if (const auto rows = root.find("table2_models")) return batches_of(*rows);
  const std::string path = paper_file(data_folder("papers"), "pipeoffload");
  const YamlSource source = YamlSource::from_file(path, {path, 1, 1, ""});
  YamlMap own(source.root());
  return batches_of(own.require("table2_models", "the models' batches"));
}

void compare_panels(std::vector<Cell>& cells, const YamlValue& panels, const Batches& batches) {
  YamlMap map(panels);
  std::vector<std::pair<Panel, std::vector<Row>>> all;
  for (const auto& [key, value] : panels.entries()) {
    auto panel = panel_of(key);
    if (!panel) continue;
    (void)map.find(key);
    complete(*panel, value, batches);
    std::vector<Row> rows;
    for (const YamlValue& row : value.list()) rows.push_back(read_row(row));
    all.emplace_back(std::move(*panel), std::move(rows));
  }
  (void)map.find("m10p5B_8gpu");  // what a panel is called
  finish_row(map, {"k_by_seq"});
  for (const auto& [panel, rows] : all) {
    const double factor = anchor_of(panel, rows);
    for (const Row& row : rows) compare_row(cells, panel, row, factor);
  }
}

}  // namespace pipesim::pipeoffload
