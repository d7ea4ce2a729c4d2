#include "sim/layouts/space.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <numeric>
#include <utility>

#include "sim/interop/configurations/torchtitan.h"
#include "sim/read/modelled.h"

namespace pipesim {
namespace {

constexpr int kShortestPart = 4096;  // tokens of a sequence on a context rank
constexpr int kMostChunks = 10;      // beyond, only numbers that leave a chunk fewer layers
constexpr int kLargestMicroBatch = 8;

std::vector<int> powers_of_two(int most) {
  std::vector<int> powers;
  for (int power = 1; power <= most; power *= 2) powers.push_back(power);
  return powers;
}

std::vector<int> divisors(int number, int most) {
  std::vector<int> all;
  for (int each = 1; each <= std::min(number, most); ++each) {
    if (number % each == 0) all.push_back(each);
  }
  return all;
}

std::vector<int> asked_or(const std::vector<int>& asked, const std::vector<int>& rule) {
  return asked.empty() ? rule : asked;
}

// Leaves out placements that are not tried by themselves.
std::vector<const Schedule*> records_to_plan(const std::string& name) {
  std::vector<const Schedule*> records = records_of(name);
  if (records.size() > 1) {
    std::erase_if(records, [](const Schedule* each) { return !each->left_out_of_plan.empty(); });
  }
  return records;
}

class Space {
 public:
  explicit Space(const PlanQuestion& question)
      : question_(question),
        axes_(question.axes),
        model_(question.base.modelled->model),
        node_(question.base.hardware->cluster.gpus_per_node),
        seq_length_(question.base.modelled->context.seq_length) {}

  PlanSpace run() {
    for (const int tensor : asked_or(axes_.tensor, divisors(node_, node_))) {
      for (const int context :
           asked_or(axes_.context, powers_of_two(std::max(1, seq_length_ / kShortestPart)))) {
        point_.tensor = tensor;
        point_.context = context;
        if (question_.gpus % (tensor * context) == 0) {
          divide_devices();
        } else {
          refuse(Rule::kGpus, "tp {} x cp {} do not divide {} GPUs", tensor, context,
                 question_.gpus);
        }
      }
    }
    if (!points_.empty()) divisions_.refused.clear();
    return {std::move(points_), std::move(divisions_)};
  }

 private:
  // The rules that a point must meet, in the order of the walk.
  enum class Rule : std::uint8_t {
    kNone,
    kGpus,
    kStages,
    kBatch,
    kMicroBatch,
    kExperts,
    kModel,
    kLayers
  };

  // Keeps the first text of the rule that comes last.
  template <class... Values>
  void refuse(Rule rule, fmt::format_string<Values...> text, Values&&... values) {
    if (!points_.empty() || rule <= furthest_) return;
    furthest_ = rule;
    divisions_.refused = fmt::format(text, std::forward<Values>(values)...);
  }

  void divide_devices() {
    const int left = question_.gpus / (point_.tensor * point_.context);
    for (const int pipeline : asked_or(axes_.pipeline, divisors(left, model_.num_layers))) {
      if (left % pipeline != 0) {
        refuse(Rule::kStages, "tp {} x cp {} leave {} GPUs, which pp {} does not divide",
               point_.tensor, point_.context, left, pipeline);
        continue;
      }
      point_.pipeline = pipeline;
      point_.data = left / pipeline;
      divide_batch();
    }
  }

  void divide_batch() {
    ++divisions_.all;
    divisions_.multiple = std::lcm(divisions_.multiple, static_cast<long>(point_.data));
    if (question_.global_batch % point_.data != 0) {
      ++divisions_.uneven;
      refuse(Rule::kBatch, "{} data ranks do not divide the global batch of {}", point_.data,
             question_.global_batch);
      return;
    }
    const long samples = question_.global_batch / point_.data;
    for (const int size : asked_or(axes_.micro_batch, powers_of_two(kLargestMicroBatch))) {
      if (samples % size != 0) {
        refuse(Rule::kMicroBatch, "micro batches of {} do not divide the {} samples of a data rank",
               size, samples);
        continue;
      }
      point_.micro_batch = size;
      divide_experts();
    }
  }

  void divide_experts() {
    if (!model_.experts) {
      if (axes_.expert.empty() || std::ranges::count(axes_.expert, 1) > 0) choose_exchange();
      return;
    }
    const int ranks = point_.tensor * point_.context * point_.data;
    for (const int expert : asked_or(
             axes_.expert, divisors(model_.experts->num_experts, model_.experts->num_experts))) {
      for (const int expert_tensor : {1, point_.tensor}) {
        point_.expert = expert;
        point_.expert_tensor = expert_tensor;
        if (ranks % (expert * expert_tensor) == 0) {
          choose_dispatcher();
        } else {
          refuse(Rule::kExperts, "ep {} x etp {} do not divide the {} ranks of a stage", expert,
                 expert_tensor, ranks);
        }
        if (point_.tensor == 1) break;
      }
    }
    point_.expert = point_.expert_tensor = 1;
  }

