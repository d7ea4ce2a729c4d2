#include <array>
#include <pipesim/simulate.h>
#include <string_view>

#include "library/errors.h"
#include "library/metrics.h"
#include "library/read_scenario.h"
#include "library/simulations.h"
#include "library/task_table.h"
#include "library/within.h"
#include "sim/report/svg/svg.h"

namespace pipesim {
namespace {

constexpr std::array<std::string_view, 7> kTaskNames{
    "compute", "transfer", "collective", "optimizer", "barrier", "copy_out", "copy_in"};

api::Device public_device(const DeviceReport& device, bool knows_bytes) {
  api::Device made{.device = device.device,
                   .busy_seconds = device.busy.value(),
                   .passes_seconds = device.passes.value(),
                   .recompute_seconds = device.recompute.value(),
                   .span_seconds = device.span.value(),
                   .idle_seconds = device.idle.value(),
                   .peak_activation_bytes = {},
                   .peak_memory_bytes = {},
                   .energy_joules = device.energy_joules};
  if (knows_bytes) made.peak_activation_bytes = device.peak_activation.value();
  if (const auto peak = device.peak_memory()) made.peak_memory_bytes = peak->value();
  return made;
}

api::Result public_result(const std::shared_ptr<Simulations>& all, size_t index) {
  const auto& [made, numbers, whole] = all->at(index);
  const bool knows_bytes = knows_memory(*made.scenario);
  const auto [schedule, options, recompute, offload, limit] = columns_of(made.choice);
  api::Result result{.label = made.label,
                     .schedule = schedule,
                     .options = options,
                     .recompute = recompute,
                     .offload = offload,
                     .memory_limit = limit,
                     .headline = headline(made, numbers, knows_bytes),
                     .metrics = public_metrics(metrics_of(*made.scenario, numbers)),
                     .tasks = numbers.report.tasks,
                     .devices = {},
                     .simulations = all,
                     .index = index};
  for (const DeviceReport& device : numbers.report.devices) {
    result.devices.push_back(public_device(device, knows_bytes));
  }
  return result;
}

}  // namespace

namespace api {

Comparison simulate(const Scenario& scenario, const Watch& watch) {
  return watched(watch, [&] {
    const auto& read = scenario.read().scenario();
    const auto all = std::make_shared<Simulations>();
    all->run(read, stop_of(watch), [&, done = size_t{0}]() mutable {
      if (watch.progress) watch.progress(++done, read->schedules.size());
    });
    check_stop();
    Comparison comparison{.results = {}, .refused = {}, .simulations = all};
    for (size_t i = 0; i < all->size(); ++i) comparison.results.push_back(public_result(all, i));
    for (const RefusedSchedule& each : all->refused()) {
      comparison.refused.push_back({each.label, each.reason});
    }
    return comparison;
  });
}

std::vector<std::vector<std::string>> Result::passes() const {
  return in_public([this] { return passes_of(*simulations->at(index).numbers.program); });
}

std::vector<Task> Result::timeline() const {
  return in_public([this] {
    const SharedAnswer whole = simulations->answer(index);
    const TaskGraph& graph = *whole->result.graph;
    const Timeline& times = whole->result.timeline;
    const TaskTable table(graph);
    std::vector<Task> tasks;
    tasks.reserve(graph.size());
    for (TaskId task = 0; task < graph.size(); ++task) {
      tasks.push_back(
          {.name = graph.name(task),
           .kind = std::string(kTaskNames.at(table.kind[task])),
           .pass = std::string(to_text(static_cast<pipesim::PassKind>(table.pass[task]))),
           .device = table.device[task],
           .receiver = table.receiver[task],
           .stage = table.stage[task],
           .microbatch = table.microbatch[task],
           .iteration = table.iteration[task],
           .start_seconds = times.start[task],
           .end_seconds = times.end[task]});
    }
    return tasks;
  });
}

std::map<std::string, double> Result::idle_seconds_by_cause(std::size_t device) const {
  return in_public([&] {
    within("device", device, Range<std::size_t>{0, devices.size() - 1});
    const auto& idle = simulations->answer(index)->result.report.devices[device].idle_by_cause;
    std::map<std::string, double> seconds;
    for (size_t cause = 0; cause < kIdleCauseNames.size(); ++cause) {
      seconds.emplace(kIdleCauseNames[cause], idle[cause].value());
    }
    return seconds;
  });
}

std::string Result::json() const {
  return in_public([this] { return json_of(*simulations->answer(index)); });
}

std::string Result::svg() const {
  return in_public([this] { return svg_of(*simulations->answer(index)); });
}

std::string Comparison::json() const {
  return in_public([this] { return simulations->json(); });
}

std::string Comparison::text() const {
  return in_public([this] { return simulations->table(); });
}

}  // namespace api
}  // namespace pipesim
