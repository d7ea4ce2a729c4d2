#include "validate/papers/vocabulary_parallelism/rows.h"

#include <fmt/format.h>

#include "sim/read/model.h"
#include "validate/papers/vocabulary_parallelism/host_runs.h"

namespace pipesim::vocabulary_parallelism {
namespace {

struct Table {
  const char* key;
  const char* name;
  const char* schedule;
  int chunks;
  const char* software;                               // of the public code that ran it
  std::array<std::pair<int, const char*>, 3> models;  // by GPUs
};
// 1F1B runs as Megatron-Core with Transformer Engine's attention. The branch with V-Half asks for
// legacy models, a local transformer and flash-attn itself (its pretrain_zero_bubble.sh).
constexpr const char* kTransformerEngine = "megatron-core-2023";
constexpr const char* kLegacyModels = "megatron-deepspeed-2023";
constexpr std::array<Table, 2> kTables{{{"table5_1f1b",
                                         "Table 5",
                                         "1f1b",
                                         1,
                                         kTransformerEngine,
                                         {{{8, "vp-4b"}, {16, "vp-10b"}, {32, "vp-21b"}}}},
                                        {"table6_vhalf",
                                         "Table 6",
                                         "v-half",
                                         2,
                                         kLegacyModels,
                                         {{{16, "vp-7b"}, {24, "vp-16b"}, {32, "vp-30b"}}}}}};

std::vector<Printed> numbers(YamlMap& map, const char* key, double most) {
  const auto value = map.find(key);
  if (!value || value->is_null()) return {};
  std::vector<Printed> all;
  for (const YamlValue& each : value->list()) all.push_back(read_printed(each, most));
  if (all.size() != kVocabularies.size()) value->fail("expected one for every vocabulary");
  return all;
}

MethodRow read_row(const Table& table, const YamlValue& value) {
  YamlMap map(value);
  MethodRow row;
  row.table = table.name;
  row.schedule = table.schedule;
  row.chunks = table.chunks;
  row.software = table.software;
  const YamlValue method = map.require("method", "Baseline, Redis, ...");
  row.method = method.choice(method_names(Naming::kPaper));
  row.placement = placement_of_method(row.method);
  row.gpus = static_cast<int>(map.require("gpus", "GPUs").integer(1, 1 << 16));
  row.seq = static_cast<int>(map.require("seq", "sequence length").integer(1, 1 << 24));
  for (const auto& [devices, model] : table.models) {
    if (devices != row.gpus) continue;
    row.model_name = model;
    row.model = find_model(model, value.where());
  }
  if (row.model_name.empty()) {
    row.fault = fmt::format("the paper's {} is of {}, {} and {} GPUs, and of {} no model is known",
                            table.name, table.models[0].first, table.models[1].first,
                            table.models[2].first, row.gpus);
  }
  row.model.max_position_embeddings = row.seq;
  row.peak_gb = numbers(map, "peak_mem_gb", 1e6);
  row.mfu_percent = numbers(map, "mfu_pct", 100);
  finish_row(map);
  return row;
}

}  // namespace

Transformer MethodRow::with_vocabulary(size_t i) const {
  Transformer whole = model;
  whole.vocab_size = kVocabularies[i];
  return whole;
}

std::string MethodRow::text(size_t i) const {
  return fmt::format("{} GPUs, seq {}, vocabulary {}k, {}", gpus, seq, kVocabularies[i] / 1000,
                     method);
}

std::optional<double> number_at(const std::vector<Printed>& row, size_t vocabulary) {
  if (vocabulary >= row.size() || row[vocabulary].kind != Printed::Kind::kNumber) {
    return std::nullopt;
  }
  return row[vocabulary].number;
}

std::vector<MethodRow> read_rows(YamlMap& root) {
  std::vector<MethodRow> all;
  for (const Table& table : kTables) {
    const auto rows = root.find(table.key);
    if (!rows) continue;
    for (const YamlValue& row : rows->list()) all.push_back(read_row(table, row));
  }
  return all;
}

}  // namespace pipesim::vocabulary_parallelism