  void choose_dispatcher() {
    if (axes_.dispatchers.empty() || point_.expert * point_.expert_tensor == 1) {
      choose_exchange();
      return;
    }
    for (const ExpertDispatcher dispatcher : axes_.dispatchers) {
      point_.dispatcher = dispatcher;
      choose_exchange();
    }
    point_.dispatcher.reset();
  }

  void choose_exchange() {
    if (axes_.exchange.empty() || point_.context == 1) {
      choose_schedule();
      return;
    }
    for (const ContextExchange kind : axes_.exchange) {
      if (kind != ContextExchange::kHeadsAndRing) {
        point_.exchange = {kind};
        choose_schedule();
        continue;
      }
      for (const int heads : divisors(point_.context, point_.context)) {
        // One rank of either is another kind.
        if (heads == 1 || heads == point_.context) continue;
        point_.exchange = {kind, {heads, point_.context / heads}};
        choose_schedule();
      }
    }
    point_.exchange.reset();
  }

  void choose_schedule() {
    bool on_one_device = false;
    bool divides = false;  // which no schedule changes
    for (const std::string& name : axes_.schedules) {
      for (const Schedule* schedule : records_to_plan(name)) {
        point_.schedule = schedule;
        point_.chunks = schedule->min_chunks;
        if (!divides) {
          const std::string fault = fault_of_sizes();
          if (!fault.empty()) return refuse(Rule::kModel, "{}", fault);
          divides = true;
        }
        // One device has no pipeline: its microbatches pass one after the other, and once is
        // enough, or two at a time.
        const bool alone = point_.pipeline == 1 && (schedule->min_chunks > 1 || on_one_device);
        if (!alone) choose_chunks();
        if (alone) choose_overlap_on_one_device();
        on_one_device = point_.pipeline == 1;
      }
    }
    refuse(Rule::kLayers, "no schedule and chunks that are tried put {} layers on pp {}",
           model_.num_layers, point_.pipeline);
  }

  [[nodiscard]] std::string fault_of_sizes() const {
    const Scenario scenario = scenario_of(question_, point_);
    const Modelled& modelled = *scenario.modelled;
    std::string fault = fault_of(modelled.model, modelled.context);
    return fault.empty() ? fault_of(modelled.model, modelled.context, modelled.state) : fault;
  }

  // True if the longest chunk has fewer layers than with one chunk less, ends counted or not.
  [[nodiscard]] bool shortens_chunks(int chunks) const {
    const auto longest = [](int layers, int stages) { return (layers + stages - 1) / stages; };
    const int stages = point_.pipeline * chunks;
    const int before = stages - point_.pipeline;
    return longest(model_.num_layers, stages) < longest(model_.num_layers, before) ||
           longest(model_.num_layers + 2, stages) < longest(model_.num_layers + 2, before);
  }

  [[nodiscard]] bool is_tried(int chunks) const {
    const Schedule& schedule = *point_.schedule;
    if (schedule.max_chunks == schedule.min_chunks) return true;
    if (!axes_.chunks.empty()) return std::ranges::count(axes_.chunks, chunks) > 0;
    return chunks <= kMostChunks || shortens_chunks(chunks);
  }

  void choose_chunks() {
    const Schedule& schedule = *point_.schedule;
    const int most = std::min(schedule.max_chunks, (model_.num_layers + 2) / point_.pipeline);
    for (int chunks = schedule.min_chunks; chunks <= most; ++chunks) {
      if (!is_tried(chunks)) continue;
      point_.chunks = chunks;
      choose_overlap();
    }
  }

  // Megatron-LM overlaps no more than one MTP layer.
  [[nodiscard]] bool may_overlap() const {
    const auto names = [](const OptionSpec& option) { return option.name == kExpertOverlap[0]; };
    return point_.expert > 1 && model_.mtp_layers <= 1 &&
           std::ranges::any_of(point_.schedule->options, names);
  }

  void choose_overlap() {
    for (const bool overlap : axes_.expert_overlap) {
      if (overlap && !may_overlap()) continue;
      point_.expert_overlap = overlap;
      choose_split();
    }
    point_.expert_overlap = false;
  }

