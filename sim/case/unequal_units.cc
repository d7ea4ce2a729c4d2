#include "sim/case/unequal_units.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <utility>

#include "models/layer_work.h"
#include "sim/case/given_costs.h"
#include "sim/case/ranks.h"
#include "sim/case/stage_costs.h"
#include "sim/core/error.h"
#include "sim/pipeline/unequal_units.h"

namespace pipesim {
namespace {

long tokens_of(std::span<const int> documents) {
  return std::accumulate(documents.begin(), documents.end(), 0L);
}

// Numbers values in the order in which they first come, and says the number of each.
template <class T>
std::vector<std::uint32_t> numbered(const std::vector<T>& values, std::vector<T>& different) {
  std::map<T, std::uint32_t> known;
  std::vector<std::uint32_t> numbers;
  for (const T& value : values) {
    const auto next = static_cast<std::uint32_t>(different.size());
    const auto [at, is_new] = known.try_emplace(value, next);
    if (is_new) different.push_back(value);
    numbers.push_back(at->second);
  }
  return numbers;
}

// A slice of the sequence, which begins and ends where its ranks can divide what is between.
LayerContext sliced(LayerContext context, const Slice& slice, const ScheduleChoice& choice) {
  const int step = token_step(context);
  const auto token = [&](long at) {
    const double steps =
        static_cast<double>(at * context.seq_length) / (static_cast<double>(slice.of) * step);
    return static_cast<int>(std::lround(steps)) * step;
  };
  context.whole = context.seq_length;
  context.before = token(slice.begin);
  context.seq_length = token(slice.end) - context.before;
  if (context.seq_length > 0) return context;
  throw InputError(
      choice.where,
      fmt::format("{}: a slice of {} of {} parts of a sequence of {} tokens is less than the {} "
                  "that its ranks can divide: cut it into fewer, or longer ones",
                  choice.name, slice.end - slice.begin, slice.of, context.whole, step));
}

// A slice's pass to what goes by its length. Causal attention sees all that comes before.
double to_even(const PassParts& parts, const Slice& slice) {
  const auto of = static_cast<double>(slice.of);
  const double sees = parts.attention * static_cast<double>(slice.begin + slice.end) / of;
  const double more = of / static_cast<double>(slice.end - slice.begin) - 1;
  return 1 - parts.attention + sees + parts.fixed * more;
}

StageCost at_position(StageCost stage, const SliceParts& parts, const Slice& slice) {
  const auto apart = [&stage] {
    return stage.forward + stage.backward_input + stage.backward_weight;
  };
  const Seconds before = apart();
  const double forward = to_even(parts.forward, slice);
  stage.forward = forward * stage.forward;
  stage.backward_input = to_even(parts.backward_input, slice) * stage.backward_input;
  stage.backward_weight = to_even(parts.backward_weight, slice) * stage.backward_weight;
  if (stage.recompute) *stage.recompute = forward * *stage.recompute;
  if (stage.overlapped) *stage.overlapped = apart() / before * *stage.overlapped;
  return stage;
}

Seconds latency_of(const Case& made, int vs) {
  const Placement& place = made.placement;
  return route(*made.scenario->cluster, rank_of(*made.scenario, 0, place.device(vs)),
               rank_of(*made.scenario, 0, place.device(place.downstream(vs))))
      .latency;
}

// To a slice of as many as there are: 1.
double length_to_even(const Case& made, const Slice& slice) {
  return static_cast<double>((slice.end - slice.begin) * made.problem.shape.splits) /
         static_cast<double>(slice.of);
}

// True if slices of one length cost other than that part of a whole sequence.
bool goes_by_position(const GivenCost& cost) {
  return cost.attention.forward > 0 || cost.attention.backward_input > 0 || cost.fixed.any();
}

std::vector<StageCost> given_slice(const Case& made, double factor, const Slice& slice) {
  const GivenCost& cost = made.scenario->cost;
  const double size = factor * length_to_even(made, slice);
  std::vector<StageCost> stages;
  for (size_t vs = 0; vs < made.problem.stages.size(); ++vs) {
    const StageCost& base = made.problem.stages[vs];
    StageCost& stage = stages.emplace_back(scaled(base, size));
    if (goes_by_position(cost)) {
      stage = at_position(stage, slice_parts(made, static_cast<int>(vs)), slice);
    }
    // A given time is of one message, however long the slice; of bytes the latency stays.
    stage.transfer = factor * base.transfer;
    if (cost.message && base.transfer > Seconds(0)) {
      const Seconds latency = latency_of(made, static_cast<int>(vs));
      stage.transfer = latency + size * (base.transfer - latency);
    }
  }
  return stages;
}

// The documents and images of one uneven microbatch.
struct Microbatch {
  Documents documents = {};
  std::optional<int> images = {};
  friend auto operator<=>(const Microbatch&, const Microbatch&) = default;
};

UnitKind modelled_slice(const Case& made, const Microbatch& microbatch, const Slice& slice) {
  const bool whole = slice.end - slice.begin == slice.of;
  const Transformer& model = made.scenario->modelled->model;
  if (!whole && model.bidirectional) {
    throw InputError(made.choice.where, fmt::format("{}: a sequence whose tokens attend to those "
                                                    "behind them cannot be split",
                                                    made.choice.name));
  }
  if (!whole && model.encoder) {
    throw InputError(made.choice.where,
                     fmt::format("{}: sequence splits are not known beside an encoder: encoder: "
                                 "{{images: 0}} leaves it out",
                                 made.choice.name));
  }
  Case one = made;
  LayerContext& context = *one.context;
  if (!microbatch.documents.empty()) {
    context = packed_microbatch(made.scenario->modelled->context, microbatch.documents);
    context.recompute = made.context->recompute;
    context.recomputed_layers = made.context->recomputed_layers;
  }
  context.images = microbatch.images;
  one.setting->context = whole ? context : sliced(context, slice, made.choice);
  find_layer_costs(one);
  one.parts = layer_tokens(context) / layer_tokens(one.setting->context);
  add_stage_costs(one);
  const double size =
      made.problem.shape.splits * layer_tokens(one.setting->context) / layer_tokens(*made.context);
  return {size, std::move(one.problem.stages)};
}

// The slices of every microbatch; one of them all where they cost alike.
std::vector<Slice> slices_of(const Case& made) {
  const Scenario& scenario = *made.scenario;
  const int splits = made.problem.shape.splits;
  std::vector<long> lengths = made.choice.slices;
  if (lengths.empty()) lengths.assign(static_cast<size_t>(splits), 1);
  const bool alike = std::ranges::count(lengths, lengths.front()) == splits;
  const SliceShare& attention = scenario.cost.attention;
  const bool placeless = attention.forward == 0 && attention.backward_input == 0;
  if (alike && !scenario.roofline && placeless) return {{0, 1, splits}};
  const long all = std::accumulate(lengths.begin(), lengths.end(), 0L);
  std::vector<Slice> slices;
  long begin = 0;
  for (const long length : lengths) {
    slices.push_back({begin, begin + length, all});
    begin += length;
  }
  return slices;
}

class UnequalUnits {
 public:
  explicit UnequalUnits(Case& made)
      : made_(made), scenario_(*made.scenario), slices_(slices_of(made)) {}

