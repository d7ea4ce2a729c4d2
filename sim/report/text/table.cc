#include "sim/report/text/table.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <vector>

#include "sim/core/text.h"
#include "sim/graph/critical_path.h"
#include "sim/metrics/memory_curve.h"
#include "sim/report/metrics/row.h"
#include "sim/report/text/aligned.h"
#include "sim/report/text/band.h"
#include "sim/report/text/curves.h"
#include "sim/report/text/utilization.h"

namespace pipesim {
namespace {

// Where a schedule fits a GPU's memory tightly or not at all: what would make it fit.
std::string fit_line(const Answer& answer) {
  if (answer.result.fits.value_or(MemoryFit::kYes) == MemoryFit::kYes) return "";
  const auto& change = answer.advice.change;
  if (answer.result.fits == MemoryFit::kTight) {
    const Modelled& modelled = *answer.made.scenario->modelled;
    const Bytes peak = *answer.result.report.peak_memory;
    return fmt::format("{}: tight: its peak may come to {} to {}, and a GPU has {}\n",
                       answer.made.label, human(modelled.band.low * peak),
                       human(modelled.band.high * peak), human(*modelled.capacity));
  }
  return fmt::format("{}: does not fit in {}; nearest change: {}\n", answer.made.label,
                     human(*answer.made.scenario->modelled->capacity),
                     change ? fmt::format("{} ({})", change->words, human(change->peak)) : "none");
}

// Activations and optimizer states on the fullest node, and how much less of the schedule's offload
// would fit.
std::string host_line(const Answer& answer) {
  if (!answer.result.host || !answer.result.host->node) return "";
  const HostMemory& host = *answer.result.host;
  const auto& plan = answer.advice.offload;
  std::string kept =
      fmt::format("{}: {} on the host of a node", answer.made.label, human(*host.node));
  if (host.node_optimizer > Bytes(0)) {
    kept += fmt::format(" (optimizer states {})", human(host.node_optimizer));
  }
  if (!host.capacity) return kept + "\n";
  if (host.fits()) return fmt::format("{}, which has {}\n", kept, human(*host.capacity));
  kept += fmt::format(", which does not fit in its {}", human(*host.capacity));
  if (answer.result.program->copies() == nullptr) return kept + "\n";
  const std::string nearest =
      plan ? fmt::format("{} with offload: {{{}}} ({})", plan->made.choice.name,
                         scope_text(*plan->made.choice.offload), human(plan->node))
           : "no offload";
  return fmt::format("{}; nearest that fits: {}\n", kept, nearest);
}

}  // namespace

namespace {

// Which columns the schedules of a scenario have.
struct Columns {
  explicit Columns(std::span<const Answer> answers) {
    const Scenario& scenario = *answers.front().made.scenario;
    unequal = std::ranges::any_of(
        answers, [](const Answer& each) { return each.result.report.unequal_work(); });
    bytes = knows_memory(scenario);
    model = scenario.modelled.has_value();
    tokens = scenario.batch.micro_batch_size && scenario.batch.seq_length;
    utilized = scenario.modelled && scenario.hardware;
    spread = std::ranges::any_of(
        answers, [](const Answer& each) { return each.result.report.ensemble.has_value(); });
  }

