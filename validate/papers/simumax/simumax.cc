#include "validate/papers/simumax/simumax.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <optional>
#include <sstream>

#include "sim/read/model.h"
#include "sim/read/yaml.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/paper_keys.h"
#include "validate/papers/peak_memory.h"
#include "validate/papers/simulate_cell.h"
#include "validate/papers/timed_run.h"

namespace pipesim::simumax {
namespace {

constexpr int kSequence = 4096;  // the launch scripts' own

struct Row {
  std::string name;
  Transformer model;
  CostSetting setting;
  int pipeline = 1;
  int chunks = 1;
  int microbatches = 1;
};

// A row's key, or where it has none the part of its name that begins with `letters`, as in
// "llama3_70b_l8_tp1_pp4_vp2_dp2_mbc8_sync".
std::optional<int> size(YamlMap& map, const char* key, const std::string& letters) {
  const auto value = map.find(key);
  if (value && !value->is_null()) return static_cast<int>(value->integer(1, 1 << 24));
  std::istringstream parts(map.require("case", "a name").text());
  for (std::string part; std::getline(parts, part, '_');) {
    const std::string digits = part.starts_with(letters) ? part.substr(letters.size()) : "";
    const bool whole = !digits.empty() && digits.size() < 8 &&
                       digits.find_first_not_of("0123456789") == std::string::npos;
    if (whole) return std::stoi(digits);
  }
  return std::nullopt;
}

// The same of a number of ranks or chunks: 1 where nothing is said.
int ranks(YamlMap& map, const char* key) { return std::max(1, size(map, key, key).value_or(1)); }

std::string model_name(YamlMap& map) {
  if (const auto model = map.find("model")) return model->text();
  // The part before the sizes.
  std::string name = map.require("case", "a name").text();
  for (size_t at = name.find('_'); at != std::string::npos; at = name.find('_', at + 1)) {
    const std::string next = name.substr(at + 1, 2);
    if (next == "tp" || (next[0] == 'l' && std::isdigit(static_cast<unsigned char>(next[1])) != 0))
      return name.substr(0, at);
  }
  return name;
}

// "llama3_70b" is llama3-70b here, "deepseekv2" deepseek-v2.
Transformer model_of(const std::string& written, const Location& where) {
  std::string name = written;
  std::ranges::replace(name, '_', '-');
  const std::string before = "deepseekv";
  if (name.starts_with(before)) name.replace(0, before.size(), "deepseek-v");
  Transformer model = find_model(name, where);
  model.mtp_layers = 0;
  if (model.experts)
    model.experts->first_dense_layers = std::min(1, model.experts->first_dense_layers);
  return model;
}

// Settings of the launch scripts, which the data file lists.
CostSetting setting_of(YamlMap& map) {
  CostSetting setting;
  LayerContext& context = setting.context;
  context.seq_length = size(map, "seq", "seq").value_or(kSequence);
  context.tensor = ranks(map, "tp");
  context.sequence_parallel = context.tensor > 1;
  context.context = ranks(map, "cp");
  context.exchange = ContextExchange::kHeads;
  context.expert = ranks(map, "ep");
  setting.state = {
      .data = ranks(map, "dp"), .gradients_in_fp32 = true, .distributed_optimizer = true};
  setting.fused_backward = true;
  // Experts padded to one size: the host waits for nothing, and none is fuller.
  setting.software = software_of_catalog("megatron-core-0.12");
  setting.software.routing = Seconds(0);
  setting.software.fullest = 1;
  return setting;
}

Row read_row(YamlMap& map) {
  Row row;
  row.name = map.require("case", "a name").text();
  row.model = model_of(model_name(map), map.value().where());
  row.model.num_layers = size(map, "layers", "l").value_or(row.model.num_layers);
  row.setting = setting_of(map);
  row.pipeline = ranks(map, "pp");
  row.chunks = ranks(map, "vp");
  row.microbatches = size(map, "micro_batches", "mbc").value_or(1);
  return row;
}

Seconds iteration(const Row& row, const Hardware& hardware) {
  TimedRun run;
  run.model = row.model;
  run.setting = row.setting;
  run.hardware = hardware;
  run.schedule = row.chunks > 1 ? "interleaved-1f1b" : "1f1b";
  run.devices = row.pipeline;
  run.chunks = row.chunks;
  run.microbatches = row.microbatches;
  return iteration_seconds(run);
}

Bytes allocated(const Row& row) {
  MeasuredRun run;
  run.model = row.model;
  run.context = row.setting.context;
  run.state = row.setting.state;
  run.schedule = row.chunks > 1 ? "interleaved-1f1b" : "1f1b";
  run.devices = row.pipeline;
  run.chunks = row.chunks;
  run.microbatches = row.microbatches;
  return allocated_at_peak(run);
}

void compare_row(std::vector<Cell>& cells, const YamlValue& value, const Hardware& hardware) {
  YamlMap map(value);
  const Row row = read_row(map);
  std::string fault = fault_of(row.model, row.setting.context);
  if (fault.empty()) fault = fault_of(row.model, row.setting.context, row.setting.state);
  const auto add = [&](const char* key, const char* table, const char* unit, auto simulate) {
    const auto published = map.find(key);
    if (!published || published->is_null()) return;
    Cell cell;
    cell.table = fmt::format("{}, {}", table, row.model.name);
    cell.cell = row.name + unit;
    cell.published = published->number(1e-9, 1e12);
    cell.digits = 1;
    cell.relative = true;
    cell.note = fault.empty() ? "" : "not modelled: " + fault;
    if (fault.empty()) pipesim::simulate(cell, simulate);
    cells.push_back(cell);
  };
  add("real_ms", "Time", ", ms", [&] { return iteration(row, hardware).value() * 1e3; });
  add("real_alloc_GiB", "Memory", ", GiB", [&] { return allocated(row) / kGiB; });
  finish_row(map);
}

}  // namespace

std::vector<Cell> compare(const std::string& folder, const Location& asked) {
  const YamlSource source = YamlSource::from_file(paper_file(folder, "simumax"), asked);
  const Hardware hardware = cluster_of_catalog("hgx-b200", asked);
  YamlMap root(source.root());
  const YamlValue rows = root.require("rows", "a list");
  const auto extra = root.find("extra");
  finish_paper(root, "simumax");
  std::vector<Cell> cells;
  for (const YamlValue& row : rows.list()) compare_row(cells, row, hardware);
  if (extra) {
    for (const YamlValue& row : extra->list()) compare_row(cells, row, hardware);
  }
  return cells;
}

}  // namespace pipesim::simumax