  void add() {
    const std::vector<std::uint32_t> kinds = scenario_.roofline ? modelled() : given();
    const auto slices = static_cast<std::uint32_t>(slices_.size());
    const auto splits = static_cast<std::uint32_t>(made_.problem.shape.splits);
    std::vector<std::uint32_t> of_unit;
    for (const std::uint32_t kind : kinds) {
      for (std::uint32_t slice = 0; slice < splits; ++slice) {
        of_unit.push_back(kind * slices + std::min(slice, slices - 1));
      }
    }
    const std::vector<StageCost> before = made_.problem.stages;
    set_kinds(made_.problem, std::move(kinds_), std::move(of_unit));
    scale_blocks(before);
  }

  [[nodiscard]] bool slices_differ() const { return slices_.size() > 1; }

 private:
  // Blocks were timed of the units that `before` is of: now they are of those planned with.
  void scale_blocks(const std::vector<StageCost>& before) {
    if (made_.problem.blocks.empty()) return;
    const Placement& place = made_.placement;
    const auto apart = [](const std::vector<StageCost>& stages, int forward, int backward) {
      const StageCost& back = stages[backward];
      return stages[forward].forward + back.backward_input + back.backward_weight;
    };
    size_t next = 0;
    for (int vs = 0; vs < place.virtual_stages(); ++vs) {
      for (int chunk = 0; chunk < place.chunks(); ++chunk) {
        const int other = place.beside(vs, chunk);
        Seconds& block = made_.problem.blocks[next++];
        block = apart(made_.problem.stages, vs, other) / apart(before, vs, other) * block;
      }
    }
  }

