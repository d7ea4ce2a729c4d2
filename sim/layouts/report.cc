#include "sim/layouts/report.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/core/csv.h"
#include "sim/core/text.h"
#include "sim/layouts/planned_metrics.h"
#include "sim/layouts/words.h"
#include "sim/report/metrics/row.h"
#include "sim/report/text/aligned.h"
#include "sim/report/text/band.h"
#include "sim/report/text/utilization.h"

namespace pipesim {
namespace {

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

std::string cluster_name(const ClusterPlan& plan) { return name_of(plan); }

// Which columns there are.
struct Columns {
  bool cluster = false;
  bool experts = false;
  bool contended = false;
  bool budget = false;
  bool price = false;
  bool causal = false;
};

Columns columns_of(std::span<const ClusterPlan> plans, bool tokens) {
  Columns columns{.cluster = plans.size() > 1, .budget = tokens};
  for (const ClusterPlan& plan : plans) {
    columns.experts = columns.experts || plan.question.base.modelled->model.experts.has_value();
    columns.price = columns.price || (tokens && plan.price.has_value());
    for (const Planned& planned : plan.result.best) {
      columns.contended = columns.contended || planned.contended.has_value();
      columns.causal = columns.causal || planned.causal();
    }
  }
  return columns;
}

Row header(const Columns& columns) {
  Row row;
  if (columns.cluster) row.emplace_back("cluster");
  row.insert(row.end(), {"schedule", "tp", "cp"});
  if (columns.experts) row.insert(row.end(), {"ep", "etp"});
  row.insert(row.end(), {"pp", "vpp", "dp", "mbs", "iteration"});
  if (columns.contended) row.emplace_back("with contention");
  row.insert(row.end(), {"tokens/s/GPU", columns.causal ? "MFU, causal" : "MFU", "peak", "headroom",
                         "fits", "bubble"});
  if (columns.budget) row.insert(row.end(), {"days", "GPU-hours"});
  if (columns.price) row.emplace_back("price");
  row.insert(row.end(), {"runs on", "limited by"});
  return row;
}

std::string contention_text(const std::optional<Contended>& contended, int digits) {
  if (!contended) return "-";
  std::string text = human(contended->iteration, digits);
  if (contended->ensemble) {
    text += fmt::format(" (jitter {})", human(contended->ensemble->stddev, 2));
  }
  return text;
}

// Bands of the first layout's seconds and of the numbers that follow from them.
std::string band_of_first(const ClusterPlan& plan, std::optional<double> tokens) {
  if (plan.result.best.empty()) return "";
  const Planned& first = plan.result.best.front();
  Uncertain simulated{.iteration = first.expected(), .causal = first.causal()};
  simulated.mfu = first.iteration / first.expected() * first.shown_mfu();
  simulated.tokens_per_second_per_gpu =
      first.iteration / first.expected() * first.tokens_per_second_per_gpu;
  if (tokens) {
    const PlanBudget budget = budget_of(plan.question, first, *tokens);
    simulated.days = budget.days;
    if (plan.price) simulated.price = budget.gpu_hours * *plan.price;
  }
  return cluster_name(plan) + ": " +
         band_line(question_of(plan, first).base, "the first takes", simulated);
}

std::string impossible_rates(const ClusterPlan& plan) {
  std::string text;
  const Scenario& base = plan.question.base;
  for (const Planned& planned : plan.result.best) {
    text += impossible_rate(fmt::format("{}, {}", label_of(planned.point), sizes_of(planned.point)),
                            planned.mfu, planned.mfu_causal,
                            base.hardware->gpu.peak[base.modelled->context.precision].value());
  }
  return text;
}

Row row_of(const ClusterPlan& plan, const Planned& planned, const Columns& columns,
           std::optional<double> tokens) {
  const PlanPoint& point = planned.point;
  Row row;
  const auto add = [&row](const auto& value) { row.push_back(fmt::format("{}", value)); };
  if (columns.cluster) add(cluster_name(plan));
  add(label_of(point));
  add(point.tensor);
  add(point.context);
  if (columns.experts) {
    add(point.expert);
    add(point.expert_tensor);
  }
  for (const int size : {point.pipeline, point.chunks, point.data, point.micro_batch}) add(size);
  const int digits = compared_digits(question_of(plan, planned).base.band);
  add(human(planned.iteration, digits));
  if (columns.contended) add(contention_text(planned.contended, digits));
  add(significant(planned.tokens_per_second_per_gpu, digits));
  add(percent(columns.causal ? planned.mfu_causal : planned.mfu));
  add(human(planned.peak));
  add(human(plan.question.limit() - planned.peak));
  add(kFitNames[static_cast<size_t>(planned.fits)]);
  add(percent(planned.bubble()));
  if (tokens) {
    const PlanBudget budget = budget_of(plan.question, planned, *tokens);
    add(significant(budget.days, digits));
    add(significant(budget.gpu_hours, digits));
    if (columns.price) {
      add(plan.price ? significant(budget.gpu_hours * *plan.price, digits) : "-");
    }
  }
  std::vector<std::string_view> frameworks;
  for (const Framework each : planned.runs_on) frameworks.push_back(to_text(each));
  add(frameworks.empty() ? "-" : fmt::format("{}", fmt::join(frameworks, "+")));
  add(limits_of(planned));
  return row;
}

// Counts of points, by their fate.
std::string counts_line(const ClusterPlan& plan) {
  const PlanCounts& counts = plan.result.counts;
  const size_t fit = counts.evaluated - counts.unfit;
  const std::string tight =
      counts.tight > 0 ? fmt::format(", {} of them tightly", counts.tight) : "";
  std::string text = fmt::format(
      "{}: {} points; {} run ({} fit in {}{}); not run: {} need more memory, {} cannot be as fast, "
      "{} refused by their schedule, {} the same as another",
      cluster_name(plan), counts.points, counts.evaluated, fit, human(plan.question.limit()), tight,
      counts.too_large, counts.too_slow, counts.refused, counts.repeated);
  const size_t decided =
      counts.evaluated + counts.too_large + counts.too_slow + counts.refused + counts.repeated;
  if (plan.result.stopped && decided < counts.points) {
    text += fmt::format("; ended early: {} undecided, of which some may be faster",
                        counts.points - decided);
  }
  text += '\n';
  if (counts.faster_with_memory > 0) {
    text += fmt::format("{}: memory excludes {} points that might be faster than the first\n",
                        cluster_name(plan), counts.faster_with_memory);
  }
  if (const std::string batch = divisions_text(plan); !batch.empty()) {
    text += fmt::format("{}: {}\n", cluster_name(plan), batch);
  }
  return text;
}

// Where layouts that fit tightly stand.
std::string tight_line(const ClusterPlan& plan) {
  const auto tight = std::ranges::count(plan.result.best, MemoryFit::kTight, &Planned::fits);
  if (tight == 0) return "";
  const MemoryBand& band = plan.question.base.modelled->band;
  return fmt::format(
      "{}: {} fit tightly, whatever they take behind those that fit: a GPU's {} lie within "
      "{:+.0f}% "
      "to {:+.0f}% of their peaks\n",
      cluster_name(plan), tight, human(plan.question.limit()), 100 * (band.low - 1),
      100 * (band.high - 1));
}

// Whose order this is, and whether it is another than replay's.
std::string contention_line(const ClusterPlan& plan) {
  const auto& best = plan.result.best;
  const auto again =
      std::ranges::count_if(best, [](const Planned& each) { return each.contended.has_value(); });
  if (again == 0) return "";
  std::string text =
      cluster_name(plan) + (again == 1 ? ": the first was run again"
                                       : fmt::format(": the first {} were run again", again));
  text += " with contention and stand, with days and price, by that; the others by replay\n";
  const auto by_replay = std::ranges::find(best, 1U, &Planned::rank_by_replay);
  if (by_replay == best.begin() || by_replay == best.end()) return text;
  return text +
         fmt::format("{}: the fastest by replay ({}), {}, {}, is number {} with contention ({})\n",
                     cluster_name(plan), human(by_replay->iteration), label_of(by_replay->point),
                     sizes_of(by_replay->point), by_replay - best.begin() + 1,
                     human(by_replay->expected()));
}

// "p2p", or "a2a+p2p 4x2" with the ranks that divide heads and those of the ring.
std::string exchange_text(const PlanExchange& exchange) {
  const std::string_view kind = to_text(exchange.kind);
  if (exchange.kind != ContextExchange::kHeadsAndRing) return std::string(kind);
  return fmt::format("{} {}x{}", kind, exchange.hierarchy[0], exchange.hierarchy[1]);
}

// 1 where activations leave, the modules' names where some of them do.
std::string offload_field(const PlanPoint& point) {
  if (point.modules.any()) return to_text(point.modules, "+");
  return offloads(point) ? "1" : "0";
}

std::string csv_row(const ClusterPlan& plan, size_t rank, const Planned& planned,
                    std::optional<double> tokens) {
  const PlanPoint& point = planned.point;
  std::string text =
      fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", csv_field(cluster_name(plan)),
                  rank, csv_field(point.schedule->name), point.tensor, point.context, point.expert,
                  point.expert_tensor, point.pipeline, point.chunks, point.data, point.micro_batch,
                  to_text(point.recompute), to_text(point.vocabulary), offload_field(point),
                  planned.layout ? csv_field(to_megatron_layout(*planned.layout)) : "even");
  text += fmt::format(",{}", planned.rank_by_replay);
  const auto metrics = planned_metrics(question_of(plan, planned), planned, {tokens, plan.price});
  for (size_t i = 0; i < metrics.size(); ++i) {
    text += ',' + metric_field(metric_named(kPlannedMetrics[i]), metrics[i]);
  }
  for (const double share : planned.shares) text += fmt::format(",{}", share);
  text +=
      fmt::format(",{},{},{},{},{},{}",
                  point.recompute_layers > 0 ? std::to_string(point.recompute_layers) : "",
                  to_text(strategy_of(state_of(question_of(plan, planned), point))),
                  point.exchange ? exchange_text(*point.exchange) : "",
                  point.expert > 1 ? to_text(dispatcher_of(question_of(plan, planned), point)) : "",
                  point.expert_overlap ? 1 : 0, csv_field(planned.idea));
  return text + "\n";
}

}  // namespace