  bool unequal;  // somewhere the device with the largest span is not the busiest
  bool bytes;
  bool model;
  bool tokens;
  bool utilized;
  bool spread;
};

std::string_view shown_mfu(const MetricRow& metrics) {
  const double full = metric(metrics, "mfu").value_or(0);
  return shows_causal(full, metric(metrics, "mfu_causal").value_or(full)) ? "mfu_causal" : "mfu";
}

std::string impossible_rate_of(const Answer& answer) {
  const Scenario& scenario = *answer.made.scenario;
  const auto& rate = answer.result.throughput;
  if (!rate || !rate->mfu) return "";
  const Precision precision = scenario.modelled->context.precision;
  return impossible_rate(answer.made.label, *rate->mfu, *rate->mfu_causal,
                         scenario.hardware->gpu.peak[precision].value());
}

// The metrics in the order of the columns.
std::vector<std::string_view> metrics_in(const Columns& columns, const Answer& first) {
  std::vector<std::string_view> names{"iteration_seconds"};
  if (columns.spread) names.insert(names.end(), {"iteration_p50_seconds", "iteration_p95_seconds"});
  // The papers' rate is that of one device, which says little where devices differ.
  names.emplace_back(columns.unequal ? "bubble_rate_makespan" : "bubble_rate");
  names.emplace_back("peak_activation_bytes");
  if (columns.model) names.emplace_back("peak_memory_bytes");
  names.emplace_back("samples_per_second_per_gpu");
  if (columns.tokens) names.emplace_back("tokens_per_second_per_gpu");
  if (columns.utilized) {
    names.push_back(shown_mfu(metrics_of(*first.made.scenario, first.result)));
  }
  return names;
}

// Metrics that another column says in other words, those to leave out first in front.
struct Spare {
  std::string_view name;
  std::string_view beside;
};
constexpr std::array kSpare{Spare{"samples_per_second_per_gpu", "tokens_per_second_per_gpu"},
                            Spare{"peak_activation_bytes", "peak_memory_bytes"},
                            Spare{"iteration_p50_seconds", "iteration_p95_seconds"}};

Row header_of(const std::vector<std::string_view>& names) {
  Row header{"schedule"};
  for (const std::string_view name : names) header.emplace_back(metric_named(name).label);
  return header;
}

Row row_of(const Answer& answer, const std::vector<std::string_view>& names) {
  const Scenario& scenario = *answer.made.scenario;
  const MetricRow metrics = metrics_of(scenario, answer.result);
  const auto digits =
      scenario.roofline ? std::optional(compared_digits(scenario.band)) : std::nullopt;
  Row row{answer.made.label};
  for (const std::string_view name : names) {
    row.push_back(metric_text(metric_named(name), metric(metrics, name), digits));
  }
  return row;
}

// Within the columns of a terminal, where leaving spare metrics out is enough.
std::string table_in(std::span<const Answer> answers, std::vector<std::string_view> names) {
  const auto lines = [&] {
    std::vector<Row> rows{header_of(names)};
    for (const Answer& answer : answers) rows.push_back(row_of(answer, names));
    return aligned(rows);
  };
  std::string text = lines();
  for (const Spare& spare : kSpare) {
    if (widest_line(text) <= kTableColumns) break;
    if (std::ranges::count(names, spare.beside) == 0) continue;
    std::erase(names, spare.name);
    text = lines();
  }
  return text;
}

std::string ensemble_line(const Answer& answer) {
  const auto& ensemble = answer.result.report.ensemble;
  if (!ensemble) return "";
  const auto& unequal = answer.made.scenario->batch.unequal;
  if (unequal && unequal->draw.runs > 1) {
    return fmt::format(
        "{}: mean of {} draws of its microbatches from seed {}; of draws alone +- {}, "
        "p05 {}, p95 {}\n",
        answer.made.label, ensemble->runs, ensemble->seed, human(ensemble->stddev),
        human(ensemble->p05), human(ensemble->p95));
  }
  return fmt::format(
      "{}: mean of {} runs from seed {}, jitter {:g}; of jitter alone +- {}, p05 {}, p95 {}\n",
      answer.made.label, ensemble->runs, ensemble->seed, ensemble->jitter, human(ensemble->stddev),
      human(ensemble->p05), human(ensemble->p95));
}

struct Spread {
  size_t count;
  double least, most, mean;
};

Spread spread_of(const std::vector<double>& sizes) {
  const auto [least, most] = std::ranges::minmax(sizes);
  const double sum = std::accumulate(sizes.begin(), sizes.end(), 0.0);
  return {sizes.size(), least, most, sum / static_cast<double>(sizes.size())};
}

// How microbatches differ; nothing where they are alike.
std::string microbatches_text(const Scenario& scenario) {
  if (!scenario.batch.unequal) return "";
  const UnequalBatch& unequal = *scenario.batch.unequal;
  std::string text;
  if (!unequal.factors.empty()) {
    const Spread of = spread_of(unequal.factors);
    text +=
        fmt::format("{} microbatches that cost {:.3g} to {:.3g} times as much, on average {:.3g}\n",
                    of.count, of.least, of.most, of.mean);
  }
  if (unequal.lengths()) {
    std::vector<double> tokens;
    for (const Documents& documents : unequal.documents) {
      tokens.push_back(std::accumulate(documents.begin(), documents.end(), 0.0));
    }
    const Spread of = spread_of(tokens);
    text += fmt::format(
        "{} microbatches of {:.0f} to {:.0f} tokens, on average {:.0f}; packing: "
        "{}\n",
        of.count, of.least, of.most, of.mean, kPackingNames[static_cast<size_t>(unequal.packing)]);
  }
  if (!unequal.images.empty()) {
    const Spread of = spread_of({unequal.images.begin(), unequal.images.end()});
    text += fmt::format("{} microbatches of {:.0f} to {:.0f} images, on average {:.3g}\n", of.count,
                        of.least, of.most, of.mean);
  }
  return text;
}

// The fastest schedule's band; the others' are as wide, as shares.
std::string band_of_fastest(std::span<const Answer> answers) {
  const Answer& fastest = *std::ranges::min_element(
      answers, {}, [](const Answer& each) { return each.result.report.iteration; });
  const Scenario& scenario = *fastest.made.scenario;
  const MetricRow metrics = metrics_of(scenario, fastest.result);
  return band_line(scenario, fastest.made.label,
                   {.iteration = fastest.result.report.iteration,
                    .tokens_per_second_per_gpu = metric(metrics, "tokens_per_second_per_gpu"),
                    .mfu = metric(metrics, shown_mfu(metrics)),
                    .causal = shown_mfu(metrics) == "mfu_causal"});
}

}  // namespace

std::string comparison_table(std::span<const Answer> answers) {
  const Columns columns(answers);
  std::string text =
      table_in(answers, metrics_in(columns, answers.front())) + band_of_fastest(answers);
  text += curves_text(*answers.front().made.scenario);
  text += microbatches_text(*answers.front().made.scenario);
  for (const Answer& answer : answers) text += impossible_rate_of(answer);
  for (const Answer& answer : answers) text += ensemble_line(answer);
  for (const Answer& answer : answers) {
    text += fit_line(answer);
    const Case& made = answer.made;
    if (!made.offload_reason.empty()) {
      text += fmt::format("{}: offload auto: {}\n", made.choice.name, made.offload_reason);
    }
    if (made.choice.slice_units) {
      text += fmt::format("{}: {} slices of a sequence, in parts of {}: {}\n", made.label,
                          made.choice.slices.size(), *made.choice.slice_units,
                          fmt::join(made.choice.slices, " "));
    }
    if (made.choice.equal_slices) {
      text += fmt::format("{}: slices of equal FLOPs, in tokens: {}\n", made.label,
                          fmt::join(made.choice.slices, " "));
    }
    if (columns.bytes) text += host_line(answer);
  }
  return text;
}

std::string device_table(const Case& made, const Result& result) {
  const Scenario& scenario = *made.scenario;
  Row header{"device", "busy"};
  const bool recompute = std::ranges::any_of(result.report.devices, [](const DeviceReport& device) {
    return device.recompute > Seconds(0);
  });
  if (recompute) header.emplace_back("recompute");
  header.emplace_back("idle");
  for (const auto name : kIdleCauseNames) {
    header.emplace_back(name);
    std::ranges::replace(header.back(), '_', '-');
  }
  if (knows_memory(scenario)) header.insert(header.end(), {"peak activation", "at", "with"});
  if (scenario.modelled) header.insert(header.end(), {"beside it", "peak memory"});
  const bool offloads = result.host && knows_memory(scenario);
  if (offloads) header.emplace_back("on the host");
  const bool energy = result.report.devices.front().energy_joules.has_value();
  if (energy) header.emplace_back("energy");
  std::vector<Row> rows{header};
  for (const DeviceReport& device : result.report.devices) {
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
      row.push_back(human(result.host->devices[device.device]));
    }
    if (energy) row.push_back(fmt::format("{:.1f} J", *device.energy_joules));
    rows.push_back(std::move(row));
  }
  return aligned(rows);
}

std::string comparison_csv(std::span<const Answer> answers) {
  std::string text = choice_header() + metric_header() + '\n';
  for (const Answer& answer : answers) {
    text += choice_fields(columns_of(answer.made.choice)) +
            metric_fields(metrics_of(*answer.made.scenario, answer.result)) + '\n';
  }
  return text;
}

std::string memory_csv(std::span<const Answer> answers) {
  std::string text = choice_header() + ",device,seconds,category,bytes\n";
  for (const Answer& answer : answers) {
    const TaskGraph& graph = *answer.result.graph;
    const std::string choice = choice_fields(columns_of(answer.made.choice));
    const auto curves = memory_curves(graph, answer.result.timeline, graph.iterations() / 2);
    for (size_t device = 0; device < curves.size(); ++device) {
      for (const MemoryLevel& level : curves[device]) {
        text += fmt::format("{},{},{},{},{}\n", choice, device, level.seconds, kActivationsName,
                            level.bytes);
      }
    }
  }
  return text;
}

std::string critical_path_line(const Result& result) {
  const TaskGraph& graph = *result.graph;
  const Timeline& timeline = result.timeline;
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