  [[nodiscard]] size_t microbatches() const {
    return static_cast<size_t>(scenario_.batch.microbatches);
  }

  // The number of every microbatch among the different ones, whose kinds it adds slice by slice.
  std::vector<std::uint32_t> given() {
    std::vector<double> all(microbatches(), 1);
    if (scenario_.batch.unequal) all = scenario_.batch.unequal->factors;
    std::vector<double> different;
    std::vector<std::uint32_t> numbers = numbered(all, different);
    for (const double factor : different) {
      for (const Slice& slice : slices_) {
        kinds_.push_back(
            {factor * length_to_even(made_, slice), given_slice(made_, factor, slice)});
      }
    }
    return numbers;
  }

  std::vector<std::uint32_t> modelled() {
    std::vector<Microbatch> all(microbatches());
    if (const auto& unequal = scenario_.batch.unequal) {
      for (size_t i = 0; i < unequal->documents.size(); ++i) {
        all[i].documents = unequal->documents[i];
      }
      for (size_t i = 0; i < unequal->images.size(); ++i) all[i].images = unequal->images[i];
    }
    std::vector<Microbatch> different;
    std::vector<std::uint32_t> numbers = numbered(all, different);
    for (const Microbatch& microbatch : different) {
      for (const Slice& slice : slices_) {
        kinds_.push_back(modelled_slice(made_, microbatch, slice));
      }
    }
    return numbers;
  }

  Case& made_;
  const Scenario& scenario_;
  std::vector<Slice> slices_;
  std::vector<UnitKind> kinds_;
};

}  // namespace

int token_step(const LayerContext& context) {
  const int halves = context.context > 1 ? 2 * context.context : 1;
  const int parts = (context.sequence_parallel ? context.tensor : 1) * context.context;
  return std::lcm(halves, parts);
}

LayerContext packed_microbatch(LayerContext context, std::span<const int> documents) {
  const long step = token_step(context);
  context.micro_batch_size = 1;
  context.seq_length = static_cast<int>((tokens_of(documents) + step - 1) / step * step);
  context.documents = documents;
  return context;
}

LayerContext largest_microbatch(LayerContext context, const Batch& batch) {
  if (!batch.unequal) return context;
  const UnequalBatch& unequal = *batch.unequal;
  if (unequal.lengths()) {
    const auto longest = std::ranges::max_element(
        unequal.documents, {}, [](const Documents& documents) { return tokens_of(documents); });
    context = packed_microbatch(context, *longest);
  }
  if (!unequal.images.empty()) context.images = std::ranges::max(unequal.images);
  return context;
}

std::vector<StageCost> slice_costs(const Case& made, const Slice& slice) {
  return made.scenario->roofline ? modelled_slice(made, {}, slice).stages
                                 : given_slice(made, 1, slice);
}

double forward_work(const Case& made, const Slice& slice) {
  if (made.scenario->roofline) {
    const Transformer& model = made.scenario->modelled->model;
    return forward_flops(model, sliced(made.setting->context, slice, made.choice)).value();
  }
  double work = 0;
  for (size_t vs = 0; vs < made.problem.stages.size(); ++vs) {
    PassParts parts = slice_parts(made, static_cast<int>(vs)).forward;
    const double moving = (1 - parts.fixed) * made.problem.stages[vs].forward.value();
    if (parts.fixed < 1) parts.attention /= 1 - parts.fixed;
    parts.fixed = 0;
    work += moving * length_to_even(made, slice) * to_even(parts, slice);
  }
  return work;
}

void add_unequal_units(Case& made) {
  const auto& unequal = made.scenario->batch.unequal;
  if (unequal && std::cmp_not_equal(unequal->microbatches(), made.problem.shape.microbatches)) {
    throw LogicError("as many microbatches were drawn as the scenario had then");
  }
  UnequalUnits units(made);
  const bool fixed = made.scenario->cost.fixed.any() && made.problem.shape.splits > 1;
  if (unequal || units.slices_differ() || fixed) units.add();
}

}  // namespace pipesim
