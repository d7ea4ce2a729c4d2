#include "validate/papers/korthikanti/korthikanti.h"

#include <array>
#include <fmt/format.h>

#include "models/layer_memory.h"
#include "sim/read/model.h"
#include "validate/papers/paper_data.h"

namespace pipesim {
namespace {

struct Measured {
  const char* key;
  const char* name;
  bool sequence;
  RecomputeGranularity recompute;
};
constexpr std::array<Measured, 4> kMeasured{
    {{"seq", "sequence parallel", true, RecomputeGranularity::kNone},
     {"sel", "selective", false, RecomputeGranularity::kSelective},
     {"seqsel", "sequence parallel, selective", true, RecomputeGranularity::kSelective},
     {"full", "full", false, RecomputeGranularity::kFull}}};

Bytes kept(const Transformer& model, LayerContext context, bool sequence,
           RecomputeGranularity recompute) {
  context.sequence_parallel = sequence;
  context.recompute = recompute;
  const LayerMemory memory = layer_memory(model, LayerKind::kDense, context);
  return recompute == RecomputeGranularity::kFull ? memory.checkpoint : memory.activation;
}

void compare_row(std::vector<Cell>& cells, const YamlValue& row) {
  YamlMap map(row);
  const std::string name = map.require("model", "the model's name").text();
  Transformer model =
      find_model(map.require("shape", "a name of the catalogue").text(), row.where());
  LayerContext context;
  const auto number = [&map](const char* key) {
    return static_cast<int>(map.require(key, "a size").integer(1, 1 << 20));
  };
  context.micro_batch_size = number("micro_batch");
  context.seq_length = number("seq_length");
  context.tensor = number("tp");
  context.flash_attention = false;
  context.dropout = true;
  const Bytes base = kept(model, context, false, RecomputeGranularity::kNone);
  for (const Measured& each : kMeasured) {
    Cell cell;
    cell.table = "Figure 7";
    cell.cell = fmt::format("{} {}, % of tensor parallelism alone", name, each.name);
    cell.published = map.require(each.key, "percent").number(0, 1000);
    cell.simulated = 100 * (kept(model, context, each.sequence, each.recompute) / base);
    cell.digits = 2;
    cell.relative = true;
    cell.must_agree = true;
    cell.worst = 0.03;
    cells.push_back(cell);
  }
  map.finish();
}

}  // namespace

std::vector<Cell> compare_korthikanti(const std::string& folder, const Location& asked) {
  const YamlSource source = YamlSource::from_file(paper_file(folder, "korthikanti"), asked);
  YamlMap root(source.root());
  std::vector<Cell> cells;
  const YamlValue rows = root.require("figure7_activation_percent", "one map per model");
  for (const YamlValue& row : rows.list()) compare_row(cells, row);
  root.finish();
  return cells;
}

}  // namespace pipesim
