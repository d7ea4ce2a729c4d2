// Table 3: how well vocabulary layers divide over GPUs.
#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "models/layer_cost.h"
#include "models/vocabulary_share.h"
#include "sim/read/model.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/paper_keys.h"
#include "validate/papers/vocabulary_parallelism/vocabulary_parallelism.h"

namespace pipesim {
namespace {

constexpr int kVocabulary = 256000;

CostSetting setting_of(int seq) {
  CostSetting setting;
  setting.context.seq_length = seq;
  setting.state.gradients_in_fp32 = false;
  setting.software = software_of_catalog("megatron-core-2023");
  return setting;
}

// Passes of the layer on one GPU.
Seconds whole_seconds(const Transformer& model, LayerKind kind, int seq, const Hardware& hardware) {
  const LayerCost cost = layer_cost(model, kind, setting_of(seq), hardware);
  return cost.forward.total() + cost.backward_input.total() + cost.backward_weight.total();
}

// Seconds of one of `parts` shares, without collectives between them.
Seconds part_seconds(const Transformer& model, LayerKind kind, VocabularyPlacement placement,
                     int seq, int parts, const Hardware& hardware) {
  CostSetting setting = setting_of(seq);
  setting.context.vocabulary_devices = parts;
  const VocabularyCost share = share_cost(model, placement, setting, hardware);
  return kind == LayerKind::kOutput ? share.output_forward + share.output_backward
                                    : share.input_forward + share.input_backward;
}

}  // namespace

void compare_scaling(std::vector<Cell>& cells, const YamlValue& table, const Location& asked) {
  const Hardware hardware = cluster_of_catalog("a100-roce", asked);
  constexpr std::array kModels{std::pair{8, "vp-4b"}, std::pair{16, "vp-10b"},
                               std::pair{32, "vp-21b"}};
  static const std::vector<std::string> kLayers{"Input", "Output-Vocab-1", "Output-Vocab-2"};
  YamlMap map(table);
  std::vector<std::string> columns;
  for (const YamlValue& each : map.require("columns", "8GPU, ...").list()) {
    const std::string column = each.text();
    const size_t digits = column.find_first_not_of("0123456789");
    if (digits == 0 || digits == std::string::npos || column.substr(digits) != "GPU") {
      each.fail(fmt::format("expected a number of GPUs as '8GPU', not '{}'", column));
    }
    columns.push_back(column);
  }
  for (const YamlValue& value : map.require("rows", "a list").list()) {
    YamlMap row(value);
    const int seq = static_cast<int>(row.require("seq", "sequence length").integer(1, 1 << 24));
    const std::string layer = row.require("layer", "Input, Output-Vocab-1, ...").choice(kLayers);
    const auto values = row.require("v", "a percentage for every column").list();
    if (values.size() != columns.size()) value.fail("not as many values as columns");
    finish_row(row);
    for (size_t i = 0; i < values.size(); ++i) {
      Cell cell;
      cell.table = "Table 3, " + layer;
      cell.cell = fmt::format("seq {}, {}, %", seq, columns[i]);
      cell.published = values[i].number(0, 1e4);
      cell.digits = 2;
      cell.relative = true;
      const auto* const model = std::ranges::find_if(kModels, [&](const auto& each) {
        return columns[i] == fmt::format("{}GPU", each.first);
      });
      if (model == kModels.end()) {
        cell.note = "not modelled: no model of the paper runs on as many GPUs";
      } else {
        const LayerKind kind = layer == "Input" ? LayerKind::kEmbedding : LayerKind::kOutput;
        Transformer shape = find_model(model->second, value.where());
        shape.vocab_size = kVocabulary;
        const auto placement =
            layer == "Output-Vocab-2" ? VocabularyPlacement::kVocab2 : VocabularyPlacement::kVocab1;
        const Seconds part = part_seconds(shape, kind, placement, seq, model->first, hardware);
        cell.simulated = 100 * (whole_seconds(shape, kind, seq, hardware) / part) / model->first;
      }
      cells.push_back(cell);
    }
  }
  finish_row(map);
}

}  // namespace pipesim
