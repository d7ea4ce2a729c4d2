#include "sim/report/text/table.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <vector>

#include "sim/core/text.h"
#include "sim/graph/critical_path.h"
#include "sim/metrics/memory_curve.h"
#include "sim/report/text/aligned.h"
#include "sim/report/text/csv.h"
#include "sim/report/text/metric_row.h"

namespace pipesim {
namespace {

std::string percent(double rate) { return fmt::format("{:.2f}%", 100 * rate); }

// Whether a schedule fits a GPU's memory, and what would make it; nothing where it does.
std::string fit_line(const Scenario& scenario, size_t choice, const Simulation& simulation) {
  const Fit& fit = *simulation.fit;
  if (fit.fits) return "";
  return fmt::format(
      "{}: does not fit in {}; nearest change: {}\n", label_of(scenario.schedules[choice]),
      human(*scenario.modelled->capacity),
      fit.change ? fmt::format("{} ({})", fit.change->words, human(fit.change->peak)) : "none");
}

// What the fullest node keeps of offloaded activations, and how much less of it would fit.
std::string host_line(const Scenario& scenario, size_t choice, const HostMemory& host) {
  const std::string name = label_of(scenario.schedules[choice]);
  if (!host.node) return "";
  const std::string kept = fmt::format("{}: {} on the host of a node", name, human(*host.node));
  if (!host.capacity) return kept + "\n";
  if (host.fits()) return fmt::format("{}, which has {}\n", kept, human(*host.capacity));
  const std::string nearest =
      host.nearest ? fmt::format("{} with offload: {{{}}} ({})", host.nearest->name,
                                 scope_text(*host.nearest->offload), human(host.then))
                   : "no offload";
  return fmt::format("{}, which does not fit in its {}; nearest that fits: {}\n", kept,
                     human(*host.capacity), nearest);
}

}  // namespace

std::string comparison_table(const Scenario& scenario, std::span<const Simulation> simulations) {
  std::vector<Row> rows{{"schedule", "iteration", "bubble rate", "of makespan", "over ideal",
                         "peak activation", "samples/s/GPU"}};
  if (scenario.modelled) rows.front().insert(rows.front().end() - 1, "peak memory");
  const bool tokens = scenario.batch.micro_batch_size && scenario.batch.seq_length;
  if (tokens) rows.front().emplace_back("tokens/s/GPU");
  const bool utilized = scenario.modelled && scenario.hardware;
  if (utilized) rows.front().emplace_back("MFU");
  const bool spread = std::ranges::any_of(
      simulations, [](const Simulation& each) { return each.report.ensemble.has_value(); });
  if (spread) rows.front().insert(rows.front().begin() + 2, {"median", "p95"});
  for (size_t i = 0; i < simulations.size(); ++i) {
    const Report& report = simulations[i].report;
    const auto& rate = simulations[i].throughput;
    Row& row = rows.emplace_back(Row{label_of(scenario.schedules[i]), human(report.iteration)});
    if (spread) {
      const auto& ensemble = report.ensemble;
      row.insert(row.end(),
                 {ensemble ? human(ensemble->p50) : "-", ensemble ? human(ensemble->p95) : "-"});
    }
    row.insert(row.end(), {percent(report.bubble_rate), percent(report.bubble_rate_makespan),
                           percent(report.bubble_over_ideal),
                           knows_memory(scenario) ? human(report.peak_activation) : "-"});
    if (report.peak_memory) row.push_back(human(*report.peak_memory));
    row.push_back(rate ? fmt::format("{:.3f}", rate->samples_per_second_per_gpu) : "-");
    const MetricRow metrics = metrics_of(scenario, simulations[i]);
    if (tokens) row.push_back(fmt::format("{:.0f}", *metric(metrics, "tokens_per_second_per_gpu")));
    if (utilized) {
      const auto mfu = metric(metrics, "mfu");
      row.push_back(mfu ? percent(*mfu) : "-");
    }
  }
  std::string text = aligned(rows);
  for (size_t i = 0; i < simulations.size(); ++i) {
    const auto& ensemble = simulations[i].report.ensemble;
    if (!ensemble) continue;
    text += fmt::format(
        "{}: mean of {} runs from seed {}, jitter {:g}; iteration {} +- {}, p05 {}, p95 {}\n",
        label_of(scenario.schedules[i]), ensemble->runs, ensemble->seed, ensemble->jitter,
        human(ensemble->mean), human(ensemble->stddev), human(ensemble->p05), human(ensemble->p95));
  }
  for (size_t i = 0; i < simulations.size(); ++i) {
    if (simulations[i].fit) text += fit_line(scenario, i, simulations[i]);
    const auto& offload = scenario.schedules[i].offload;
    if (offload && offload->automatic) {
      text += fmt::format("{}: offload auto: {}\n", scenario.schedules[i].name, offload->reason);
    }
    if (simulations[i].host && knows_memory(scenario))
      text += host_line(scenario, i, *simulations[i].host);
  }
  return text;
}

std::string device_table(const Scenario& scenario, const Simulation& simulation) {
  Row header{"device", "busy"};
  const bool recompute =
      std::ranges::any_of(simulation.report.devices,
                          [](const DeviceReport& device) { return device.recompute > Seconds(0); });
  if (recompute) header.emplace_back("recompute");
  header.emplace_back("idle");
  for (const auto name : kIdleCauseNames) {
    header.emplace_back(name);
    std::ranges::replace(header.back(), '_', '-');
  }
  if (knows_memory(scenario)) header.insert(header.end(), {"peak activation", "at", "with"});
  if (scenario.modelled) header.insert(header.end(), {"beside it", "peak memory"});
  const bool offloads = simulation.host && knows_memory(scenario);
  if (offloads) header.emplace_back("on the host");
  const bool energy = simulation.report.devices.front().energy_joules.has_value();
  if (energy) header.emplace_back("energy");
  std::vector<Row> rows{header};
  for (const DeviceReport& device : simulation.report.devices) {
    Row row{fmt::format("{}", device.device), human(device.busy)};
    if (recompute) row.push_back(human(device.recompute));
    row.push_back(human(device.idle));
    for (const Seconds idle : device.idle_by_cause) row.push_back(human(idle));
    if (knows_memory(scenario)) {
      row.insert(row.end(),
                 {human(device.peak_activation), human(device.peak_time), device.peak_pass});
    }
    if (device.memory) {
      row.insert(row.end(), {human(device.memory->total()), human(*device.peak_memory())});
    }
    if (offloads) {
      row.push_back(human(simulation.host->devices[device.device]));
    }
    if (energy) row.push_back(fmt::format("{:.1f} J", *device.energy_joules));
    rows.push_back(std::move(row));
  }
  return aligned(rows);
}

std::string comparison_csv(const Scenario& scenario, std::span<const Simulation> simulations) {
  std::string text = "schedule" + metric_header() + '\n';
  for (size_t i = 0; i < simulations.size(); ++i) {
    text += csv_field(label_of(scenario.schedules[i])) +
            metric_fields(metrics_of(scenario, simulations[i])) + '\n';
  }
  return text;
}

std::string memory_csv(const Scenario& scenario, std::span<const Simulation> simulations) {
  std::string text = "schedule,device,seconds,category,bytes\n";
  for (size_t i = 0; i < simulations.size(); ++i) {
    const TaskGraph& graph = *simulations[i].graph;
    const auto curves = memory_curves(graph, simulations[i].timeline, graph.iterations() / 2);
    for (size_t device = 0; device < curves.size(); ++device) {
      for (const MemoryLevel& level : curves[device]) {
        text += fmt::format("{},{},{},{},{}\n", csv_field(label_of(scenario.schedules[i])), device,
                            level.seconds, kActivationsName, level.bytes);
      }
    }
  }
  return text;
}

std::string critical_path_line(const Simulation& simulation) {
  const TaskGraph& graph = *simulation.graph;
  const Timeline& timeline = simulation.timeline;
  std::array<int, 3> tasks{};
  std::array<double, 3> seconds{};
  for (const TaskId task : critical_path(graph, timeline)) {
    const TaskKind kind = graph.task_class(task).kind;
    const size_t group = kind == TaskKind::kTransfer ? 1 : is_beside_compute(kind) ? 2 : 0;
    ++tasks[group];
    seconds[group] += timeline.end[task] - timeline.start[task];
  }
  std::string line =
      fmt::format("critical path: {} passes and steps of {}, {} messages of {}", tasks[0],
                  human(Seconds(seconds[0])), tasks[1], human(Seconds(seconds[1])));
  if (tasks[2] > 0) {
    line += fmt::format(", {} collectives and copies of {}", tasks[2], human(Seconds(seconds[2])));
  }
  return line + '\n';
}

}  // namespace pipesim
