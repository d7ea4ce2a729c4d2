#include "validate/papers/vocabulary_parallelism/shared_vocabulary.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string>
#include <utility>

#include "models/stage_cost.h"
#include "models/step_cost.h"
#include "models/vocabulary_share.h"
#include "sim/pipeline/evaluate.h"
#include "sim/pipeline/schedule.h"
#include "sim/scenario/read_model.h"
#include "validate/papers/paper_data.h"

namespace pipesim {
namespace {

int size(YamlMap& map, const char* key) {
  return static_cast<int>(map.require(key, "a whole number").integer(1, 1 << 24));
}

std::vector<Seconds> microseconds(YamlMap& map, const char* key, int devices) {
  const YamlValue value = map.require(key, "microseconds of every device");
  std::vector<Seconds> seconds;
  for (const YamlValue& each : value.list()) seconds.emplace_back(each.number(0, 1e12) * 1e-6);
  if (std::cmp_not_equal(seconds.size(), devices)) value.fail("expected one for every device");
  return seconds;
}

Transformer model_of(YamlMap& map, int seq) {
  const int hidden = size(map, "hidden");
  const int layers = size(map, "layers");
  for (const char* name : {"vp-4b", "vp-10b", "vp-21b"}) {
    Transformer model = find_model(name, map.value().where());
    if (model.hidden_size != hidden || model.num_layers != layers) continue;
    model.vocab_size = size(map, "vocab");
    model.max_position_embeddings = seq;
    return model;
  }
  map.value().fail("no model of the paper has these sizes");
}

// S and T are measured together; of their three matmuls vocab-2 runs two before the barrier.
double share_of_s(VocabularyPlacement placement) {
  return placement == VocabularyPlacement::kVocab2 ? 2.0 / 3 : 1.0 / 3;
}

}  // namespace

std::optional<VocabularyPlacement> sharded_method(std::string_view name) {
  using enum VocabularyPlacement;
  constexpr std::array<std::pair<std::string_view, VocabularyPlacement>, 6> kNames{
      {{"Vocab-1", kVocab1},
       {"synctwice", kVocab1},
       {"Vocab-2", kVocab2},
       {"vocab", kVocab2},
       {"Interlaced", kInterlaced},
       {"interlaced", kInterlaced}}};
  const auto* const found = std::ranges::find(kNames, name, &decltype(kNames)::value_type::first);
  return found == kNames.end() ? std::nullopt : std::optional(found->second);
}

Cell compare_measured_shares(const YamlValue& row, const Location& asked) {
  YamlMap map(row);
  const std::string method = map.require("method_csv", "vocab, synctwice or interlaced").text();
  const auto placement = sharded_method(method);
  if (!placement) row.fail("not a method that divides the vocabulary");
  Problem problem;
  const int devices = size(map, "gpus");
  problem.shape = {devices, 1, size(map, "num_microbatches"), 1};
  problem.placement = Placement::looped(devices, 1);
  CostSetting setting;
  setting.context.seq_length = size(map, "seq");
  setting.context.micro_batch_size = size(map, "micro_batch");
  setting.context.vocabulary_devices = devices;
  setting.state.gradients_in_fp32 = false;
  const Transformer model = model_of(map, setting.context.seq_length);
  const Hardware hardware = cluster_of_catalog("a100-roce", asked);
  const Seconds message = message_seconds(model, setting, hardware, 0, 1);

  const auto forward = microseconds(map, "F_us_per_stage", devices);
  const auto backward = microseconds(map, "B_us_per_stage", devices);
  const auto output = microseconds(map, "vocab_out_us_per_stage", devices);
  const auto input_forward = microseconds(map, "col28_us_per_stage", devices);
  const auto input_backward = microseconds(map, "col29_us_per_stage", devices);
  problem.vocabulary = *placement;
  const double early = share_of_s(*placement);
  for (size_t d = 0; d < forward.size(); ++d) {
    StageCost stage;
    stage.forward = forward[d];
    stage.backward_input = stage.backward_weight = backward[d] / 2;  // run as one
    if (d + 1 < forward.size()) stage.transfer = message;
    problem.stages.push_back(stage);
    problem.vocabulary_costs.push_back(
        {early * output[d], (1 - early) * output[d], input_forward[d], input_backward[d], {}});
  }
  // Interlaced passes hold the device for their collectives: they are in what was measured.
  if (*placement != VocabularyPlacement::kInterlaced) {
    problem.barriers = barrier_seconds(model, *placement, setting, hardware);
  }

  const Layout layout = even_layout(model, problem.placement, {});
  const LayerCosts costs = layer_costs(model, setting, hardware);
  Seconds step;
  for (int d = 0; d < devices; ++d) {
    step = std::max(
        step, step_cost(model, setting, hardware, layout, problem.placement, costs, d).total());
  }
  const Program program = find_schedule("1f1b")->plan(problem);
  Cell cell;
  cell.table = "Measured shares";
  cell.cell = fmt::format("{} GPUs, seq {}, vocabulary {}k, {}, ms", devices,
                          setting.context.seq_length, model.vocab_size / 1000, to_text(*placement));
  cell.published = map.require("iter_ms", "milliseconds").number(1e-9, 1e12);
  cell.simulated = (evaluate(program, problem).makespan + step).value() * 1e3;
  cell.digits = 1;
  cell.relative = true;
  cell.must_agree = true;
  cell.worst = 0.02;
  return cell;
}

}  // namespace pipesim