  void choose_overlap_on_one_device() {
    if (!may_overlap() || std::ranges::count(axes_.expert_overlap, true) == 0) return;
    point_.expert_overlap = true;
    choose_split();
    point_.expert_overlap = false;
  }

  void choose_split() {
    const int stages = point_.pipeline * point_.chunks;
    for (const PlanSplit split : axes_.splits) {
      const bool even = model_.num_layers % stages == 0 || point_.pipeline == 1;
      if (split == PlanSplit::kEven && !even) continue;
      if (split == PlanSplit::kEvenWithEnds && (even || (model_.num_layers + 2) % stages != 0)) {
        continue;
      }
      if (split == PlanSplit::kBalanced && (point_.pipeline == 1 || stages > model_.num_layers))
        continue;
      point_.split = split;
      choose_vocabulary();
    }
  }

  void choose_vocabulary() {
    for (const VocabularyPlacement placement : axes_.vocabulary) {
      const bool supported =
          std::ranges::find(point_.schedule->vocabulary, placement,
                            &VocabularySupport::placement) != point_.schedule->vocabulary.end();
      if (is_sharded(placement) && (!supported || point_.pipeline == 1 || model_.mtp_layers > 0)) {
        continue;
      }
      point_.vocabulary = placement;
      choose_memory();
    }
  }

  // Parts of activations that modules offload are away already.
  [[nodiscard]] bool offloads_twice(bool offload) const {
    const bool of_schedule = point_.schedule->offloads();
    const bool of_modules = question_.base.modelled->context.offloaded.any();
    return (offload && of_schedule) || (of_modules && (offload || of_schedule));
  }

  void choose_memory() {
    for (const RecomputeGranularity recompute : axes_.recompute) {
      // Megatron-LM does not overlap what recomputes all.
      if (point_.expert_overlap && recompute == RecomputeGranularity::kFull) continue;
      point_.recompute = recompute;
      for (const bool offload : axes_.offload) {
        if (offloads_twice(offload) || (offload && point_.expert_overlap)) continue;
        point_.offload = offload;
        choose_sharding();
      }
      point_.offload = false;
      choose_modules();
    }
  }

  // Nothing is left to offload of layers that are recomputed whole.
  void choose_modules() {
    if (point_.recompute == RecomputeGranularity::kFull || offloads_twice(true) ||
        point_.expert_overlap) {
      return;
    }
    for (const OffloadModules modules : axes_.modules) {
      if (!modules.any()) continue;
      point_.modules = modules;
      choose_sharding();
    }
    point_.modules = {};
  }

  void choose_sharding() {
    if (axes_.sharding.empty()) {
      points_.push_back(point_);
      const bool several = point_.data * point_.context > 1;
      const bool alone = point_.pipeline == 1 && !point_.expert_overlap;
      if (!axes_.fsdp || !alone || !several) return;
      point_.sharding = ShardingStrategy::kOptimGradsParams;
      points_.push_back(point_);
      point_.sharding.reset();
      return;
    }
    for (const ShardingStrategy strategy : axes_.sharding) {
      point_.sharding = strategy;
      points_.push_back(point_);
      // A rank that is alone divides nothing.
      if (point_.data * point_.context == 1) break;
    }
    point_.sharding.reset();
  }

