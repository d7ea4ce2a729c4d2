#include "validate/papers/runs/runs.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>

#include "models/device_memory.h"
#include "models/layer_work.h"
#include "sim/band/residuals.h"
#include "sim/case/simulate.h"
#include "sim/core/data_folder.h"
#include "sim/core/error.h"
#include "sim/core/thread_team.h"
#include "sim/prepare/prepare.h"
#include "sim/read/band.h"
#include "sim/read/scenario.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/runs/rules.h"

namespace pipesim {
namespace {

constexpr double kGibi = 1024.0 * 1024 * 1024;

// A row's measured seconds: stated, or by tokens or by model FLOPs a second and GPU, counted with
// half of attention as Megatron-LM does. Model and batch are the scenario's.
std::optional<double> published_seconds(const runs::Row& row, const Scenario* scenario) {
  const auto step = row.number("step_s");
  const auto tokens = row.number("tok_s_gpu");
  const auto teraflops = row.number("tflops_gpu");
  if (step && *step > 0) return step;
  if (scenario == nullptr) return std::nullopt;
  const ParallelSizes& sizes = scenario->parallel;
  const double gpus = 1.0 * sizes.pipeline * sizes.tensor * sizes.data * sizes.context;
  const double samples =
      1.0 * scenario->batch.microbatches * *scenario->batch.micro_batch_size * sizes.data;
  const int length = *scenario->batch.seq_length;
  if (tokens && *tokens > 0) return samples * length / (*tokens * gpus);
  if (!teraflops || *teraflops <= 0) return std::nullopt;
  const double flops = model_flops(scenario->modelled->model, length, true).value();
  return samples * flops / (*teraflops * 1e12 * gpus);
}

// PyTorch's most allocated bytes; NeMo logs GiB.
std::optional<double> published_bytes(const runs::Row& row) {
  if (const auto bytes = row.number("max_memory_allocated_bytes")) return bytes;
  const auto gibibytes = row.number("max_memory_usage_log");
  return gibibytes ? std::optional(kGibi * *gibibytes) : std::nullopt;
}

TrainingRun described(const runs::Row& row, const runs::Rules& rules, const runs::Asked& asked) {
  const runs::Rule& rule = rules.of(row.table());
  TrainingRun run;
  run.table = row.table();
  run.id = row.id();
  run.gpu = asked.gpu;
  run.precision = asked.precision;
  run.kind = row.size("ep").value_or(1) > 1 ? "moe" : "dense";
  run.framework = rule.framework;
  const runs::Version& version = version_of(rule, row);
  run.year = version.year;
  run.model = row.text("model");
  run.release = fmt::format("{} {} {}", rule.framework, version.year, version.in);
  run.software = version.software;
  run.gpus = row.size("gpus").value_or(0);
  run.reason = asked.missing;
  run.scenario = asked.scenario;
  return run;
}

// The row's figures, simulated where there is a scenario.
std::vector<TrainingRun> figures_of(const runs::Row& row, const runs::Rules& rules) {
  const runs::Asked asked = scenario_of(row, rules);
  TrainingRun run = described(row, rules, asked);
  std::optional<Scenario> scenario;
  std::optional<double> seconds;
  std::optional<double> bytes;
  if (run.reason.empty()) {
    try {
      const YamlSource text(row.id(), asked.scenario);
      scenario = read_scenario(text);
      const Transformer& model = scenario->modelled->model;
      run.kind = model.experts ? "moe" : "dense";
      run.shape = model_shape(model.num_layers, model.hidden_size);
      run.network = network_of(*scenario);
      if (run.model.empty()) {
        run.model = fmt::format("{} layers of {}", model.num_layers, model.hidden_size);
      }
      const Result result = simulate(prepare_first(*scenario));
      seconds = result.report.iteration.value();
      // PyTorch does not count this overhead as allocated; it is the same on every device.
      if (result.report.peak_memory) {
        bytes = (*result.report.peak_memory - kFrameworkOverhead).value();
      }
    } catch (const InputError& error) {
      run.reason = error.message();
    } catch (const InfeasibleError& error) {
      run.reason = error.what();
    }
  }
  std::vector<TrainingRun> figures;
  const auto add = [&](const char* quantity, std::optional<double> published,
                       std::optional<double> simulated) {
    if (!published) return;
    figures.push_back(run);
    figures.back().quantity = quantity;
    figures.back().published = *published;
    figures.back().simulated = simulated;
  };
  const Scenario* made = scenario ? &*scenario : nullptr;
  add("seconds", published_seconds(row, made), seconds);
  add("bytes", published_bytes(row), bytes);
  if (figures.empty() && row.text("max_memory_allocated_bytes") == "OOM") {
    run.reason += run.reason.empty() ? "ran out of memory when it was measured" : "";
    add("bytes", 0, bytes);
  }
  if (!figures.empty()) return figures;
  run.quantity = "seconds";
  if (run.reason.empty()) run.reason = "no measurement is stated";
  run.simulated.reset();
  return {run};
}

std::vector<std::string> unread_keys(const std::vector<runs::Row>& rows, const runs::Rules& rules) {
  std::map<std::string, int> times;
  for (const runs::Row& row : rows) {
    if (row.text("gpu").empty() || !scenario_of(row, rules).missing.empty()) continue;
    for (const std::string& key : row.unread()) {
      if (std::ranges::find(rules.ignored, key) == rules.ignored.end()) ++times[key];
    }
  }
  std::vector<std::string> keys;
  for (const auto& [key, number] : times) keys.push_back(fmt::format("{} ({})", key, number));
  return keys;
}

// How many numbers of the catalogue its groups call fitted to measured runs.
int fitted_numbers() {
  int number = 0;
  for (const char* file : {"/gpus.yaml", "/software.yaml"}) {
    const std::string path = data_folder("catalog") + file;
    const YamlSource source = YamlSource::from_file(path, {path, 0, 0, ""});
    for (const auto& [name, entry] : source.root().entries()) {
      for (const auto& [group, value] : entry.entries()) {
        if (!value.is_map()) continue;
        if (const auto fitted = YamlMap(value).find("fitted")) {
          number += static_cast<int>(fitted->integer(0, 64));
        }
      }
    }
  }
  return number;
}

// A row that is no map, or has a key twice, is a slip of the whole file.
runs::Rules rules_for(const std::string& folder, const Location& asked) {
  const bool own = std::filesystem::exists(folder + "/rules.yaml");
  const std::string path =
      own ? folder + "/rules.yaml" : data_folder("papers") + "/runs/rules.yaml";
  return runs::read_rules(YamlSource::from_file(path, asked));
}

}  // namespace

std::string TrainingRun::group() const {
  return fmt::format("{} {} {}, {} {}", gpu, precision.empty() ? "?" : precision, kind, framework,
                     year);
}

std::optional<double> TrainingRun::relative_error() const {
  if (!simulated || published <= 0) return std::nullopt;
  return *simulated / published - 1;
}

TrainingRuns compare_measured_runs(const std::string& folder, const Location& asked) {
  const YamlSource source = YamlSource::from_file(paper_file(folder, "runs"), asked);
  const runs::Rules rules = rules_for(folder, asked);
  const std::vector<runs::Row> rows = runs::read_rows(source);
  std::vector<std::vector<TrainingRun>> figures(rows.size());
  ThreadTeam().run(rows.size(), [&](size_t i) { figures[i] = figures_of(rows[i], rules); });
  TrainingRuns all;
  for (const auto& of_row : figures) {
    all.runs.insert(all.runs.end(), of_row.begin(), of_row.end());
  }
  all.unread = unread_keys(rows, rules);
  all.fitted = fitted_numbers();
  return all;
}

std::vector<Cell> compare_runs(const std::string& folder, const Location& asked) {
  std::vector<Cell> cells;
  for (const TrainingRun& run : compare_measured_runs(folder, asked).runs) {
    if (run.simulated && !run.relative_error()) continue;  // ran out of memory
    Cell cell;
    cell.table = run.group() + (run.quantity == "bytes" ? ", memory" : "");
    if (!run.simulated) cell.table = "not modelled";
    cell.cell = run.id;
    cell.published = run.published;
    cell.simulated = run.simulated;
    cell.note = run.reason.empty() ? "" : "not modelled: " + run.reason;
    cell.relative = true;
    cell.digits = run.quantity == "bytes" ? 0 : 3;
    cells.push_back(cell);
  }
  return cells;
}

}  // namespace pipesim
