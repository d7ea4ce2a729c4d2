#include "validate/papers/vocabulary_parallelism/vocabulary_parallelism.h"

#include <array>
#include <fmt/format.h>

#include "sim/scenario/read_model.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/peak_memory.h"
#include "validate/papers/vocabulary_parallelism/shared_vocabulary.h"

namespace pipesim {
namespace {

constexpr std::array kVocabularies{32000, 64000, 128000, 256000};

struct Table {
  const char* key;
  const char* name;
  const char* schedule;
  int chunks;
  std::array<std::pair<int, const char*>, 3> models;  // by GPUs
};
constexpr std::array<Table, 2> kTables{
    {{"table5_1f1b", "Table 5 memory", "1f1b", 1, {{{8, "vp-4b"}, {16, "vp-10b"}, {32, "vp-21b"}}}},
     {"table6_vhalf",
      "Table 6 memory",
      "v-half",
      2,
      {{{16, "vp-7b"}, {24, "vp-16b"}, {32, "vp-30b"}}}}}};

// The artifact's settings: fp16 (gradients of 16 bits), flash attention, one sample a microbatch.
// Its dropout rate is 0; masks are counted all the same (docs/model.md, "Measured memory").
MeasuredRun run_of(const Table& table, int gpus, int seq, int vocabulary, const Location& where) {
  MeasuredRun run;
  for (const auto& [devices, model] : table.models) {
    if (devices == gpus) run.model = find_model(model, where);
  }
  if (run.model.num_layers == 0) {
    throw InputError(where, fmt::format("the paper has no run on {} GPUs", gpus));
  }
  run.model.vocab_size = vocabulary;
  run.model.max_position_embeddings = seq;
  run.schedule = table.schedule;
  run.chunks = table.chunks;
  run.devices = gpus;
  run.microbatches = 128;
  run.context.micro_batch_size = 1;
  run.context.seq_length = seq;
  run.context.dropout = true;
  run.state.gradients_in_fp32 = false;
  return run;
}

std::optional<VocabularyPlacement> placement_of(const std::string& method) {
  if (method == "Baseline") return VocabularyPlacement::kFirstLast;
  if (method == "Redis") return VocabularyPlacement::kRedistributed;
  return sharded_method(method);
}

void compare_row(std::vector<Cell>& cells, const Table& table, const YamlValue& value) {
  YamlMap map(value);
  const std::string method = map.require("method", "Baseline, Redis, ...").text();
  const int gpus = static_cast<int>(map.require("gpus", "GPUs").integer(1, 1 << 16));
  const int seq = static_cast<int>(map.require("seq", "sequence length").integer(1, 1 << 24));
  const YamlValue memory = map.require("peak_mem_gb", "gigabytes for every vocabulary");
  const auto gigabytes = memory.list();
  if (gigabytes.size() != kVocabularies.size()) memory.fail("expected one for every vocabulary");
  for (size_t i = 0; i < kVocabularies.size(); ++i) {
    Cell cell;
    cell.table = table.name;
    cell.cell = fmt::format("{} GPUs, seq {}, vocabulary {}k, {}, GiB", gpus, seq,
                            kVocabularies[i] / 1000, method);
    cell.published = gigabytes[i].number(0, 1e6);
    cell.digits = 2;
    cell.relative = true;
    cell.note = "not modelled: no such method";
    if (const auto placement = placement_of(method)) {
      const bool moved = *placement == VocabularyPlacement::kRedistributed;
      cell.note = moved ? "as the baseline: the first GPU holds most, and no fewer layers" : "";
      MeasuredRun run = run_of(table, gpus, seq, kVocabularies[i], value.where());
      run.vocabulary = *placement;
      cell.simulated = allocated_at_peak(run) / kGiB;
      cell.must_agree = true;
      cell.median = 0.06;
    }
    cells.push_back(cell);
  }
}

}  // namespace

std::vector<Cell> compare_vocabulary_parallelism(const std::string& folder, const Location& asked) {
  const YamlSource source =
      YamlSource::from_file(paper_file(folder, "vocabulary_parallelism"), asked);
  YamlMap root(source.root());
  std::vector<Cell> cells;
  for (const Table& table : kTables) {
    if (const auto rows = root.find(table.key)) {
      for (const YamlValue& row : rows->list()) compare_row(cells, table, row);
    }
  }
  if (const auto table = root.find("table3_vocab_layer_scaling_factor_pct_vocab256k")) {
    compare_scaling(cells, *table, asked);
  }
  if (const auto rows = root.find("exp_one_host_csv")) {
    compare_measured_stages(cells, *rows, asked);
  }
  if (cells.empty()) root.value().fail("no table of this paper in this file");
  return cells;
}

}  // namespace pipesim
