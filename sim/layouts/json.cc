#include "sim/report/metrics/json.h"

#include <nlohmann/json.hpp>
#include <ostream>

#include "sim/layouts/answer.h"
#include "sim/layouts/difference.h"
#include "sim/layouts/planned_metrics.h"
#include "sim/layouts/report.h"
#include "sim/layouts/switches.h"
#include "sim/report/json/band.h"
#include "sim/report/json/schema.h"
#include "sim/report/metrics/row.h"
#include "sim/scenario/modelled.h"

namespace pipesim {
namespace {

using Json = nlohmann::ordered_json;

Json point_json(const PlanPoint& point) {
  Json json{{"schedule", point.schedule->name},
            {"tensor_model_parallel_size", point.tensor},
            {"context_parallel_size", point.context},
            {"expert_model_parallel_size", point.expert},
            {"expert_tensor_parallel_size", point.expert_tensor},
            {"pipeline_model_parallel_size", point.pipeline},
            {"virtual_pipeline_model_parallel_size", point.chunks},
            {"data_parallel_size", point.data},
            {"micro_batch_size", point.micro_batch},
            {"recompute", to_text(point.recompute)},
            {"vocabulary", to_text(point.vocabulary)},
            {"offload", offloads(point)}};
  if (point.recompute_layers > 0) json["recompute_num_layers"] = point.recompute_layers;
  if (point.modules.any()) json["offload_modules"] = to_text(point.modules, "+");
  if (point.sharding) json["data_parallel_sharding_strategy"] = to_text(*point.sharding);
  if (point.exchange) {
    json["cp_comm_type"] = to_text(point.exchange->kind);
    if (point.exchange->kind == ContextExchange::kHeadsAndRing) {
      json["hierarchical_context_parallel_sizes"] = point.exchange->hierarchy;
    }
  }
  return json;
}

Json contended_json(const std::optional<Contended>& contended) {
  if (!contended) return nullptr;
  Json json{{"iteration_seconds", contended->iteration.value()}, {"ensemble", nullptr}};
  if (const auto& ensemble = contended->ensemble) {
    json["ensemble"] = {{"runs", ensemble->runs},       {"seed", ensemble->seed},
                        {"jitter", ensemble->jitter},   {"stddev", ensemble->stddev.value()},
                        {"p05", ensemble->p05.value()}, {"p95", ensemble->p95.value()}};
  }
  return json;
}

// Against the baseline; null without one.
void add_difference(const ClusterPlan& plan, const Planned& planned, Json& json) {
  json["difference_seconds"] = json["difference_by_cause_seconds"] = nullptr;
  json["difference_memory_bytes"] = nullptr;
  if (!plan.baseline) return;
  const PlanDifference difference = difference_of(plan.baseline->planned, planned);
  json["difference_seconds"] = {{"compute", difference.compute().value()},
                                {"communication", difference.communication().value()},
                                {"bubble", difference.bubble().value()},
                                {"recompute", difference.recompute().value()}};
  Json causes;
  for (size_t i = 0; i < kPlanShareNames.size(); ++i) {
    causes[std::string(kPlanShareNames[i])] = difference.causes[i].value();
  }
  causes["contention"] = difference.contention.value();
  json["difference_by_cause_seconds"] = std::move(causes);
  json["difference_memory_bytes"] = difference.memory.value();
}

std::string layout_text(const ClusterPlan& plan, const Planned& planned) {
  if (planned.layout) return to_megatron_layout(*planned.layout);
  const Scenario scenario = scenario_of(question_of(plan, planned), planned.point);
  const ScheduleChoice& choice = scenario.schedules.front();
  return to_megatron_layout(
      layout_of(*scenario.modelled, placement_of(choice, planned.point.pipeline), choice.name));
}

// Flags as such, types of numbers by name.
Json switches_json(const PlanQuestion& question, const PlanPoint& point) {
  Json json = Json::object();
  for (const auto& [name, value] : switches_of(question, point)) {
    const bool flag = value == "true" || value == "false";
    json[std::string(name)] = flag ? Json(value == "true") : Json(value);
  }
  return json;
}

Json planned_json(const ClusterPlan& plan, const Planned& planned, std::optional<double> tokens) {
  Json json = point_json(planned.point);
  json["label"] = label_of(planned.point);
  json["pipeline_model_parallel_layout"] = layout_text(plan, planned);
  json["runs_on"] = Json::array();
  for (const Framework each : planned.runs_on) json["runs_on"].push_back(to_text(each));
  const auto metrics = planned_metrics(question_of(plan, planned), planned, {tokens, plan.price});
  for (size_t i = 0; i < metrics.size(); ++i) {
    const Metric& metric = metric_named(kPlannedMetrics[i]);
    json[std::string(metric.name)] = metric_json(metric, metrics[i]);
  }
  json["contended"] = contended_json(planned.contended);
  json["rank_by_replay"] = planned.rank_by_replay;
  json["idea"] = planned.idea;
  json["switches"] = switches_json(question_of(plan, planned), planned.point);
  for (size_t i = 0; i < planned.shares.size(); ++i) {
    json["shares"][std::string(kPlanShareNames[i])] = planned.shares[i];
  }
  json["limited_by"] = limits_of(planned);
  add_difference(plan, planned, json);
  json["band"] = band_json(question_of(plan, planned).base.band, planned.expected());
  return json;
}

Json baseline_json(const ClusterPlan& plan, std::optional<double> tokens) {
  if (!plan.baseline) return nullptr;
  Json json = planned_json(plan, plan.baseline->planned, tokens);
  const std::string& file = plan.baseline->file;
  json["file"] = file.empty() ? Json(nullptr) : Json(file);
  const std::string& run = plan.baseline->run;
  json["run"] = run.empty() ? Json(nullptr) : Json(run);
  json["scenario"] = plan_scenario(plan, plan.baseline->planned);
  return json;
}

Json nearest_json(const std::optional<NearMiss>& miss) {
  if (!miss) return nullptr;
  Json json = point_json(miss->planned.point);
  json["peak_memory_bytes"] = miss->planned.peak.value();
  json["host_memory_bytes"] = miss->planned.on_host.value();
  json["over_bytes"] = miss->over.value();
  json["change"] = miss->change ? Json(miss->change->words) : Json(nullptr);
  return json;
}

Json what_ifs_json(const ClusterPlan& plan, std::optional<double> tokens) {
  Json json = Json::array();
  for (const PlanWhatIf& each : plan.what_ifs) {
    ClusterPlan changed = plan;
    changed.question = each.question;
    Json row{{"change", each.change()},
             {"quantity", each.quantity},
             {"factor", each.factor == 0 ? Json(nullptr) : Json(each.factor)},
             {"gpus", each.question.gpus},
             {"memory_limit_bytes", each.question.limit().value()},
             {"layout", nullptr}};
    if (!each.best.empty()) row["layout"] = planned_json(changed, each.best.front(), tokens);
    json.push_back(std::move(row));
  }
  return json;
}

Json plan_json(const ClusterPlan& plan, std::optional<double> tokens) {
  const PlanQuestion& question = plan.question;
  const PlanCounts& counts = plan.result.counts;
  Json json{{"model", question.base.modelled->model.name},
            {"cluster", question.base.hardware->name},
            {"label", name_of(plan)},
            {"gpus", question.gpus},
            {"global_batch_size", question.global_batch},
            {"seq_length", *question.base.batch.seq_length},
            {"memory_limit_bytes", question.limit().value()},
            {"points",
             {{"all", counts.points},
              {"evaluated", counts.evaluated},
              {"unfit", counts.unfit},
              {"tight", counts.tight},
              {"too_large", counts.too_large},
              {"too_slow", counts.too_slow},
              {"refused", counts.refused},
              {"repeated", counts.repeated},
              {"faster_with_memory", counts.faster_with_memory}}},
            {"divisions",
             {{"all", plan.result.divisions.all},
              {"uneven", plan.result.divisions.uneven},
              {"multiple", plan.result.divisions.multiple}}},
            {"stopped", plan.result.stopped},
            {"days_with_failures",
             plan.days_with_failures ? Json(*plan.days_with_failures) : Json(nullptr)},
            {"nearest", nearest_json(plan.result.nearest)},
            {"baseline", baseline_json(plan, tokens)},
            {"what_ifs", what_ifs_json(plan, tokens)},
            {"layouts", Json::array()}};
  for (const Planned& planned : plan.result.best) {
    json["layouts"].push_back(planned_json(plan, planned, tokens));
    json["layouts"].back()["tied_with_first"] = is_tied(plan, planned);
    json["layouts"].back()["scenario"] = plan_scenario(plan, planned);
  }
  return json;
}

}  // namespace

void write_plan_json(std::ostream& out, std::span<const ClusterPlan> plans,
                     std::optional<double> tokens, const std::string& version) {
  Json document{{"schema", kJsonSchema},
                {"pipesim", {{"version", version}, {"engine", "replay"}}},
                {"answer", answer_sentence(plans, tokens)},
                {"tokens", tokens ? Json(*tokens) : Json(nullptr)},
                {"plans", Json::array()}};
  for (const ClusterPlan& plan : plans) document["plans"].push_back(plan_json(plan, tokens));
  out << document.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace pipesim
