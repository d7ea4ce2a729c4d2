#include "sim/case/sharding.h"

namespace pipesim {
namespace {

Seconds backward_of(const StageSharding& sharding) {
  return sharding.backward_input + sharding.backward_weight;
}

}  // namespace

std::vector<StageSharding> stage_shardings(const Case& made, const LayerCosts& costs) {
  const Transformer& model = made.scenario->modelled->model;
  const Hardware& hardware = *made.scenario->hardware;
  const Placement& place = made.placement;
  const LayerShardings layers = layer_shardings(model, *made.setting, hardware);
  std::vector<StageSharding> stages;
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    const bool is_slice = made.setting->context.whole > 0;  // whose own costs these are
    const ShardedRun run{.devices = place.devices(),
                         .recomputed = made.recomputes[vs],
                         .splits = is_slice ? 1 : made.parts};
    stages.push_back(stage_sharding(model, made.layout->stages[place.model_stage(vs)], costs,
                                    layers, *made.setting, hardware, run));
  }
  return stages;
}

void add_sharding(Case& made, const LayerCosts& costs) {
  const Placement& place = made.placement;
  const std::vector<StageSharding> added = stage_shardings(made, costs);
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    StageCost& stage = made.problem.stages[vs];
    stage.forward += added[vs].forward;
    stage.backward_input += added[vs].backward_input;
    stage.backward_weight += added[vs].backward_weight;
    if (stage.overlapped) *stage.overlapped += added[vs].forward + backward_of(added[vs]);
  }
  if (is_sharded(made.problem.vocabulary)) {
    const VocabularySharding share =
        vocabulary_sharding(made.scenario->modelled->model, made.problem.vocabulary, *made.setting,
                            *made.scenario->hardware);
    for (VocabularyCost& cost : made.problem.vocabulary_costs) {
      cost.output_forward += share.output_forward;
      cost.output_backward += share.output_backward;
      cost.input_forward += share.input_forward;
      cost.input_backward += share.input_backward;
    }
  }
  for (size_t block = 0; block < made.problem.blocks.size(); ++block) {
    const int vs = static_cast<int>(block) / place.chunks();
    const int chunk = static_cast<int>(block) % place.chunks();
    const int other = place.beside(vs, chunk);
    made.problem.blocks[block] += added[vs].forward + backward_of(added[other]);
  }
}

}  // namespace pipesim
