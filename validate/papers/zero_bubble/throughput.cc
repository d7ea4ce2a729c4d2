// Measured throughput by the one-cell protocol: Table 4, and what the same factors say of Tables 6,
// 7, 11 and 12 and of the ratio of Table 10.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <optional>

#include "sim/anchor/fitted_factor.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/paper_keys.h"
#include "validate/papers/simulate_cell.h"
#include "validate/papers/timed_run.h"
#include "validate/papers/zero_bubble/profile.h"
#include "validate/papers/zero_bubble/row.h"
#include "validate/papers/zero_bubble/zero_bubble.h"

namespace pipesim::zero_bubble {
namespace {

struct Table {
  const char* key;
  const char* name;
  bool target;     // has one
  bool of_table3;  // runs the numbers of microbatches that Table 3 lists
};
constexpr std::array<Table, 4> kTables{{{"table4_measured", "Table 4", true, true},
                                        {"table6_measured_same_memory", "Table 6", false, false},
                                        {"table11_same_memory", "Table 11", false, true},
                                        {"table12_small_m", "Table 12", false, false}}};

struct Measured {
  const Table* table;
  Row row;
  double samples = 0;  // per second and GPU
  std::string note;
};

// Values that the rows of a model share.
struct Stack {
  Hardware hardware;
  std::optional<Profiled> profiled;
  double factor = 1;
  std::string note;
  const Measured* fitted = nullptr;
};

// The run as the authors ran it. 1F1B and 1F1B-I are Megatron-LM's: B and W in one, an all-reduce
// before the step, and transfers that hold the GPU (their launch script switches overlapping off).
// The authors' schedules plan with one F, B and W for all stages, the median device's, and validate
// afterwards. Embeddings are not tied in the script.
TimedRun timed_run(const Row& row, const Stack& stack) {
  const Run of = run_of(row);
  const bool megatron = row.schedule.starts_with("1F1B");
  TimedRun run;
  run.model = of.model;
  run.model.tied_embeddings = false;
  run.setting = {of.context, of.state, {}, megatron};
  run.hardware = stack.hardware;
  run.split = of.split;
  run.schedule = of.schedule;
  run.devices = row.devices;
  run.chunks = of.chunks;
  run.microbatches = of.microbatches;
  run.sync = megatron ? OptimizerSync::kAllReduce : OptimizerSync::kPostValidation;
  run.plan_as_if_equal = !megatron;
  run.profiled = stack.profiled.value_or(Profiled{});
  run.compute_factor = stack.factor;
  return run;
}

double samples(const Row& row, Seconds iteration) {
  return 1.0 * row.microbatches * row.micro_batch / row.devices / iteration.value();
}

std::vector<Measured> read_tables(YamlMap& root, const std::vector<ModelRow>& models) {
  std::vector<Measured> all;
  for (const Table& table : kTables) {
    const auto rows = root.find(table.key);
    if (!rows) continue;
    for (const YamlValue& each : rows->list()) {
      YamlMap map(each);
      (void)map.require("schedule", "as the paper calls it");
      Measured measured{&table, read_row(each, map, models), 0, {}};
      const auto rate = map.find("samples_per_gpu_s");
      finish_row(map, {"mem_gb"});
      if (!rate || rate->is_null()) continue;
      measured.samples = rate->number(1e-9, 1e9);
      if (table.of_table3) measured.note = correct_misprint(measured.row, models);
      all.push_back(measured);
    }
  }
  return all;
}

// Nothing where the layers do not take the shape.
std::optional<StageCost> stage_of(const Row& row, const Stack& stack) {
  try {
    return mean_stage(timed_run(row, stack));
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
}

// Table 9 gives the authors' mean times of a model's passes and messages; nothing of some models.
std::optional<Profiled> profiled_of(const std::string& model, const std::vector<Profile>& profiles,
                                    const std::vector<ModelRow>& models, const Stack& stack,
                                    const Location& where) {
  const auto of_model = std::ranges::find(models, model, &ModelRow::model);
  Profiled mean{0, 0, 0, {}};
  double rows = 0;
  for (const Profile& profile : profiles) {
    if (profile.model != model || profile.of_chunks || of_model == models.end()) continue;
    const auto ours = stage_of(
        {model, "ZB-2p", profile.devices, profile.microbatches, of_model->micro_batch, where},
        stack);
    if (!ours) continue;
    mean.forward += profile.forward_us * 1e-6 / ours->forward.value();
    mean.backward_input += profile.backward_us * 1e-6 / ours->backward_input.value();
    mean.backward_weight += profile.weight_us * 1e-6 / ours->backward_weight.value();
    mean.message += Seconds(profile.transfer_us * 1e-6) - ours->transfer;
    ++rows;
  }
  if (rows == 0) return std::nullopt;
  return Profiled{mean.forward / rows, mean.backward_input / rows, mean.backward_weight / rows,
                  std::max(Seconds(0), mean.message / rows)};
}

// The 1F1B cell with most microbatches, of the first table that has one.
const Measured* cell_to_fit(const std::string& model, const std::vector<Measured>& all) {
  const Measured* found = nullptr;
  for (const Measured& each : all) {
    if (each.row.model != model || each.row.schedule != "1F1B") continue;
    if (found != nullptr && found->table != each.table) break;
    if (found == nullptr || each.row.microbatches > found->row.microbatches) found = &each;
  }
  return found;
}

// A note where the cell that the protocol fits is missing, and another stands in for it.
std::string stand_in(const Measured& fitted, const std::vector<Measured>& all) {
  const Row& row = fitted.row;
  const auto first =
      std::ranges::find(all, row.model, [](const Measured& each) { return each.row.model; });
  int most = 0;
  for (const Measured& each : all) {
    if (each.row.model != row.model || each.table != first->table) continue;
    most = std::max(most, each.row.microbatches);
  }
  if (first->table == fitted.table && most == row.microbatches) return {};
  return fmt::format(" fitted to {} m={}, as {} has no 1F1B cell with m={}", fitted.table->name,
                     row.microbatches, first->table->name, most);
}

void fit(Stack& stack, const std::string& model, const std::vector<Measured>& all) {
  stack.fitted = cell_to_fit(model, all);
  if (stack.fitted == nullptr) {
    stack.note = "no 1F1B cell to fit a factor to: factor 1";
    return;
  }
  const Row& row = stack.fitted->row;
  try {
    TimedRun run = timed_run(row, stack);
    const Seconds measured(1.0 * row.microbatches * row.micro_batch / row.devices /
                           stack.fitted->samples);
    stack.factor = fitted_factor(measured, [&run](double factor) {
      run.compute_factor = factor;
      return iteration_seconds(run);
    });
    stack.note = fmt::format("factor {:.3f}{}", stack.factor,
                             stack.profiled ? "; profiled: Table 9's F, B, W and message" : "") +
                 stand_in(*stack.fitted, all);
  } catch (const InfeasibleError& error) {
    stack.fitted = nullptr;
    stack.note = fmt::format("{} cannot be fitted ({}): factor 1", row.text(), error.what());
  }
}

// Rows of one table that run the same model on as many devices and microbatches. Tables 6 and 11
// give each schedule the micro batch that its memory allows.
RunOfSchedule run_of_schedule(const char* table, const Row& row) {
  return {row.model, fmt::format("{} p={} m={}", table, row.devices, row.microbatches),
          row.schedule};
}

Cell throughput_cell(const Measured& measured, const Stack& stack) {
  const Row& row = measured.row;
  const bool fitted = &measured == stack.fitted;
  Cell cell;
  cell.table =
      fmt::format("{} throughput, {}", measured.table->name, fitted ? "fitted" : row.schedule);
  cell.cell = row.text() + ", samples/s/GPU";
  cell.published = measured.samples;
  cell.digits = 2;
  cell.relative = true;
  cell.note = measured.note + stack.note;
  // Costs of passes that are measured are not what a scenario has; a fitted cell is met either way.
  if (!stack.profiled || fitted) cell.run = run_of_schedule(measured.table->name, row);
  simulate(cell, [&] { return samples(row, iteration_seconds(timed_run(row, stack))); });
  if (measured.table->target && !fitted && cell.simulated && stack.fitted != nullptr) {
    cell.must_agree = true;
    cell.worst = 0.05;
    cell.median = 0.02;
  }
  return cell;
}

// By the one cell alone: predictions that nothing is held to.
Stack without_profile(const Stack& known, const std::string& model,
                      const std::vector<Measured>& all) {
  Stack stack = known;
  stack.profiled.reset();
  fit(stack, model, all);
  return stack;
}

// Cells of models whose passes are profiled.
void compare_without_profile(std::vector<Cell>& cells, const std::vector<Measured>& all,
                             const std::map<std::string, Stack>& stacks) {
  for (const auto& [model, known] : stacks) {
    if (!known.profiled) continue;
    const Stack stack = without_profile(known, model, all);
    for (const Measured& each : all) {
      if (each.row.model != model || &each == stack.fitted) continue;
      Cell cell = throughput_cell(each, stack);
      cell.table = fmt::format("{} throughput, nothing profiled", each.table->name);
      cell.must_agree = false;
      cell.worst = 0;
      cell.median = 0;
      cells.push_back(cell);
    }
  }
}

// A row of Table 7: the same microbatches at twice the size.
struct Doubling {
  Row row;
  std::array<int, 2> micro_batches{};
  std::array<double, 2> samples{};  // per second and GPU
};

Doubling read_doubling(const YamlValue& value, const std::vector<ModelRow>& models) {
  YamlMap map(value);
  (void)map.require("schedule", "as the paper calls it");
  Doubling doubling{.row = read_row(value, map, models)};
  for (const size_t i : {0, 1}) {
    const std::string size = i == 0 ? "small" : "large";
    doubling.micro_batches[i] =
        static_cast<int>(map.require("b_" + size, "micro batch size").integer(1, 1 << 20));
    doubling.samples[i] = map.require("thr_" + size, "samples/s/GPU").number(1e-9, 1e9);
  }
  finish_row(map, {"delta_pct"});
  return doubling;
}

Cell doubling_cell(const Doubling& doubling, size_t i, const Stack& stack) {
  Row row = doubling.row;
  row.micro_batch = doubling.micro_batches[i];
  Cell cell;
  cell.table = "Table 7 throughput, " + row.schedule;
  cell.cell = row.text() + ", samples/s/GPU";
  cell.published = doubling.samples[i];
  cell.digits = 2;
  cell.relative = true;
  cell.note = stack.note;
  simulate(cell, [&] { return samples(row, iteration_seconds(timed_run(row, stack))); });
  if (stack.profiled) return cell;
  cell.run = run_of_schedule("Table 7", row);
  cell.run->setting += fmt::format(" b={}", row.micro_batch);
  return cell;
}

Cell gain_cell(const Doubling& doubling, const Cell& small, const Cell& large) {
  Row row = doubling.row;
  row.micro_batch = doubling.micro_batches[1];
  Cell gain;
  gain.table = "Table 7 gain";
  gain.cell = row.text() + " over half the micro batch";
  gain.published = large.published / small.published;
  gain.digits = 3;
  gain.relative = true;
  if (small.simulated && large.simulated) {
    gain.simulated = *large.simulated / *small.simulated;
  } else {
    gain.note = large.simulated ? small.note : large.note;
  }
  return gain;
}

void compare_doublings(std::vector<Cell>& cells, const YamlValue& rows,
                       const std::vector<ModelRow>& models, const std::vector<Measured>& all,
                       const std::function<const Stack&(const Row&)>& stack_of) {
  std::vector<Cell> nothing_profiled;
  for (const YamlValue& value : rows.list()) {
    const Doubling doubling = read_doubling(value, models);
    const Stack& stack = stack_of(doubling.row);
    const Cell small = doubling_cell(doubling, 0, stack);
    const Cell large = doubling_cell(doubling, 1, stack);
    cells.insert(cells.end(), {small, large, gain_cell(doubling, small, large)});
    if (!stack.profiled) continue;
    const Stack plain = without_profile(stack, doubling.row.model, all);
    for (const size_t i : {0, 1}) {
      nothing_profiled.push_back(doubling_cell(doubling, i, plain));
      nothing_profiled.back().table = "Table 7 throughput, nothing profiled";
    }
  }
  cells.insert(cells.end(), nothing_profiled.begin(), nothing_profiled.end());
}

// Table 10: what post-validation gains over waiting for all at the end of an iteration, with ZB-2p:
// throughput over throughput, which should be within 5 points.
void compare_synchronisation(std::vector<Cell>& cells, const YamlValue& value,
                             const std::vector<ModelRow>& models,
                             const std::function<const Stack&(const Row&)>& stack_of) {
  YamlMap map(value);
  Row row = read_row(value, map, models);
  row.schedule = "ZB-2p";
  const Stack& stack = stack_of(row);
  Cell cell;
  cell.table = "Table 10";
  cell.cell = row.text() + ", post-validation / all-reduce";
  cell.published = map.require("post_validation", "samples/s").number(0, 1e9) /
                   map.require("allreduce_sync", "samples/s").number(1e-9, 1e9);
  finish_row(map);
  cell.digits = 3;
  cell.relative = true;
  cell.must_agree = true;
  cell.worst = 0.05 / cell.published;
  cell.note = stack.note;
  simulate(cell, [&] {
    TimedRun run = timed_run(row, stack);
    const Seconds after = iteration_seconds(run);
    run.sync = OptimizerSync::kAllReduce;
    return iteration_seconds(run) / after;
  });
  cells.push_back(cell);
}

}  // namespace

void compare_throughput(std::vector<Cell>& cells, YamlMap& root,
                        const std::vector<Profile>& profiles, const Location& asked) {
  const auto models = read_models(root);
  const std::vector<Measured> all = read_tables(root, models);
  const Hardware hardware = cluster_of_catalog("a100-roce", asked);
  std::map<std::string, Stack> stacks;
  const auto stack_of = [&](const Row& row) -> const Stack& {
    const auto [at, made] = stacks.try_emplace(row.model);
    Stack& stack = at->second;
    if (!made) return stack;
    stack.hardware = hardware;
    stack.profiled = profiled_of(row.model, profiles, models, stack, row.where);
    fit(stack, row.model, all);
    return stack;
  };
  for (const Measured& each : all) cells.push_back(throughput_cell(each, stack_of(each.row)));
  compare_without_profile(cells, all, stacks);
  if (const auto rows = root.find("table7_microbatch_doubling")) {
    compare_doublings(cells, *rows, models, all, stack_of);
  }
  if (const auto rows = root.find("table10_post_validation_vs_allreduce")) {
    for (const YamlValue& row : rows->list()) compare_synchronisation(cells, row, models, stack_of);
  }
}

}  // namespace pipesim::zero_bubble
