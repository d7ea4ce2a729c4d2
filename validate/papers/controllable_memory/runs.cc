// Figure 7: throughput and activation memory of a model under eight schedules.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <functional>

#include "models/layer_work.h"
#include "sim/scenario/read_model.h"
#include "validate/papers/controllable_memory/controllable_memory.h"
#include "validate/papers/one_cell.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/peak_memory.h"
#include "validate/papers/timed_run.h"

namespace pipesim::controllable_memory {
namespace {

struct Name {
  const char* paper;
  const char* schedule;
  bool recompute = false;
};
constexpr std::array<Name, 8> kNames{{{"1F1B", "1f1b"},
                                      {"1F1B-R", "1f1b", true},
                                      {"1F1B-I", "interleaved-1f1b"},
                                      {"ZB-1P", "zb-1p"},
                                      {"ZB-2P", "zb-2p"},
                                      {"V-Min", "v-min"},
                                      {"V-Half", "v-half"},
                                      {"V-ZB", "v-zb"}}};

constexpr double kPeakFlops = 312e12;
// Not printed with the figure. The passes that the paper times take as long as those of 1024 tokens
// do, and as long as no GPU could with twice as many.
constexpr int kSequence = 1024;

struct Point {
  const Name* name = nullptr;
  double mfu = 0;
  double gigabytes = 0;
};

struct Panel {
  std::string label;
  Transformer model;
  int devices = 0;
  int microbatches = 0;
  int micro_batch = 0;
  int seq = kSequence;
  std::vector<Point> points;
};

int size(YamlMap& map, const char* key) {
  return static_cast<int>(map.require(key, "a whole number").integer(1, 1 << 20));
}

Panel read_panel(const YamlValue& value) {
  YamlMap map(value);
  Panel panel;
  panel.label = map.require("model", "9.6B, ...").text();
  std::string name = "cm-" + panel.label;
  if (name.back() == 'B') name.back() = 'b';
  panel.model = find_model(name, value.where());
  panel.model.tied_embeddings = false;  // as in the launch script of Zero Bubble's authors
  panel.devices = size(map, "p");
  panel.microbatches = size(map, "m");
  panel.micro_batch = size(map, "mb");
  if (const auto seq = map.find("seq")) panel.seq = static_cast<int>(seq->integer(1, 1 << 20));
  panel.model.max_position_embeddings = panel.seq;
  YamlMap points(map.require("points", "MFU and GB by schedule"));
  for (const Name& each : kNames) {
    std::string key = each.paper;  // as keys are read
    std::ranges::replace(key, '-', '_');
    const auto point = points.find(key);
    if (!point) continue;
    const auto numbers = point->list();
    if (numbers.size() != 2) point->fail("expected MFU and GB");
    panel.points.push_back({&each, numbers[0].number(0, 100), numbers[1].number(0, 1e6)});
  }
  points.finish();
  return panel;
}

// Embedding and output stand for a layer each, so that chunks of the V-shape hold one or as many.
constexpr EvenSplit kSplit{.count_embedding = true, .count_loss = true};

int chunks_of(const Panel& panel, const Name& name) {
  const std::string schedule = name.schedule;
  if (schedule.starts_with("v-")) return 2;
  if (schedule == "interleaved-1f1b") return (panel.model.num_layers + 2) / panel.devices;
  return 1;
}

LayerContext context_of(const Panel& panel, const Name& name) {
  LayerContext context;
  context.micro_batch_size = panel.micro_batch;
  context.seq_length = panel.seq;
  context.flash_attention = false;
  context.dropout = true;
  if (name.recompute) context.recompute = RecomputeGranularity::kFull;
  return context;
}

// As Zero Bubble's runs, whose authors and code they share (zero_bubble/throughput.cc).
TimedRun timed_run(const Panel& panel, const Name& name, const Hardware& hardware) {
  const std::string schedule = name.schedule;
  const bool megatron = schedule.ends_with("1f1b");
  TimedRun run;
  run.model = panel.model;
  run.setting.context = context_of(panel, name);
  run.setting.state.gradients_in_fp32 = false;
  run.setting.fused_backward = megatron;
  run.hardware = hardware;
  run.split = kSplit;
  run.schedule = schedule;
  run.devices = panel.devices;
  run.chunks = chunks_of(panel, name);
  run.microbatches = panel.microbatches;
  run.sync = megatron ? OptimizerSync::kAllReduce : OptimizerSync::kPostValidation;
  run.plan_as_if_equal = !megatron;
  return run;
}

// Between iteration time and MFU in percent, either way.
double converted(const Panel& panel, double value) {
  const double flops = 1.0 * panel.microbatches * panel.micro_batch *
                       model_flops(panel.model, panel.seq, false).value();
  return 100 * flops / panel.devices / kPeakFlops / value;
}

// The factor on compute seconds with which 1F1B is as fast as published; 1 without such a point.
double factor_of(const Panel& panel, const Hardware& hardware) {
  for (const Point& point : panel.points) {
    if (point.name != &kNames.front()) continue;
    TimedRun run = timed_run(panel, *point.name, hardware);
    return fitted_factor(Seconds(converted(panel, point.mfu)), [&run](double factor) {
      run.compute_factor = factor;
      return iteration_seconds(run);
    });
  }
  return 1;
}

MeasuredRun measured_run(const Panel& panel, const Name& name) {
  MeasuredRun run;
  run.model = panel.model;
  run.context = context_of(panel, name);
  run.state.gradients_in_fp32 = false;
  run.split = kSplit;
  run.schedule = name.schedule;
  run.devices = panel.devices;
  run.chunks = chunks_of(panel, name);
  run.microbatches = panel.microbatches;
  return run;
}

Cell cell_of(const Panel& panel, const Point& point) {
  Cell cell;
  cell.cell = fmt::format("{} p={} m={} b={} {}", panel.label, panel.devices, panel.microbatches,
                          panel.micro_batch, point.name->paper);
  cell.digits = 1;
  cell.relative = true;
  return cell;
}

void simulate(Cell& cell, const std::function<double()>& value) {
  try {
    cell.simulated = value();
  } catch (const InfeasibleError& error) {
    cell.note = std::string("not modelled: ") + error.what();
    cell.must_agree = false;
  }
}

void compare_panel(std::vector<Cell>& cells, const Panel& panel, const Hardware& hardware) {
  const double factor = factor_of(panel, hardware);
  for (const Point& point : panel.points) {
    Cell cell = cell_of(panel, point);
    const bool fitted = point.name == &kNames.front();
    cell.table = fitted ? "Figure 7 MFU, fitted" : "Figure 7 MFU";
    cell.cell += ", MFU %";
    cell.published = point.mfu;
    cell.note = fmt::format("factor {:.3f}", factor);
    cell.within = fitted ? 0 : 3;
    cell.must_agree = !fitted;
    simulate(cell, [&] {
      TimedRun run = timed_run(panel, *point.name, hardware);
      run.compute_factor = factor;
      return converted(panel, iteration_seconds(run).value());
    });
    cells.push_back(cell);
  }
  for (const Point& point : panel.points) {
    Cell cell = cell_of(panel, point);
    cell.table = "Figure 7 activation memory";
    cell.cell += ", GiB";
    cell.published = point.gigabytes;
    if (point.name->recompute) {
      // Inputs of layers and one stage made again are 2 GiB; what more it held is not known.
      cell.table += ", full recomputation";
      cell.note = "listed, not counted: the figure has more than what is recomputed and its inputs";
    } else {
      cell.worst = 0.15;
      cell.within = 1;
      cell.must_agree = true;
    }
    simulate(cell, [&] { return added_at_peak(measured_run(panel, *point.name)) / kGiB; });
    cells.push_back(cell);
  }
}

}  // namespace

void compare_runs(std::vector<Cell>& cells, const YamlValue& panels, const Location& asked) {
  const Hardware hardware = cluster_of_catalog("a100-roce", asked);
  for (const YamlValue& panel : panels.list()) compare_panel(cells, read_panel(panel), hardware);
}

}  // namespace pipesim::controllable_memory
