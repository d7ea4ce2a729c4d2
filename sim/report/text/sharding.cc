#include "sim/report/text/sharding.h"

#include <fmt/format.h>
#include <vector>

#include "sim/case/sharding.h"
#include "sim/core/text.h"
#include "sim/report/text/aligned.h"
#include "sim/report/text/layer_parts.h"

namespace pipesim {
namespace {

std::string ranks_text(const GroupShape& group) {
  return fmt::format("{} ranks, {} in a node", group.ranks, group.ranks_per_node);
}

std::string groups_text(const CostSetting& setting, int node, bool experts) {
  const DataGroups groups = experts ? expert_groups(setting, node) : dense_groups(setting, node);
  std::string text = ranks_text(groups.shards);
  if (groups.replicas.ranks > 1) text += ", replicas: " + ranks_text(groups.replicas);
  return text;
}

VocabularySharding share_of(const Case& made) {
  return vocabulary_sharding(made.scenario->modelled->model, made.problem.vocabulary, *made.setting,
                             *made.scenario->hardware);
}

std::string layers_table(const Case& made) {
  const Transformer& model = made.scenario->modelled->model;
  const LayerShardings layers = layer_shardings(model, *made.setting, *made.scenario->hardware);
  std::vector<Row> rows{{"layer", "parameters", "of experts", "all-gather", "reduce-scatter"}};
  const KindCounts counts = count_all(model);
  for (const LayerKind kind : kLayerKinds) {
    if (counts[kind] == 0) continue;
    const LayerSharding& layer = layers[kind];
    const HeldParameters& held = layer.parameters;
    rows.push_back({name_of(kind), fmt::format("{:.2f} M", (held.dense + held.expert) * 1e-6),
                    fmt::format("{:.2f} M", held.expert * 1e-6),
                    made.setting->state.sharded_weights ? human(layer.gather) : "-",
                    made.setting->state.reduces_every_microbatch() ? human(layer.scatter) : "-"});
  }
  if (is_sharded(made.problem.vocabulary)) {
    const VocabularySharding share = share_of(made);
    rows.push_back({"share of a vocabulary matrix",
                    fmt::format("{:.2f} M", share.matrix.dense * 1e-6), "0.00 M",
                    made.setting->state.sharded_weights ? human(share.gather) : "-",
                    made.setting->state.reduces_every_microbatch() ? human(share.scatter) : "-"});
  }
  return aligned(rows);
}

// Seconds that passes of a device's share of the vocabulary wait for their parameters and
// gradients.
std::string share_line(const Case& made) {
  if (!is_sharded(made.problem.vocabulary)) return "";
  const VocabularySharding share = share_of(made);
  return fmt::format("vocabulary: IF waits {}, S {}, T {}, IB {}\n", human(share.input_forward),
                     human(share.output_forward), human(share.output_backward),
                     human(share.input_backward));
}

std::string stages_table(const Case& made) {
  std::vector<Row> rows{{"stage", "F waits", "B waits", "W waits"}};
  const std::vector<StageSharding> stages = stage_shardings(made, *made.costs);
  for (size_t vs = 0; vs < stages.size(); ++vs) {
    rows.push_back({fmt::format("{}", vs), human(stages[vs].forward),
                    human(stages[vs].backward_input), human(stages[vs].backward_weight)});
  }
  return aligned(rows);
}

}  // namespace

std::string sharding_text(const Case& made) {
  const CostSetting& setting = *made.setting;
  if (!setting.state.sharded_gradients) return "";
  const int node = made.scenario->hardware->interconnect.gpus_per_node;
  std::string text =
      fmt::format("sharding over data ranks: {}; {}\n", to_text(strategy_of(setting.state)),
                  groups_text(setting, node, false));
  if (made.scenario->modelled->model.experts) {
    text += fmt::format("  experts: {}\n", groups_text(setting, node, true));
  }
  return text + layers_table(made) +
         "what passes wait for of it, which F, B and W above include\n" + stages_table(made) +
         share_line(made) + "source: docs/reference/model.md, \"Sharding\"\n\n";
}

}  // namespace pipesim
