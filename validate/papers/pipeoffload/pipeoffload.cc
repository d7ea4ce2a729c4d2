#include "validate/papers/pipeoffload/pipeoffload.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "models/layer_cost.h"
#include "models/layer_memory.h"
#include "models/layer_work.h"
#include "sim/execution/evaluate.h"
#include "sim/planning/schedule.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/paper_keys.h"
#include "validate/papers/pipeoffload/panels.h"

namespace pipesim {
namespace {

// Table 1, for d devices and v chunks of F, B, W each: peaks in units of M, what d microbatches
// keep on a device, and bubbles.
struct Formula {
  const char* paper;
  const char* schedule;
  bool exact_peak;  // 1F1B-I's leaves out what vanishes for many devices
  double (*peak)(double d, double v);
  double (*bubble)(double d, double v, const StageCost& cost);
};

double all(const StageCost& cost) {
  return (cost.forward + cost.backward_input + cost.backward_weight).value();
}
double both(const StageCost& cost) { return (cost.forward + cost.backward_input).value(); }

constexpr std::array<Formula, 4> kTable1{
    {{"1F1B", "1f1b", true, [](double, double) { return 1.0; },
      [](double d, double v, const StageCost& cost) { return v * (d - 1) * all(cost); }},
     {"1F1B-I", "interleaved-1f1b", false, [](double, double v) { return (v + 1) / v; },
      [](double d, double, const StageCost& cost) { return (d - 1) * all(cost); }},
     {"GIS", "gis", true, [](double, double) { return 1.0; },
      [](double d, double, const StageCost& cost) { return (d - 1) * both(cost); }},
     {"GIS-H", "gis-h", true, [](double, double v) { return (v + 1) / (2 * v); },
      [](double d, double v, const StageCost& cost) {
        return (d - 1) * both(cost) + (v - 1) * d / 2 * (both(cost) - cost.backward_weight.value());
      }}}};

// Equal stages that keep 1 until W; `chunks` of them on a device share its time.
Problem equal_stages(const Schedule& schedule, int devices, int chunks, int microbatches,
                     double share) {
  Problem problem;
  problem.shape = {devices, chunks, microbatches, 1};
  problem.placement = schedule.place(devices, chunks);
  StageCost cost;
  cost.forward = Seconds(share);
  cost.backward_input = Seconds(1.1 * share);
  cost.backward_weight = Seconds(0.8 * share);
  cost.activation = cost.weight_stash = Bytes(share);
  problem.stages.assign(problem.placement.virtual_stages(), cost);
  return problem;
}

void compare_table1(std::vector<Cell>& cells) {
  for (const Formula& formula : kTable1) {
    const Schedule& schedule = *find_schedule(formula.schedule);
    for (const auto& [devices, chunks] : {std::pair(4, 2), {8, 4}, {16, 5}}) {
      const int own = schedule.max_chunks == 1 ? 1 : chunks;
      const Problem problem = equal_stages(schedule, devices, own, 4 * devices, 1.0 * chunks / own);
      const Evaluation result = evaluate(schedule.plan(problem), problem);
      StageCost chunk = problem.stages.front();
      for (Seconds* each : {&chunk.forward, &chunk.backward_input, &chunk.backward_weight}) {
        *each = *each * own / chunks;
      }
      Cell cell;
      cell.table = "Table 1";
      cell.relative = true;
      cell.must_agree = true;
      cell.worst = 1e-9;  // rounding
      cell.cell = fmt::format("{} d={} v={} bubble", formula.paper, devices, chunks);
      cell.published = formula.bubble(devices, chunks, chunk);
      cell.simulated = (result.cost - result.work).value();
      cells.push_back(cell);
      cell.cell = fmt::format("{} d={} v={} peak / M", formula.paper, devices, chunks);
      cell.published = formula.peak(devices, chunks);
      cell.simulated = result.peak_activation().value() / (devices * chunks);
      cell.must_agree = formula.exact_peak;
      if (!formula.exact_peak) {
        cell.table = "Table 1, for many devices";
        cell.note = "the formula leaves out 1/(dv), one chunk";
      }
      cells.push_back(cell);
    }
  }
}

// The paper's models: 128 channels a head, 8 groups of keys and values.
Transformer paper_model(int hidden) {
  Transformer model;
  model.num_layers = 1;
  model.hidden_size = hidden;
  model.num_attention_heads = hidden / 128;
  model.num_query_groups = 8;
  model.kv_channels = 128;
  model.ffn_hidden_size = 4 * hidden;
  model.vocab_size = 50304;
  return model;
}

double seconds_of_layer(const Transformer& model, const LayerContext& context) {
  constexpr double kPaperFlops = 220e12;
  double work = 0;
  for (const PassKind pass : {PassKind::kF, PassKind::kB, PassKind::kW}) {
    work += flops(layer_work(model, LayerKind::kDense, pass, context)).value();
  }
  return work / kPaperFlops;
}

std::vector<int> sizes(YamlMap& map, const char* key) {
  std::vector<int> all;
  for (const YamlValue& each : map.require(key, "a list of sizes").list()) {
    all.push_back(static_cast<int>(each.integer(1, 1 << 20)));
  }
  return all;
}

// One number of a grid, whose rows are hidden sizes and whose columns are sequence lengths.
struct GridCell {
  int hidden = 0;
  int length = 0;
  double published = 0;
};

std::vector<GridCell> grid(const YamlValue& value, const std::vector<int>& hidden,
                           const std::vector<int>& length) {
  const std::vector<YamlValue> rows = value.list();
  if (rows.size() != hidden.size()) value.fail(fmt::format("expected {} rows", hidden.size()));
  std::vector<GridCell> cells;
  for (size_t row = 0; row < rows.size(); ++row) {
    const std::vector<YamlValue> numbers = rows[row].list();
    if (numbers.size() != length.size()) {
      rows[row].fail(fmt::format("expected {} numbers", length.size()));
    }
    for (size_t column = 0; column < numbers.size(); ++column) {
      cells.push_back({hidden[row], length[column], numbers[column].number(-1e6, 1e6)});
    }
  }
  return cells;
}

// The backward of the paper's attention is counted as twice its forward, what a flash kernel makes
// again left out.
LayerContext paper_context(int seq_length) {
  LayerContext context;
  context.seq_length = seq_length;
  context.causal = false;
  context.flash_attention = false;
  return context;
}

// Copies over passes, both as the catalogue has them: by roofline, with a causal mask and what
// pointwise recomputation runs again.
double ratio_of_catalog(const Transformer& model, int seq_length, Bytes bytes,
                        const Hardware& hardware) {
  CostSetting setting;
  setting.context.seq_length = seq_length;
  setting.context.recompute = RecomputeGranularity::kPointwise;
  const LayerCost layer = layer_cost(model, LayerKind::kDense, setting, hardware);
  const Seconds passes =
      layer.forward.total() + layer.backward_input.total() + layer.backward_weight.total();
  return 2 * (bytes / hardware.host.duplex) / passes;
}

void compare_ratios(std::vector<Cell>& cells, const YamlValue& value, const Hardware& hardware) {
  constexpr double kPaperBandwidth = 15e9;
  YamlMap map(value);
  const std::vector<int> hidden = sizes(map, "rows_hidden");
  const std::vector<int> length = sizes(map, "cols_seq");
  const YamlValue k = map.require("k", "a row per hidden size");
  finish_row(map);
  for (const GridCell& of : grid(k, hidden, length)) {
    const Transformer model = paper_model(of.hidden);
    LayerContext kept = paper_context(of.length);
    kept.flash_attention = true;
    kept.recompute = RecomputeGranularity::kPointwise;
    const Bytes bytes = layer_memory(model, LayerKind::kDense, kept).activation;
    Cell cell;
    cell.table = "Figure 1";
    cell.cell = fmt::format("k, h={} s={}", of.hidden, of.length);
    cell.published = of.published;
    cell.simulated =
        2 * bytes.value() / kPaperBandwidth / seconds_of_layer(model, paper_context(of.length));
    cell.digits = 2;
    cell.relative = true;
    cell.must_agree = true;
    cell.worst = 0.06;
    cells.push_back(cell);
    cell.table = "Figure 1, from the catalogue";
    cell.simulated = ratio_of_catalog(model, of.length, bytes, hardware);
    cell.must_agree = false;
    cell.worst = 0;
    cells.push_back(cell);
  }
}

// The rows and columns of a grid: its own, else Figure 1's, else the paper's.
struct Axes {
  std::vector<int> hidden{4096, 5120, 6144, 7168, 8192, 10240};
  std::vector<int> length{4096, 8192, 16384, 32768};
};

Axes axes_of(YamlMap& map, Axes otherwise) {
  if (map.find("rows_hidden")) otherwise.hidden = sizes(map, "rows_hidden");
  if (map.find("cols_seq")) {
    otherwise.length = sizes(map, "cols_seq");
  } else {
    otherwise.length.resize(std::min<size_t>(3, otherwise.length.size()));  // longer: no memory
  }
  return otherwise;
}

void compare_recompute(std::vector<Cell>& cells, const YamlValue& value, const Axes& otherwise) {
  YamlMap map(value);
  const YamlValue given = map.require("reduced_activation_pct", "a row per hidden size");
  const auto [hidden, length] = axes_of(map, otherwise);
  finish_row(map, {"slowdown_pct"});
  // The paper counts masks of dropout; whether its runs had any is not said.
  for (const bool masks : {true, false}) {
    for (const GridCell& of : grid(given, hidden, length)) {
      const Transformer model = paper_model(of.hidden);
      LayerContext context = paper_context(of.length);
      context.flash_attention = true;
      context.dropout = masks;
      const Bytes whole = layer_memory(model, LayerKind::kDense, context).activation;
      context.recompute = RecomputeGranularity::kPointwise;
      const Bytes kept = layer_memory(model, LayerKind::kDense, context).activation;
      Cell cell;
      cell.table = masks ? "Figure 16" : "Figure 16, without masks";
      cell.cell = fmt::format("activation saved %, h={} s={}", of.hidden, of.length);
      cell.published = of.published;
      cell.simulated = 100 * (1 - kept / whole);
      cell.digits = 1;
      cells.push_back(cell);
    }
  }
}

}  // namespace

std::vector<Cell> compare_pipeoffload(const std::string& folder, const Location& asked) {
  const YamlSource source = YamlSource::from_file(paper_file(folder, "pipeoffload"), asked);
  YamlMap root(source.root());
  const auto ratios = root.find("fig1_k_grid");
  const auto panels = root.find("fig15");
  const auto recompute = root.find("fig16_recompute_ablation");
  const auto batches = pipeoffload::read_batches(root);
  finish_paper(root, "pipeoffload");
  if (!ratios && !panels && !recompute) root.value().fail("no table of this paper in this file");
  std::vector<Cell> cells;
  compare_table1(cells);
  Axes axes;
  if (ratios) {
    compare_ratios(cells, *ratios, cluster_of_catalog("a100-roce", asked));
    YamlMap map(*ratios);
    axes = {sizes(map, "rows_hidden"), sizes(map, "cols_seq")};
  }
  if (panels) pipeoffload::compare_panels(cells, *panels, batches);
  if (recompute) compare_recompute(cells, *recompute, axes);
  return cells;
}

}  // namespace pipesim
