// Figure 7: throughput and activation memory of a model under eight schedules.
#include <algorithm>
#include <fmt/format.h>

#include "models/layer_work.h"
#include "sim/anchor/fitted_factor.h"
#include "sim/read/model.h"
#include "validate/papers/controllable_memory/controllable_memory.h"
#include "validate/papers/controllable_memory/names.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/paper_keys.h"
#include "validate/papers/peak_memory.h"
#include "validate/papers/simulate_cell.h"
#include "validate/papers/timed_run.h"

namespace pipesim::controllable_memory {
namespace {

// Not printed with the figure. The passes that the paper times take as long as those of 1024 tokens
// do, and as long as no GPU could with twice as many.
constexpr int kSequence = 1024;
constexpr Bytes kCapacity = 80.0 * kGiB;

struct Point {
  const Name* name = nullptr;
  Printed mfu;
  Printed gigabytes;
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

int count(YamlMap& map, const char* key) {
  return static_cast<int>(map.require(key, "a whole number").integer(1, 1 << 20));
}

// MFU and GB, each of which may be OOM, or that word for both.
Point read_point(const Name& name, const YamlValue& value) {
  if (!value.is_list()) {
    const Printed both = read_printed(value, 0);
    if (both.kind == Printed::Kind::kNumber) value.fail("expected MFU and GB");
    return {&name, both, both};
  }
  const auto numbers = value.list();
  if (numbers.size() != 2) value.fail("expected MFU and GB");
  return {&name, read_printed(numbers[0], 100), read_printed(numbers[1], 1e6)};
}

Panel read_panel(const YamlValue& value) {
  YamlMap map(value);
  Panel panel;
  const YamlValue model = map.require("model", "9.6B, ...");
  panel.label = model.text();
  panel.model = model_of(model);
  panel.devices = count(map, "p");
  panel.microbatches = count(map, "m");
  panel.micro_batch = count(map, "mb");
  if (const auto seq = map.find("seq")) panel.seq = static_cast<int>(seq->integer(1, 1 << 20));
  panel.model.max_position_embeddings = panel.seq;
  YamlMap points(map.require("points", "MFU and GB by schedule"));
  for (const Name& each : kNames) {
    std::string key = each.paper;  // as keys are read
    std::ranges::replace(key, '-', '_');
    const auto point = points.find(key);
    if (!point) continue;
    panel.points.push_back(read_point(each, *point));
  }
  finish_row(points);
  finish_row(map);
  return panel;
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

// The same as for Zero Bubble's runs, whose authors and code they share
// (zero_bubble/throughput.cc).
TimedRun timed_run(const Panel& panel, const Name& name, const Hardware& hardware) {
  const std::string schedule = name.schedule;
  const bool megatron = schedule.ends_with("1f1b");
  TimedRun run;
  run.model = panel.model;
  run.setting.context = context_of(panel, name);
  run.setting.state.gradients_in_fp32 = false;
  run.setting.fused_backward = megatron;
  run.setting.software = software_of_catalog("megatron-deepspeed-2023");
  run.hardware = hardware;
  run.split = kSplit;
  run.schedule = schedule;
  run.devices = panel.devices;
  run.chunks = chunks_of(name, panel.model, panel.devices);
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

// The factor on compute seconds with which 1F1B is as fast as published; 1 where it is not fitted.
struct Fit {
  double factor = 1;
  bool fitted = false;
  std::string note;
};

Fit fit(const Panel& panel, const Hardware& hardware) {
  for (const Point& point : panel.points) {
    if (point.name != &kNames.front() || point.mfu.kind != Printed::Kind::kNumber) continue;
    try {
      TimedRun run = timed_run(panel, *point.name, hardware);
      const Seconds measured(converted(panel, point.mfu.number));
      const double factor = fitted_factor(measured, [&run](double each) {
        run.compute_factor = each;
        return iteration_seconds(run);
      });
      return {factor, true, fmt::format("factor {:.3f}", factor)};
    } catch (const InfeasibleError& error) {
      return {1, false, fmt::format("1F1B cannot be fitted ({}): factor 1", error.what())};
    }
  }
  return {1, false, "no 1F1B point to fit a factor to: factor 1"};
}

MeasuredRun measured_run(const Panel& panel, const Name& name) {
  MeasuredRun run;
  run.model = panel.model;
  run.context = context_of(panel, name);
  run.state.gradients_in_fp32 = false;
  run.split = kSplit;
  run.schedule = name.schedule;
  run.devices = panel.devices;
  run.chunks = chunks_of(name, panel.model, panel.devices);
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

void compare_mfu(std::vector<Cell>& cells, const Panel& panel, const Point& point, const Fit& fit,
                 const Hardware& hardware) {
  if (point.mfu.kind != Printed::Kind::kNumber) return;
  Cell cell = cell_of(panel, point);
  const bool fitted = fit.fitted && point.name == &kNames.front();
  cell.table = fitted ? "Figure 7 MFU, fitted" : "Figure 7 MFU";
  cell.cell += ", MFU %";
  cell.published = point.mfu.number;
  cell.note = fit.note;
  cell.within = fitted ? 0 : 3;
  cell.must_agree = fit.fitted && !fitted;
  simulate(cell, [&] {
    TimedRun run = timed_run(panel, *point.name, hardware);
    run.compute_factor = fit.factor;
    return converted(panel, iteration_seconds(run).value());
  });
  cells.push_back(cell);
}

// Nothing fitted to any cell of the figure.
void compare_first_principles(std::vector<Cell>& cells, const Panel& panel, const Point& point,
                              const Hardware& hardware) {
  if (point.mfu.kind != Printed::Kind::kNumber) return;
  Cell cell = cell_of(panel, point);
  cell.table = "Figure 7 MFU, first principles";
  cell.run = {panel.label,
              fmt::format("p={} m={} b={}", panel.devices, panel.microbatches, panel.micro_batch),
              point.name->paper};
  cell.cell += ", MFU %";
  cell.published = point.mfu.number;
  simulate(cell, [&] {
    return converted(panel, iteration_seconds(timed_run(panel, *point.name, hardware)).value());
  });
  cells.push_back(cell);
}

// Compares which runs ran out of memory: one with a number did not.
void compare_out_of_memory(std::vector<Cell>& cells, const Panel& panel, const Point& point) {
  if (point.gigabytes.kind == Printed::Kind::kNothing) return;
  Cell cell = cell_of(panel, point);
  cell.table = "Figure 7 out of memory";
  cell.published = point.gigabytes.kind == Printed::Kind::kOutOfMemory ? 1 : 0;
  cell.digits = 0;
  cell.relative = false;
  simulate(cell, [&] {
    const Bytes peak = allocated_at_peak(measured_run(panel, *point.name)) + kFrameworkOverhead;
    return peak > kCapacity ? 1.0 : 0.0;
  });
  cells.push_back(cell);
}

void compare_memory(std::vector<Cell>& cells, const Panel& panel, const Point& point) {
  if (point.gigabytes.kind != Printed::Kind::kNumber) return;
  Cell cell = cell_of(panel, point);
  cell.table = "Figure 7 activation memory";
  cell.cell += ", GiB";
  cell.published = point.gigabytes.number;
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

void compare_panel(std::vector<Cell>& cells, const Panel& panel, const Hardware& hardware) {
  const Fit of_panel = fit(panel, hardware);
  for (const Point& point : panel.points) compare_mfu(cells, panel, point, of_panel, hardware);
  for (const Point& point : panel.points) compare_first_principles(cells, panel, point, hardware);
  for (const Point& point : panel.points) compare_memory(cells, panel, point);
  for (const Point& point : panel.points) compare_out_of_memory(cells, panel, point);
}

}  // namespace

void compare_runs(std::vector<Cell>& cells, const YamlValue& panels, const Location& asked) {
  const Hardware hardware = cluster_of_catalog("a100-roce", asked);
  std::vector<Panel> all;
  for (const YamlValue& panel : panels.list()) all.push_back(read_panel(panel));
  for (const Panel& panel : all) compare_panel(cells, panel, hardware);
}

}  // namespace pipesim::controllable_memory
