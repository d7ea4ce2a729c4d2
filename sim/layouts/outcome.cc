#include "sim/layouts/outcome.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <vector>

#include "models/stage_cost.h"
#include "models/vocabulary_share.h"
#include "sim/case/make_case.h"
#include "sim/case/program.h"
#include "sim/prepare/microbatch_order.h"
#include "sim/prepare/prepare.h"
#include "sim/scenario/modelled.h"

namespace pipesim {
namespace {

// Modelled seconds of all devices' passes in an iteration.
struct PassSums {
  Seconds apart;        // all, one after the other, R left out
  Seconds collectives;  // of that
};

PassSums sum_passes(const Case& made) {
  const Transformer& model = made.scenario->modelled->model;
  const LayerCosts& costs = *made.costs;
  PassSums sums;
  for (const StageLayers& layers : made.layout->stages) {
    const StagePasses passes = stage_passes(model, layers, costs);
    for (const PassCost* pass :
         {&passes.forward, &passes.backward_input, &passes.backward_weight}) {
      sums.apart += pass->total();
      sums.collectives += pass->collectives() - pass->hidden;
    }
  }
  const VocabularyCost share =
      share_cost(model, made.problem.vocabulary, *made.setting, *made.scenario->hardware);
  sums.apart += made.placement.devices() * (share.output_forward + share.output_backward +
                                            share.input_forward + share.input_backward);
  return sums;
}

PlanShare share_of(IdleCause cause) {
  switch (cause) {
    case IdleCause::kTransfer:
      return PlanShare::kTransfers;
    case IdleCause::kHostCopy:
      return PlanShare::kHostCopies;
    case IdleCause::kImbalance:
      return PlanShare::kImbalance;
    case IdleCause::kCollective:
      return PlanShare::kCollectives;
    case IdleCause::kOrder:
      return PlanShare::kOrder;
    default:
      return PlanShare::kRamps;
  }
}

// Nothing of the norm, which joins all devices.
std::optional<PlanShare> share_of(ClosingTerm term) {
  switch (term) {
    case ClosingTerm::kReduce:
    case ClosingTerm::kGather:
      return PlanShare::kReduction;
    case ClosingTerm::kNorm:
      return std::nullopt;
    case ClosingTerm::kOptimizer:
      return PlanShare::kOptimizer;
    case ClosingTerm::kFixed:
      return PlanShare::kFixed;
  }
  throw LogicError("a term of a step without a share");
}

// All of an iteration has a name.
void check_named(const Planned& planned) {
  const double named = std::accumulate(planned.shares.begin(), planned.shares.end(), 0.0);
  constexpr double kRounding = 1e-6;
  if (std::abs(named - 1) <= kRounding) return;
  throw LogicError(fmt::format("{}% of an iteration have no name", 100 * (1 - named)));
}

Planned without_shares(const Case& made, const Result& result) {
  Planned planned;
  planned.iteration = result.report.iteration;
  planned.tokens_per_second_per_gpu =
      result.throughput->samples_per_second_per_gpu * *made.scenario->batch.seq_length;
  planned.mfu = *result.throughput->mfu;
  planned.mfu_causal = *result.throughput->mfu_causal;
  planned.peak = *result.report.peak_memory;
  planned.fits = *result.fits;
  if (result.host && result.host->node) planned.on_host = *result.host->node;
  return planned;
}

}  // namespace

Planned planned_of(const Case& made, const Result& result) {
  const Scenario& scenario = *made.scenario;
  const Report& report = result.report;
  Planned planned = without_shares(made, result);
  const double devices = scenario.parallel.pipeline;
  const Seconds whole = devices * report.iteration;
  const auto add = [&](PlanShare share, Seconds seconds) {
    planned.shares[static_cast<size_t>(share)] += seconds / whole;
  };
  Seconds passes;
  for (const DeviceReport& device : report.devices) {
    for (size_t cause = 0; cause < device.idle_by_cause.size(); ++cause) {
      add(share_of(static_cast<IdleCause>(cause)), device.idle_by_cause[cause]);
    }
    add(PlanShare::kRecompute, device.recompute);
    passes += device.busy - device.recompute;
  }
  Seconds norm;
  for (const StepCost& step : made.closing) {
    for (size_t i = 0; i < kClosingTermNames.size(); ++i) {
      const auto term = static_cast<ClosingTerm>(i);
      // Every device waits for the longest norm, which is added below.
      if (const auto share = share_of(term)) add(*share, step[term]);
    }
    add(PlanShare::kReduction, -step.hidden);
    passes -= step.total() - step[ClosingTerm::kNorm];
    norm = std::max(norm, step[ClosingTerm::kNorm]);
  }
  // Every device waits for the norm; with post-validation there is none.
  add(PlanShare::kReduction, devices * norm);
  add(PlanShare::kCollectives, -devices * norm);
  const PassSums sums = sum_passes(made);
  const double microbatches = scenario.batch.microbatches;
  // Overlapped blocks hide a part of their collectives.
  const Seconds seen =
      std::max(Seconds(0), microbatches * sums.collectives - (microbatches * sums.apart - passes));
  add(PlanShare::kCollectives, seen);
  add(PlanShare::kModel, planned.shown_mfu() * whole);
  add(PlanShare::kKernels, passes - seen - planned.shown_mfu() * whole);
  check_named(planned);
  return planned;
}

namespace {

Case case_of(const PlanQuestion& question, const PlanPoint& point, const Layout* layout) {
  auto scenario = std::make_shared<const Scenario>(scenario_of(question, point, layout));
  const ScheduleChoice& choice = scenario->schedules.front();
  return batch_case(outline_of(scenario, choice));
}

}  // namespace

MemoryFit PointRun::fits(const PlanQuestion& question) const {
  return planned.on_host <= question.base.hardware->host.memory ? planned.fits : MemoryFit::kNo;
}

PointRun run_point(const PlanQuestion& question, const PlanPoint& point, const Layout* layout,
                   Detail detail) {
  const Case made = case_of(question, point, layout);
  const Result result = simulate(made, nullptr, nullptr, detail);
  const bool followed = detail == Detail::kCauses;
  PointRun run{followed ? planned_of(made, result) : without_shares(made, result)};
  run.planned.point = point;
  if (layout != nullptr) run.planned.layout = *layout;
  return run;
}

Configuration configuration_of(Framework framework, const PlanQuestion& question,
                               const Planned& planned) {
  const Case made = case_of(question, planned.point, planned.balanced());
  return configuration_of(framework, made, *make_program(made));
}

std::vector<Configuration> files_of(Framework framework, const PlanQuestion& question,
                                    const Planned& planned) {
  const Case made = case_of(question, planned.point, planned.balanced());
  return files_of(framework, made, *make_program(made));
}

std::vector<Framework> frameworks_of(const PlanQuestion& question, const Planned& planned) {
  const Case made = case_of(question, planned.point, planned.balanced());
  return frameworks_of(made, *make_program(made));
}

std::vector<std::pair<PlanShare, double>> largest_losses(const Planned& planned) {
  std::vector<std::pair<PlanShare, double>> losses;
  for (size_t i = static_cast<size_t>(PlanShare::kKernels); i < planned.shares.size(); ++i) {
    losses.emplace_back(static_cast<PlanShare>(i), planned.shares[i]);
  }
  std::ranges::stable_sort(losses, std::ranges::greater(),
                           [](const auto& loss) { return loss.second; });
  losses.resize(2);
  std::erase_if(losses, [](const auto& loss) { return loss.second < kWorthSaying; });
  return losses;
}

std::string limits_of(const Planned& planned) {
  std::string text;
  for (const auto& [share, part] : largest_losses(planned)) {
    text += fmt::format("{}{} {:.1f}%", text.empty() ? "" : ", ",
                        kPlanShareNames[static_cast<size_t>(share)], 100 * part);
  }
  std::ranges::replace(text, '_', ' ');
  return text.empty() ? "nothing" : text;
}

// Runs of the ensemble: runs of a layout differ by less than 0.02%, layouts by more.
constexpr int kContendedRuns = 4;

Contended with_contention(const PlanQuestion& question, const Planned& planned) {
  return with_contention(scenario_of(question, planned.point, planned.balanced()));
}

Contended with_contention(Scenario scenario) {
  scenario.engine = EngineKind::kSimGrid;
  scenario.perturb.runs = kContendedRuns;
  const int replica = scenario.parallel.tensor * scenario.parallel.context;
  const int node = scenario.hardware->cluster.gpus_per_node;
  scenario.parallel.pipelines = std::clamp(node / replica, 1, scenario.parallel.data);
  const Report report = simulate(prepare_first(std::move(scenario))).report;
  return {report.iteration, report.ensemble};
}

bool is_beyond(const Planned& planned) {
  return std::ranges::count(planned.ideas, PlanIdea::kBeyond) > 0;
}

void rank_by_contention(std::vector<Planned>& best) {
  // By place: gcc 12 warns of what swapping a Planned might read.
  std::vector<size_t> order(best.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&best](size_t i, size_t j) {
    const bool beyond = is_beyond(best[i]);
    if (beyond != is_beyond(best[j])) return !beyond;
    if (best[i].fits != best[j].fits) return best[i].fits > best[j].fits;
    const auto& a = best[i].contended;
    const auto& b = best[j].contended;
    if (a.has_value() != b.has_value()) return a.has_value();
    return best[i].expected() < best[j].expected();
  });
  std::vector<Planned> ranked;
  ranked.reserve(best.size());
  for (const size_t i : order) ranked.push_back(std::move(best[i]));
  best = std::move(ranked);
}

PlanBudget budget_of(const PlanQuestion& question, const Planned& planned, double tokens) {
  const double rate = planned.iteration / planned.expected() * planned.tokens_per_second_per_gpu;
  const double hours = tokens / (rate * question.gpus) / 3600;
  return {hours / 24, hours * question.gpus};
}

}  // namespace pipesim