std::string name_of(const ClusterPlan& plan) {
  return plan.label.empty() ? plan.question.base.hardware->name : plan.label;
}

const PlanQuestion& question_of(const ClusterPlan& plan, const Planned& planned) {
  return planned.asked ? *planned.asked : plan.question;
}

std::string label_of(const PlanPoint& point) {
  std::string text = point.schedule->name;
  std::vector<std::string> more;
  if (point.schedule->placement) more.push_back(point.schedule->placement->name);
  if (point.recompute != RecomputeGranularity::kNone) {
    more.push_back(recompute_text(point));
  }
  if (point.vocabulary != VocabularyPlacement::kFirstLast) {
    more.emplace_back(to_text(point.vocabulary));
  }
  if (point.offload) more.emplace_back("offload");
  if (point.modules.any()) more.push_back("offload " + to_text(point.modules, "+"));
  if (point.sharding) more.emplace_back(to_text(*point.sharding));
  if (point.exchange) more.push_back(exchange_text(*point.exchange));
  if (point.dispatcher) more.emplace_back(to_text(*point.dispatcher));
  if (point.expert_overlap) more.emplace_back("expert overlap");
  if (point.split == PlanSplit::kBalanced) more.emplace_back("balanced");
  if (point.split == PlanSplit::kEvenWithEnds) more.emplace_back("ends counted");
  for (const std::string& each : more) {
    text += fmt::format("{} {}", &each == &more.front() ? ":" : ",", each);
  }
  return text;
}

