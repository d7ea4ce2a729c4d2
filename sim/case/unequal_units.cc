#include "sim/case/unequal_units.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "sim/case/ranks.h"
#include "sim/case/stage_costs.h"
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

// A slice's part of the seconds of an even one, of a pass of which `share` is causal attention.
double of_slice(double share, int slice, int slices) {
  return 1 - share + share * (2 * slice + 1) / slices;
}

StageCost sliced(StageCost stage, double share, int slice, int slices) {
  const Seconds before = stage.forward + stage.backward_input + stage.backward_weight;
  const double factor = of_slice(share, slice, slices);
  for (Seconds* seconds : {&stage.forward, &stage.backward_input}) *seconds = factor * *seconds;
  if (stage.recompute) *stage.recompute = factor * *stage.recompute;
  if (stage.overlapped) {
    const Seconds now = stage.forward + stage.backward_input + stage.backward_weight;
    *stage.overlapped = now / before * *stage.overlapped;
  }
  return stage;
}

class UnequalUnits {
 public:
  explicit UnequalUnits(Case& made)
      : made_(made), scenario_(*made.scenario), splits_(made.problem.shape.splits) {}

  void add() {
    std::vector<std::uint32_t> kinds = scenario_.roofline ? modelled() : given();
    std::vector<std::uint32_t> of_unit;
    for (const std::uint32_t kind : kinds) {
      for (int slice = 0; slice < splits_; ++slice) {
        of_unit.push_back(kind * slices() + static_cast<std::uint32_t>(slices() > 1 ? slice : 0));
      }
    }
    const std::vector<StageCost> before = made_.problem.stages;
    set_kinds(made_.problem, std::move(kinds_), std::move(of_unit));
    scale_blocks(before);
  }

  // Whether the slices of a sequence differ.
  [[nodiscard]] bool slices_differ() const {
    if (splits_ == 1) return false;
    return scenario_.roofline ? made_.context->causal : scenario_.cost.attention_share > 0;
  }

 private:
  [[nodiscard]] std::uint32_t slices() const {
    return slices_differ() ? static_cast<std::uint32_t>(splits_) : 1;
  }
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
      for (int slice = 0; std::cmp_less(slice, slices()); ++slice) add_given(factor, slice);
    }
    return numbers;
  }

  void add_given(double factor, int slice) {
    UnitKind kind{factor, {}};
    for (int vs = 0; vs < made_.placement.virtual_stages(); ++vs) {
      const StageCost& base = made_.problem.stages[vs];
      StageCost stage = scaled(base, factor);
      if (slices_differ()) stage = sliced(stage, scenario_.cost.attention_share, slice, splits_);
      // Of a message in bytes the latency stays.
      if (scenario_.cost.message && base.transfer > Seconds(0)) {
        const Seconds latency = latency_of(vs);
        stage.transfer = latency + factor * (base.transfer - latency);
      }
      kind.stages.push_back(stage);
    }
    kinds_.push_back(std::move(kind));
  }

  [[nodiscard]] Seconds latency_of(int vs) const {
    const Placement& place = made_.placement;
    return route(*scenario_.cluster, rank_of(scenario_, 0, place.device(vs)),
                 rank_of(scenario_, 0, place.device(place.downstream(vs))))
        .latency;
  }

  std::vector<std::uint32_t> modelled() {
    std::vector<Documents> all(microbatches());
    if (scenario_.batch.unequal) all = scenario_.batch.unequal->documents;
    std::vector<Documents> different;
    std::vector<std::uint32_t> numbers = numbered(all, different);
    for (const Documents& documents : different) {
      for (int slice = 0; std::cmp_less(slice, slices()); ++slice) add_modelled(documents, slice);
    }
    return numbers;
  }

  void add_modelled(const Documents& documents, int slice) {
    Case one = made_;
    LayerContext& context = *one.context;
    if (!documents.empty()) {
      context = packed_microbatch(scenario_.modelled->context, documents);
      context.recompute = made_.context->recompute;
    }
    context.slice = slice;
    context.slices = static_cast<int>(slices());
    one.setting->context = context;
    add_stage_costs(one);
    const double size = layer_tokens(context) / layer_tokens(*made_.context);
    kinds_.push_back({size, std::move(one.problem.stages)});
  }

  Case& made_;
  const Scenario& scenario_;
  int splits_;
  std::vector<UnitKind> kinds_;
};

}  // namespace

LayerContext packed_microbatch(LayerContext context, std::span<const int> documents) {
  const long halves = context.context > 1 ? 2L * context.context : 1;
  const long parts = (context.sequence_parallel ? context.tensor : 1L) * context.context;
  const long step = std::lcm(halves, parts);
  context.micro_batch_size = 1;
  context.seq_length = static_cast<int>((tokens_of(documents) + step - 1) / step * step);
  context.documents = documents;
  return context;
}

LayerContext longest_microbatch(const LayerContext& context,
                                std::span<const Documents> microbatches) {
  const auto longest = std::ranges::max_element(
      microbatches, {}, [](const Documents& documents) { return tokens_of(documents); });
  return packed_microbatch(context, *longest);
}

void add_unequal_units(Case& made) {
  const auto& unequal = made.scenario->batch.unequal;
  if (unequal && std::cmp_not_equal(unequal->microbatches(), made.problem.shape.microbatches)) {
    throw LogicError("as many microbatches were drawn as the scenario had then");
  }
  UnequalUnits units(made);
  if (unequal || units.slices_differ()) units.add();
}

}  // namespace pipesim