  const PlanQuestion& question_;
  const PlanAxes& axes_;
  const Transformer& model_;
  int node_;
  int seq_length_;
  PlanPoint point_;
  std::vector<PlanPoint> points_;
  PlanDivisions divisions_;
  Rule furthest_ = Rule::kNone;
};

}  // namespace

std::vector<std::string> schedules_to_plan() {
  std::vector<std::string> names;
  for (const std::string& name : schedule_names()) {
    const Schedule* schedule = find_schedule(name);
    const bool copies = schedule->place(2, schedule->min_chunks).directions() > 1;
    if (!copies && schedule->left_out_of_plan.empty()) names.push_back(name);
  }
  return names;
}

std::vector<RecomputeGranularity> recompute_to_plan(const Transformer& model) {
  if (model.traced) return {RecomputeGranularity::kNone, RecomputeGranularity::kFull};
  std::vector<RecomputeGranularity> all = PlanAxes{}.recompute;
  RecomputeGranularity modules = RecomputeModule::kLayerNorm;
  all.push_back(modules);
  if (model.experts) all.push_back(modules = modules | RecomputeModule::kMoeActivation);
  if (model.latent) all.push_back(modules | RecomputeModule::kLatentUp);
  return all;
}

std::vector<OffloadModules> modules_to_plan() {
  using enum OffloadModule;
  return {OffloadModules(), kAttentionNorm | kCoreAttention | OffloadModules(kAttentionProjection) |
                                OffloadModules(kMlpNorm)};
}

PlanSpace plan_space(const PlanQuestion& question) { return Space(question).run(); }

ParameterState state_of(const PlanQuestion& question, const PlanPoint& point) {
  ParameterState state = question.base.modelled->state;
  state.data = point.data;
  if (point.sharding) set_sharding(*point.sharding, state);
  if (question.axes.runs_on == Framework::kTorchtitan && state.sharded_weights) {
    shard_as_torchtitan(point.pipeline, point.context, state);
    if (!question.says_reshard) {
      state.reshard_after_forward = reshards_by_default(point.pipeline);
    }
  }
  if (state.shard_degree > 0) state.shard_degree = std::gcd(state.shard_degree, point.data);
  if (!state.distributed_optimizer) state.shard_degree = 0;
  return state;
}

bool takes_fewest_layers(const PlanQuestion& question, const PlanPoint& point) {
  return question.axes.fewest_layers && point.recompute == RecomputeGranularity::kFull &&
         !point.offload && !point.schedule->memory_limit && !point.schedule->offloads();
}

ExpertDispatcher dispatcher_of(const PlanQuestion& question, const PlanPoint& point) {
  if (point.expert * point.expert_tensor == 1) return ExpertDispatcher::kAllToAll;
  return point.dispatcher.value_or(question.dispatcher);
}

PlanExchange exchange_of(const PlanQuestion& question, const PlanPoint& point) {
  const LayerContext& context = question.base.modelled->context;
  return point.exchange.value_or(PlanExchange{context.exchange, context.hierarchy});
}

double PlanQuestion::schedule_limit_gib() const {
  return std::floor(100 * (surely_within() / kGiB)) / 100;
}

void dispatch_by(ExpertDispatcher dispatcher, const PlanQuestion& question, Scenario& scenario) {
  scenario.modelled->context.flex_dispatcher = dispatcher != ExpertDispatcher::kAllToAll;
  scenario.roofline->software.routing = question.routing.at(static_cast<size_t>(dispatcher));
}

Scenario scenario_of(const PlanQuestion& question, const PlanPoint& point, const Layout* layout) {
  Scenario scenario = question.base;
  ScheduleChoice choice;
  choice.name = point.schedule->name;
  choice.options = options_of(*point.schedule);
  if (point.expert_overlap) {
    for (const std::string_view name : kExpertOverlap) choice.options[std::string(name)] = true;
  }
  choice.chunks = point.chunks;
  choice.recompute =
      Recompute{.granularity = point.recompute, .layers = {.first = point.recompute_layers}};
  if (point.offload) choice.offload = scenario.offload = Offload{};
  if (point.schedule->memory_limit)
    choice.memory_limit = TotalLimit{question.schedule_limit_gib() * kGiB};
  scenario.schedules = {std::move(choice)};
  scenario.parallel = {.pipeline = point.pipeline,
                       .tensor = point.tensor,
                       .data = point.data,
                       .pipelines = 1,
                       .context = point.context};
  scenario.batch.micro_batch_size = point.micro_batch;
  scenario.batch.microbatches =
      static_cast<int>(question.global_batch / point.data / point.micro_batch);
  scenario.vocabulary = point.vocabulary;
  Modelled& modelled = *scenario.modelled;
  if (modelled.model.experts) dispatch_by(dispatcher_of(question, point), question, scenario);
  take_sizes(scenario, modelled);
  modelled.state = state_of(question, point);
  const PlanExchange exchange = exchange_of(question, point);
  modelled.context.exchange = exchange.kind;
  if (point.exchange) modelled.context.window_exchange.reset();
  modelled.context.hierarchy = exchange.hierarchy;
  if (point.modules.any()) modelled.context.offloaded = point.modules;
  modelled.context.expert = point.expert;
  modelled.context.expert_tensor = point.expert_tensor;
  modelled.split = {};
  if (point.split == PlanSplit::kEvenWithEnds) {
    modelled.split.even.count_embedding = modelled.split.even.count_loss = true;
  }
  if (layout != nullptr) {
    modelled.split.way = LayerSplit::Way::kPlanned;
    modelled.split.planned = *layout;
  }
  return scenario;
}

Scenario scenario_without_offload(const PlanQuestion& question, PlanPoint point,
                                  const Layout* layout) {
  point.offload = false;
  Scenario scenario = scenario_of(question, point, layout);
  if (point.schedule->offloads()) {
    ScheduleChoice& choice = scenario.schedules.front();
    choice.name = point.schedule->without_offload;
    choice.options = point.schedule->without_offload_options;
  }
  return scenario;
}

}  // namespace pipesim