std::string sizes_of(const PlanPoint& point) {
  std::string experts;
  if (point.expert > 1) experts = fmt::format("ep {}, etp {}, ", point.expert, point.expert_tensor);
  return fmt::format("tp {}, cp {}, {}pp {}, vpp {}, dp {}, mbs {}", point.tensor, point.context,
                     experts, point.pipeline, point.chunks, point.data, point.micro_batch);
}

std::string divisions_text(const ClusterPlan& plan) {
  const PlanDivisions& divisions = plan.result.divisions;
  if (divisions.uneven == 0) return "";
  return fmt::format(
      "{} of {} divisions of the GPUs have data ranks that do not divide the global batch of {}, "
      "and are not tried; a multiple of {} loses none",
      divisions.uneven, divisions.all, plan.question.global_batch, divisions.multiple);
}

std::string plan_table(std::span<const ClusterPlan> plans, std::optional<double> tokens) {
  const Columns columns = columns_of(plans, tokens.has_value());
  std::vector<Row> rows{header(columns)};
  for (const ClusterPlan& plan : plans) {
    for (const Planned& planned : plan.result.best) {
      rows.push_back(row_of(plan, planned, columns, tokens));
    }
    if (plan.baseline && !plan.result.best.empty()) {
      rows.push_back(row_of(plan, plan.baseline->planned, columns, tokens));
      rows.back()[columns.cluster ? 1 : 0].insert(0, "baseline: ");
    }
  }
  std::string text;
  if (std::ranges::any_of(plans, [](const ClusterPlan& plan) { return plan.result.stopped; })) {
    text = "INCOMPLETE: the search was ended early; these are the best layouts so far\n";
  }
  if (rows.size() > 1) text += aligned(rows, columns.cluster ? 2 : 1);
  for (const ClusterPlan& plan : plans) {
    if (plan.result.best.empty() && !plan.result.stopped) text += no_fit_text(plan, {}) + "\n";
    text += band_of_first(plan, tokens) + impossible_rates(plan) + places_text(plan) +
            baseline_text(plan) + what_ifs_text(plan) + contention_line(plan) + tight_line(plan) +
            counts_line(plan);
  }
  return text;
}

std::string plan_csv(std::span<const ClusterPlan> plans, std::optional<double> tokens) {
  std::string text =
      "cluster,rank,schedule,tensor_model_parallel_size,context_parallel_size,"
      "expert_model_parallel_size,expert_tensor_parallel_size,pipeline_model_parallel_size,"
      "virtual_pipeline_model_parallel_size,data_parallel_size,micro_batch_size,recompute,"
      "vocabulary,offload,layout,rank_by_replay";
  for (const std::string_view name : kPlannedMetrics) text += fmt::format(",{}", name);
  for (const std::string_view name : kPlanShareNames) text += fmt::format(",share_{}", name);
  text +=
      ",recompute_num_layers,data_parallel_sharding_strategy,cp_comm_type,moe_dispatcher,"
      "overlap_moe_expert_parallel_comm,idea\n";
  for (const ClusterPlan& plan : plans) {
    size_t rank = 0;
    for (const Planned& planned : plan.result.best) text += csv_row(plan, ++rank, planned, tokens);
  }
  return text;
}

}  // namespace pipesim
