#include "sim/layouts/baseline.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <tuple>
#include <vector>

#include "sim/case/make_case.h"
#include "sim/layouts/bound.h"
#include "sim/layouts/plan.h"
#include "sim/layouts/runs_on.h"
#include "sim/prepare/balance.h"
#include "sim/prepare/prepare.h"
#include "sim/read/anchor.h"
#include "sim/read/recipes.h"
#include "sim/scenario/modelled.h"

namespace pipesim {
namespace {

// A share of an iteration; a layout that idles for more is not usual.
constexpr double kMostBubble = 0.25;
// The most chunks of a device in it, unless more are asked for.
constexpr int kMostUsualChunks = 10;

// Less is tried first.
auto order_of(const PlanPoint& point, int node) {
  const int ranks = point.tensor * point.context * point.pipeline;
  const bool across = point.expert * point.expert_tensor > node;
  return std::tuple(point.recompute != RecomputeGranularity::kNone, point.context, across, ranks,
                    -point.tensor, -point.expert, point.expert_tensor, point.split, -point.chunks);
}

std::optional<Planned> run_if_it_fits(const PlanQuestion& question, const PlanPoint& point) {
  try {
    std::optional<Layout> split;
    if (point.split == PlanSplit::kBalanced) {
      const auto scenario = std::make_shared<const Scenario>(scenario_of(question, point));
      const Outline outline = outline_of(scenario, scenario->schedules.front());
      split = balance(scenario->modelled->model, point.pipeline, layer_weights(outline));
    }
    const Layout* layout = split ? &*split : nullptr;
    const Case made = prepare_first(scenario_of(question, point, layout));
    if (run_bound(made).memory > question.surely_within()) return std::nullopt;
    PointRun run = run_point(question, point, layout);
    const bool busy = run.planned.bubble() <= kMostBubble;
    if (busy && run.fits(question) == MemoryFit::kYes) return std::move(run.planned);
  } catch (const InputError&) {
    // Refused by its schedule, as too few microbatches are.
  } catch (const InfeasibleError&) {
    // Not even one microbatch fits.
  }
  return std::nullopt;
}

void check_same(const std::string& what, const auto& asked, const auto& given,
                const Location& where) {
  if (asked == given) return;
  throw InputError(
      where, fmt::format("the baseline has {} {}, and the plan is for {}", what, given, asked));
}

}  // namespace

namespace {

// Keeps the usual values among those asked for; all of them where none is usual.
template <class List>
void keep_usual(List& asked, const List& usual) {
  List kept;
  for (const auto& each : usual) {
    if (std::ranges::count(asked, each) > 0) kept.push_back(each);
  }
  if (!kept.empty()) asked = std::move(kept);
}

// The question with the axes of a usual layout, as far as they are asked for.
PlanQuestion usual_question(const PlanQuestion& question) {
  PlanQuestion usual = question;
  keep_usual(usual.axes.schedules, {"1f1b", "interleaved-1f1b"});
  keep_usual(usual.axes.vocabulary, {VocabularyPlacement::kFirstLast});
  keep_usual(usual.axes.offload, {false});
  usual.axes.fsdp = usual.axes.fewest_layers = false;
  usual.axes.modules = {OffloadModules()};
  keep_usual(usual.axes.expert_overlap, {false});
  const bool trains = why_it_runs_none(Framework::kMegatron, usual).empty();
  if (!usual.axes.runs_on && trains) usual.axes.runs_on = Framework::kMegatron;
  return usual;
}

bool admits(const std::vector<int>& asked, int size) {
  return asked.empty() || std::ranges::count(asked, size) > 0;
}

// The question narrowed to the sizes of a recipe; nothing where it asks for others.
std::optional<PlanQuestion> narrowed(const PlanQuestion& question, const Recipe& recipe) {
  struct Size {
    std::vector<int> PlanAxes::*axis;
    int value;
  };
  PlanQuestion narrow = usual_question(question);
  for (const auto& [axis, value] :
       {Size{&PlanAxes::tensor, recipe.tensor}, Size{&PlanAxes::context, recipe.context},
        Size{&PlanAxes::expert, recipe.expert}, Size{&PlanAxes::pipeline, recipe.pipeline},
        Size{&PlanAxes::micro_batch, recipe.micro_batch}}) {
    if (!admits(narrow.axes.*axis, value)) return std::nullopt;
    narrow.axes.*axis = {value};
  }
  if (recipe.chunks > 1 && !admits(narrow.axes.chunks, recipe.chunks)) return std::nullopt;
  narrow.axes.chunks = {recipe.chunks};
  keep_usual(narrow.axes.schedules, {recipe.chunks > 1 ? "interleaved-1f1b" : "1f1b"});
  return narrow;
}

// Uneven stages are usual where no even ones have their number, as of 61 layers.
bool has_usual_split(const PlanPoint& point, int layers) {
  const bool divides = layers % point.pipeline == 0 || (layers + 2) % point.pipeline == 0;
  return point.split != PlanSplit::kBalanced || (!divides && point.chunks == 1);
}

}  // namespace

std::optional<Published> published_layout(const PlanQuestion& question,
                                          const std::function<bool()>& stop) {
  const Scenario& base = question.base;
  const std::string precision = precision_name(*base.modelled);
  const auto fastest_that_is_busy = [&stop](const PlanQuestion& each) -> std::optional<Planned> {
    PlanResult found = plan(each, {.best = 1, .stop = stop});
    if (found.stopped || found.best.empty()) return std::nullopt;
    if (found.best.front().bubble() > kMostBubble) return std::nullopt;
    return std::move(found.best.front());
  };
  for (const Recipe& recipe : recipes_for(base.modelled->model, base.hardware->gpu, precision,
                                          base.batch.seq_length.value_or(1), question.gpus)) {
    const auto narrow = narrowed(question, recipe);
    if (!narrow) continue;
    PlanQuestion own = *narrow;
    keep_usual(own.axes.recompute, {recipe.recompute});
    std::optional<Planned> row = fastest_that_is_busy(own);
    if (!row && own.axes.recompute != narrow->axes.recompute) row = fastest_that_is_busy(*narrow);
    if (row) return Published{std::move(*row), recipe.id};
  }
  return std::nullopt;
}

std::optional<Planned> usual_layout(const PlanQuestion& question) {
  PlanQuestion usual = usual_question(question);
  if (usual.axes.micro_batch.empty()) usual.axes.micro_batch = {1};
  keep_usual(usual.axes.recompute, {RecomputeGranularity::kNone, RecomputeGranularity::kFull});
  std::vector<PlanPoint> points = plan_space(usual).points;
  const int layers = question.base.modelled->model.num_layers;
  std::erase_if(points, [layers](const PlanPoint& each) { return !has_usual_split(each, layers); });
  if (usual.axes.chunks.empty()) {
    std::erase_if(points, [](const PlanPoint& each) { return each.chunks > kMostUsualChunks; });
  }
  if (const auto framework = usual.axes.runs_on) {
    std::erase_if(points, [&](const PlanPoint& each) { return !may_run(*framework, usual, each); });
  }
  const int node = question.base.hardware->cluster.gpus_per_node;
  std::ranges::stable_sort(points, {},
                           [node](const PlanPoint& each) { return order_of(each, node); });
  for (const PlanPoint& point : points) {
    if (auto planned = run_if_it_fits(usual, point)) {
      planned->runs_on = frameworks_of(usual, *planned);
      return planned;
    }
  }
  return std::nullopt;
}

Planned baseline_of(const PlanQuestion& question, Scenario scenario, const Location& where) {
  if (scenario.schedules.size() != 1) {
    throw InputError(where, fmt::format("a baseline has one schedule, and this scenario has {}",
                                        scenario.schedules.size()));
  }
  const ScheduleChoice& choice = scenario.schedules.front();
  if (choice.program || choice.described) {
    throw InputError(choice.where, "a baseline's schedule has a name");
  }
  const Schedule* schedule = &schedule_of(choice);
  if (schedule->versions) {
    throw InputError(choice.where, choice.name + " steps with weights of before: not planned");
  }
  if (!scenario.roofline || !scenario.hardware || !scenario.batch.seq_length) {
    throw InputError(where, "a baseline's seconds follow from its model, cluster and batch");
  }
  const ParallelSizes& sizes = scenario.parallel;
  if (sizes.pipelines > 1) throw InputError(where, "a baseline simulates one pipeline");
  PlanPoint point{.tensor = sizes.tensor,
                  .context = sizes.context,
                  .expert = scenario.modelled->context.expert,
                  .expert_tensor = scenario.modelled->context.expert_tensor,
                  .pipeline = sizes.pipeline,
                  .data = sizes.data,
                  .micro_batch = scenario.batch.micro_batch_size.value_or(1),
                  .chunks = chunks_of(choice),
                  .schedule = schedule,
                  .vocabulary = scenario.vocabulary,
                  .recompute = granularity_of(choice),
                  .offload = choice.offload.has_value(),
                  .sharding = {}};
  const auto overlap = choice.options.find(std::string(kExpertOverlap[0]));
  point.expert_overlap = overlap != choice.options.end() && overlap->second == OptionValue(true);
  const ShardingStrategy strategy = strategy_of(scenario.modelled->state);
  if (strategy != strategy_of(question.base.modelled->state)) point.sharding = strategy;
  check_same("model", question.base.modelled->model.name, scenario.modelled->model.name, where);
  check_same("cluster", question.base.hardware->name, scenario.hardware->name, where);
  const int ranks = point.tensor * point.context * point.pipeline * point.data;
  check_same("GPUs:", question.gpus, ranks, where);
  const long samples = static_cast<long>(scenario.batch.microbatches) * point.micro_batch;
  check_same("global_batch_size", question.global_batch, samples * point.data, where);
  check_same("seq_length", *question.base.batch.seq_length, *scenario.batch.seq_length, where);
  const Case made = prepare_first(std::move(scenario));
  const Result result = simulate(made);
  Planned planned = planned_of(made, result);
  planned.point = point;
  if (made.layout) planned.layout = *made.layout;
  planned.runs_on = frameworks_of(made, *result.program);
  return planned;
}

}  // namespace pipesim
