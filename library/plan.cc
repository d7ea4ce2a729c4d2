#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pipesim/plan.h>

#include "library/errors.h"
#include "library/fields.h"
#include "library/planning.h"
#include "sim/layouts/planned_metrics.h"

namespace pipesim {
namespace {

constexpr auto kLayoutFields = std::to_array<Field<api::Layout>>({
    {"iteration_seconds", &api::Layout::iteration_seconds},
    {"contended_iteration_seconds", &api::Layout::contended_iteration_seconds},
    {"contended_stddev_seconds", &api::Layout::contended_stddev_seconds},
    {"iteration_low_seconds", &api::Layout::iteration_low_seconds},
    {"iteration_high_seconds", &api::Layout::iteration_high_seconds},
    {"tokens_per_second_per_gpu", &api::Layout::tokens_per_second_per_gpu},
    {"mfu", &api::Layout::mfu},
    {"mfu_causal", &api::Layout::mfu_causal},
    {"peak_memory_bytes", &api::Layout::peak_memory_bytes},
    {"peak_memory_low_bytes", &api::Layout::peak_memory_low_bytes},
    {"peak_memory_high_bytes", &api::Layout::peak_memory_high_bytes},
    {"fits", &api::Layout::fits},
    {"headroom_bytes", &api::Layout::headroom_bytes},
    {"host_memory_bytes", &api::Layout::host_memory_bytes},
    {"bubble", &api::Layout::bubble},
    {"days", &api::Layout::days},
    {"gpu_hours", &api::Layout::gpu_hours},
    {"price", &api::Layout::price},
});
static_assert(std::ranges::equal(kLayoutFields, kPlannedMetrics, {}, &Field<api::Layout>::name));

std::vector<std::string> arguments_of(const api::PlanQuestion& asked) {
  const bool starts = asked.model.ends_with(".yaml") || asked.model.ends_with(".yml");
  std::vector<std::string> arguments;
  if (!starts) arguments.emplace_back("--model");
  arguments.push_back(asked.model);
  if (!asked.clusters.empty()) {
    arguments.insert(arguments.end(),
                     {"--cluster", fmt::format("{}", fmt::join(asked.clusters, ","))});
  }
  const auto add = [&arguments](const char* name, long value) {
    if (value != 0) arguments.insert(arguments.end(), {name, fmt::format("{}", value)});
  };
  add("--gpus", asked.gpus);
  add("--global-batch-size", asked.global_batch_size);
  add("--seq-length", asked.seq_length);
  arguments.insert(arguments.end(), asked.options.begin(), asked.options.end());
  for (const auto& [key, value] : asked.changes) {
    arguments.push_back(fmt::format("{}={}", key, value));
  }
  return arguments;
}

api::Layout public_layout(const ClusterPlan& plan, const Planned& planned,
                          std::optional<double> tokens) {
  const PlanPoint& point = planned.point;
  api::Layout made;
  made.cluster = name_of(plan);
  made.schedule = point.schedule->name;
  made.label = label_of(point);
  made.tensor_model_parallel_size = point.tensor;
  made.context_parallel_size = point.context;
  made.expert_model_parallel_size = point.expert;
  made.expert_tensor_parallel_size = point.expert_tensor;
  made.pipeline_model_parallel_size = point.pipeline;
  made.virtual_pipeline_model_parallel_size = point.chunks;
  made.data_parallel_size = point.data;
  made.micro_batch_size = point.micro_batch;
  made.recompute = to_text(point.recompute);
  made.idea = planned.idea;
  made.scenario = plan_scenario(plan, planned);
  for (const Framework each : planned.runs_on) made.runs_on.emplace_back(to_text(each));
  set_all(made, kLayoutFields,
          planned_metrics(question_of(plan, planned), planned, {tokens, plan.price}));
  return made;
}

}  // namespace

api::Plan api::plan(const PlanQuestion& question, const Watch& watch) {
  return watched(watch, [&] {
    Planning planning(arguments_of(question));
    for (size_t i = 0; i < planning.size(); ++i) {
      planning.search(i, stop_of(watch), [&watch](const PlanProgress& now) {
        if (watch.progress) watch.progress(now.decided, now.points);
      });
      check_stop();
    }
    planning.check_found();
    Plan made{.layouts = {},
              .json = planning.json(),
              .csv = plan_csv(planning.plans(), planning.tokens()),
              .text = planning.text()};
    for (const ClusterPlan& plan : planning.plans()) {
      for (const Planned& each : plan.result.best) {
        made.layouts.push_back(public_layout(plan, each, planning.tokens()));
      }
    }
    return made;
  });
}

}  // namespace pipesim
