#include "sim/layouts/question.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "sim/core/text.h"
#include "sim/read/modelled.h"
#include "sim/read/scenario.h"
#include "sim/scenario/modelled.h"

namespace pipesim {
namespace {

// A layout must be given to be read; it is not looked at afterwards.
constexpr const char* kLeast =
    "schedule: 1f1b\n"
    "parallel: {pipeline_model_parallel_size: 1}\n"
    "batch: {num_microbatches: 1, micro_batch_size: 1}\n";

const std::array<PlanSetting, 4> kDefaults{{{"parallel.sequence_parallel", "true"},
                                            {"cost.kind", "roofline"},
                                            {"memory.kind", "model"},
                                            {"memory.use_distributed_optimizer", "true"}}};

constexpr std::array<std::string_view, 6> kSections{"model",  "cluster",   "cost",
                                                    "memory", "framework", "optimizer"};

std::string section_of(std::string_view path) {
  return std::string(path.substr(0, path.find('.')));
}

void check_path(const Override& setting) {
  if (starts_plan(setting.path)) return;
  static const std::vector<std::string> kPlanned{"schedule", "parallel",   "batch", "recompute",
                                                 "offload",  "vocabulary", "engine"};
  const std::string section = section_of(setting.path);
  const bool planned = std::ranges::count(kPlanned, section) > 0;
  throw InputError(
      setting.where,
      fmt::format("'{}' is not a key that a plan starts from{}{}", setting.path,
                  planned ? ": it is planned, and options narrow what is tried (--help)" : "",
                  planned ? ""
                          : suggestion(section, std::vector<std::string>(kSections.begin(),
                                                                         kSections.end()))));
}

// The seconds that the host holds a GPU for with every dispatcher, as a scenario would read them.
void read_dispatchers(std::vector<Override> settings, PlanQuestion& question) {
  const std::string type = "cost.moe_token_dispatcher_type";
  const std::string backend = "cost.moe_flex_dispatcher_backend";
  const Software& own = question.base.roofline->software;
  const bool flex = question.base.modelled->context.flex_dispatcher;
  std::erase_if(settings,
                [&](const Override& each) { return each.path == type || each.path == backend; });
  const bool has_deepep = why_no_deepep(*question.base.hardware).empty();
  for (size_t i = 0; i < kExpertDispatchers.size(); ++i) {
    if (kExpertDispatchers[i] == to_text(ExpertDispatcher::kDeepEp) && !has_deepep) continue;
    std::vector<Override> all = settings;
    all.push_back({type, i == 0 ? "alltoall" : "flex", {}});
    if (i > 0) all.push_back({backend, std::string(kExpertDispatchers[i]), {}});
    const Scenario read = read_scenario(YamlSource("plan", kLeast, all));
    question.routing.at(i) = read.roofline->software.routing;
    const bool same = (i > 0) == flex && question.routing.at(i) == own.routing;
    if (same) question.dispatcher = static_cast<ExpertDispatcher>(i);
  }
}

}  // namespace

bool starts_plan(std::string_view path) {
  constexpr std::array<std::string_view, 4> kKeys{"batch.seq_length", "parallel.sequence_parallel",
                                                  "parallel.cp_comm_type",
                                                  "parallel.hierarchical_context_parallel_sizes"};
  return std::ranges::count(kSections, section_of(path)) > 0 || std::ranges::count(kKeys, path) > 0;
}

ClusterPlan read_plan_question(const std::vector<Override>& settings) {
  std::vector<Override> all;
  const auto says = [&settings](std::string_view path) {
    return std::ranges::count(settings, path, &Override::path) > 0;
  };
  const bool strategy = says("memory.data_parallel_sharding_strategy");
  for (const PlanSetting& setting : kDefaults) {
    // The strategy says more than the flag.
    if (strategy && setting.path == "memory.use_distributed_optimizer") continue;
    all.push_back({setting.path, setting.value, {}});
  }
  for (const Override& setting : settings) {
    check_path(setting);
    if (setting.path == "memory.num_distributed_optimizer_instances") {
      throw InputError(setting.where,
                       "is of a number of data ranks, which a plan seeks: give "
                       "memory.data_parallel_shard_degree");
    }
    all.push_back(setting);
  }
  ClusterPlan plan;
  for (const Override& setting : all) {
    plan.question.settings.push_back({setting.path, setting.value});
  }
  // One copy's data ranks, so that a question can be read before it is planned.
  for (const Override& setting : settings) {
    if (setting.path != "memory.data_parallel_shard_degree") continue;
    all.push_back({"parallel.data_parallel_size", setting.value, setting.where, setting.where});
  }
  PlanQuestion& question = plan.question;
  question.says_reshard = says("memory.reshard_after_forward");
  question.base = read_scenario(YamlSource("plan", kLeast, all));
  if (!question.base.roofline) {
    const auto cost = std::ranges::find_if(
        settings, [](const Override& setting) { return setting.path.starts_with("cost"); });
    throw InputError(cost == settings.end() ? Location{} : cost->where,
                     "a plan needs costs that follow from the model: cost.kind must be roofline or "
                     "measured");
  }
  if (question.base.modelled->model.cross) {
    throw InputError(Location{},
                     fmt::format("a plan divides the layers of one sequence, and {} encodes and "
                                 "decodes: a scenario divides it, by parallel.num_layers_per_stage",
                                 question.base.modelled->model.name));
  }
  if (question.base.modelled->model.experts) read_dispatchers(all, question);
  return plan;
}

}  // namespace pipesim
