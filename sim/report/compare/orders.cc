#include "sim/report/compare/orders.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <tuple>

#include "sim/core/error.h"
#include "sim/graph/critical_path.h"
#include "sim/read/band.h"
#include "sim/report/drawing/drawing.h"

namespace pipesim {
namespace {

// With the slice that it is of, where microbatches are split: "0F5, slice 1 of microbatch 2".
std::string name_at(const Program& program, int device, size_t position) {
  const auto passes = program.passes(device);
  if (position >= passes.size()) return "";
  const Pass& pass = passes[position];
  const auto splits = static_cast<std::uint32_t>(program.shape().splits);
  if (splits == 1) return program.text(device, pass);
  return fmt::format("{}, slice {} of microbatch {}", program.text(device, pass),
                     pass.microbatch % splits, pass.microbatch / splits);
}

std::optional<OrdersPart> part_of(const Result& a, const Result& b, int device) {
  const size_t length =
      std::max(a.program->passes(device).size(), b.program->passes(device).size());
  for (size_t i = 0; i < length; ++i) {
    PlacedPass in_a{name_at(*a.program, device, i), Seconds(0)};
    PlacedPass in_b{name_at(*b.program, device, i), Seconds(0)};
    if (in_a.name != in_b.name) return OrdersPart{i, std::move(in_a), std::move(in_b)};
  }
  return std::nullopt;
}

void set_start(PlacedPass& pass, const Drawing& drawing, int device, size_t position) {
  if (pass.name.empty()) return;
  pass.start = Seconds(drawing.start(drawing.passes(device)[position]));
}

Seconds start_of(const OrdersPart& part) {
  if (part.a.name.empty()) return part.b.start;
  return part.b.name.empty() ? part.a.start : std::min(part.a.start, part.b.start);
}

PathSeconds path_of(const Result& result) {
  const TaskGraph& graph = *result.graph;
  PathSeconds path;
  path.devices.resize(graph.devices());
  for (const TaskId task : critical_path(graph, result.timeline)) {
    const TaskClass& of = graph.task_class(task);
    const Seconds seconds(result.timeline.end[task] - result.timeline.start[task]);
    if (of.kind == TaskKind::kTransfer) {
      path.messages += seconds;
    } else if (of.kind == TaskKind::kCompute || of.kind == TaskKind::kOptimizer) {
      path.devices[of.device] += seconds;
    } else {
      path.others += seconds;
    }
  }
  return path;
}

}  // namespace

Seconds DeviceLoss::sum() const {
  Seconds sum = busy;
  for (const Seconds each : idle) sum += each;
  return sum;
}

Seconds PathSeconds::sum() const {
  Seconds sum = messages + others;
  for (const Seconds each : devices) sum += each;
  return sum;
}

int PathSeconds::most() const {
  return static_cast<int>(std::ranges::max_element(devices) - devices.begin());
}

OrdersCompared compare_orders(const Result& a, const Result& b) {
  if (a.graph->streams() || b.graph->streams()) {
    throw InfeasibleError(
        "iterations that run into each other have no order of their own to compare: pipesim run "
        "sets their seconds side by side");
  }
  OrdersCompared compared;
  const Drawing drawn_a(a);
  const Drawing drawn_b(b);
  for (int d = 0; d < a.program->shape().devices; ++d) {
    auto part = part_of(a, b, d);
    if (part) {
      set_start(part->a, drawn_a, d, part->position);
      set_start(part->b, drawn_b, d, part->position);
      const auto& first = compared.first ? compared.parts[*compared.first] : std::nullopt;
      if (!first || start_of(*part) < start_of(*first)) compared.first = d;
    }
    compared.parts.push_back(std::move(part));
  }
  const auto devices = static_cast<double>(a.report.devices.size());
  for (size_t d = 0; d < a.report.devices.size(); ++d) {
    const DeviceReport& of_a = a.report.devices[d];
    const DeviceReport& of_b = b.report.devices[d];
    DeviceLoss loss{of_b.busy - of_a.busy};
    compared.mean.busy += (1 / devices) * loss.busy;
    for (size_t c = 0; c < kIdleCauseNames.size(); ++c) {
      const auto cause = static_cast<IdleCause>(c);
      loss.idle[cause] = of_b.idle_by_cause[cause] - of_a.idle_by_cause[cause];
      compared.mean.idle[cause] += (1 / devices) * loss.idle[cause];
    }
    compared.losses.push_back(loss);
  }
  compared.path = {path_of(a), path_of(b)};
  return compared;
}

std::vector<IdleCause> causes_in(const OrdersCompared& compared) {
  std::vector<IdleCause> causes;
  for (size_t c = 0; c < kIdleCauseNames.size(); ++c) {
    const auto cause = static_cast<IdleCause>(c);
    const auto moves = [cause](const DeviceLoss& loss) {
      return std::abs(loss.idle[cause].value()) >= 1e-13;  // what human() calls 0
    };
    if (std::ranges::any_of(compared.losses, moves)) causes.push_back(cause);
  }
  return causes;
}

std::optional<DifferenceBand> difference_band_of(const Answer& a, const Answer& b) {
  const Scenario& of_a = *a.made.scenario;
  const Scenario& of_b = *b.made.scenario;
  if (!of_a.roofline || !of_b.roofline) return std::nullopt;
  const auto question = [](const Scenario& of) {
    return std::tuple(of.modelled->model.name, of.hardware->name, of.parallel.tensor,
                      of.parallel.context, of.parallel.data, of.batch.microbatches,
                      of.batch.micro_batch_size, of.batch.seq_length);
  };
  return question(of_a) == question(of_b) ? read_difference_band(of_a) : std::nullopt;
}

}  // namespace pipesim
