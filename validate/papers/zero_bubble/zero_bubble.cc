#include "validate/papers/zero_bubble/zero_bubble.h"

#include <array>
#include <fmt/format.h>

#include "sim/core/error.h"
#include "sim/execution/evaluate.h"
#include "sim/planning/schedule.h"
#include "sim/read/yaml.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/paper_keys.h"
#include "validate/papers/zero_bubble/modelled.h"
#include "validate/papers/zero_bubble/profile.h"

namespace pipesim::zero_bubble {
namespace {

// How the authors' evaluator takes the cost of a column (docs/reference/model.md, "Zero Bubble
// Tables 5 and 8, Figure 9").
enum class CostRule { kEndTime, kLargestSpan };

struct Column {
  const char* name;      // in the table
  const char* schedule;  // here
  CostRule cost;
};

constexpr std::array<Column, 7> kColumns{{{"1F1B", "1f1b", CostRule::kEndTime},
                                          {"1F1B-I", "interleaved-1f1b", CostRule::kEndTime},
                                          {"ZB-H1", "zb-h1", CostRule::kEndTime},
                                          {"ZB-H2", "zb-h2", CostRule::kLargestSpan},
                                          {"ZB-1p", "zb-1p", CostRule::kLargestSpan},
                                          {"ZB-2p", "zb-2p", CostRule::kLargestSpan},
                                          {"ZB-V", "zb-v", CostRule::kLargestSpan}}};

// Figure 9 draws these over the memory limit; `key` is the row of rates in the data.
struct Curve {
  const char* name;
  const char* key;
  const char* schedule;
};

constexpr std::array<Curve, 2> kFigure9{
    {{"ZB", "ZB_bubble_rate", "zb"}, {"ZB-V", "ZBV_bubble_rate", "zb-v"}}};

void simulate_cell(Cell& cell, const Column& column, const Profile& profile, bool as_in_paper) {
  const Schedule& schedule = *find_schedule(column.schedule);
  const Problem problem = make_problem(schedule, profile, as_in_paper);
  if (const auto refusal = schedule.refusal(problem)) {
    cell.note = "not modelled: " + refusal->reason;
    cell.must_agree = false;
    return;
  }
  const Evaluation result = evaluate(schedule.plan(problem), problem);
  const Seconds work =
      Seconds((profile.forward_us + profile.backward_us + profile.weight_us) * 1e-6) *
      profile.microbatches;
  Seconds cost = result.cost;
  if (column.cost == CostRule::kEndTime) {
    cost = Seconds(0);
    for (const DeviceEvaluation& device : result.devices) cost = std::max(cost, device.last_end);
  }
  cell.simulated = (cost - work) / cost;
  cell.must_agree = true;
}

constexpr const char* kModelled = ", times modelled";

void compare_row(std::vector<Cell>& cells, const std::string& table, const YamlValue& row,
                 const Settings& settings) {
  YamlMap map(row);
  const Setting setting = read_setting(map);
  const bool chunks = table == "Table 8";
  const SettingTimes times =
      settings.find(setting, chunks ? ProfileSource::kChunks : ProfileSource::kTable9);
  for (const Column& column : kColumns) {
    // Dashes of a key count as underscores.
    std::string key = column.name;
    std::ranges::replace(key, '-', '_');
    const auto published = map.find(key);
    if (!published || published->is_null()) continue;
    Cell cell;
    cell.table = table + (times.modelled ? kModelled : "");
    cell.cell = setting.text() + " " + column.name;
    cell.published = published->number(-1, 1);
    cell.note = times.note;
    if (!times.profile) {
      cells.push_back(cell);
      continue;
    }
    const bool interleaved = std::string_view(column.name) == "1F1B-I";
    simulate_cell(cell, column, *times.profile, interleaved);
    if (interleaved && cell.simulated && !times.modelled) {
      cell.note = "as the paper: wrap-around waits left out";
    }
    cell.must_agree = cell.must_agree && !times.modelled;
    cells.push_back(cell);
    if (!interleaved || !cell.simulated) continue;
    Cell true_cell = cell;
    true_cell.cell += " (all dependencies)";
    simulate_cell(true_cell, column, *times.profile, false);
    true_cell.must_agree = false;
    true_cell.note = "the executable schedule's own rate";
    cells.push_back(true_cell);
  }
  finish_row(map, {"gpus"});
}

// Bubble rate within a limit of `limit` times what p microbatches keep on a device.
void simulate_point(Cell& cell, const Curve& curve, const Profile& profile, double limit) {
  const Schedule& schedule = *find_schedule(curve.schedule);
  Problem problem = make_problem(schedule, profile, false);
  const Bytes allowed = limit * problem.shape.devices * problem.device_activation();
  problem.activation_limit = allowed;
  const Evaluation result = evaluate(schedule.plan(problem), problem);
  cell.must_agree = true;
  if (result.peak_activation() > allowed * (1 + 1e-12)) {
    cell.note = "the plan takes more memory than the limit allows";
    return;
  }
  cell.simulated = result.bubble_rate();
}

void compare_figure9(std::vector<Cell>& cells, const YamlValue& figure, const Settings& settings) {
  YamlMap map(figure);
  std::vector<double> limits;
  for (const YamlValue& limit : map.require("x_mem_limit_over_pMB", "memory limits").list()) {
    limits.push_back(limit.number(0, 1e3));
  }
  for (const YamlValue& column : map.require("columns", "one map per setting").list()) {
    YamlMap rates(column);
    const Setting setting = read_setting(rates);
    const SettingTimes times = settings.find(setting, ProfileSource::kChunks);
    for (const Curve& curve : kFigure9) {
      const auto row = rates.find(curve.key);
      if (!row) continue;
      const auto points = row->list();
      if (points.size() != limits.size()) row->fail("not as many rates as memory limits");
      for (size_t i = 0; i < points.size(); ++i) {
        Cell cell;
        cell.table = fmt::format("Figure 9 {}{}", curve.name, times.modelled ? kModelled : "");
        cell.cell = fmt::format("{} {} limit {:.3f}", setting.text(), curve.name, limits[i]);
        cell.published = points[i].number(-1, 1);
        cell.note = times.note;
        if (times.profile) simulate_point(cell, curve, *times.profile, limits[i]);
        cell.must_agree = cell.must_agree && !times.modelled;
        cells.push_back(cell);
      }
    }
    finish_row(rates);
  }
  finish_row(map);
}

}  // namespace

void finish_tables(YamlMap& root) {
  for (const char* table : {"table3_models", "table4_measured", "table5_bubble_rate_calculated",
                            "table6_measured_same_memory", "table7_microbatch_doubling",
                            "table8_bubble_rate_calculated_ZBV", "table9_profiled_iclr_ZB2p",
                            "table10_post_validation_vs_allreduce", "table11_same_memory",
                            "table12_small_m", "profiled_arxiv_ZBV_settings", "figure9"}) {
    (void)root.find(table);
  }
  finish_paper(root, "zero_bubble");
}

std::vector<Cell> compare(const std::string& folder, const Location& asked) {
  const YamlSource source = YamlSource::from_file(paper_file(folder, "zero_bubble"), asked);
  YamlMap root(source.root());
  finish_tables(root);
  const auto profiles = read_profiles(root);
  const Settings settings(root, profiles, cluster_of_catalog("a100-roce", asked));
  std::vector<Cell> cells;
  for (const auto& [key, table] : {std::pair{"table5_bubble_rate_calculated", "Table 5"},
                                   std::pair{"table8_bubble_rate_calculated_ZBV", "Table 8"}}) {
    if (const auto rows = root.find(key)) {
      for (const YamlValue& row : rows->list()) compare_row(cells, table, row, settings);
    }
  }
  if (const auto figure = root.find("figure9")) compare_figure9(cells, *figure, settings);
  compare_memory(
      cells, root,
      [&profiles](const std::string& model, int devices, int m) -> std::optional<DeviceSeconds> {
        const Profile* profile = find_profile(profiles, {model, devices, m, 0, {}});
        if (profile == nullptr) return std::nullopt;
        return DeviceSeconds{
            Seconds(profile->forward_us * 1e-6), Seconds(profile->backward_us * 1e-6),
            Seconds(profile->weight_us * 1e-6), Seconds(profile->transfer_us * 1e-6)};
      });
  compare_throughput(cells, root, profiles, asked);
  if (cells.empty()) root.value().fail("no table of this paper in this file");
  return cells;
}

}  // namespace pipesim::zero_bubble
