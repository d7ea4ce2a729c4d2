#include "validate/papers/memory/ran.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/case/simulate.h"
#include "sim/core/text.h"
#include "sim/core/thread_team.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "sim/report/text/aligned.h"
#include "validate/papers/runs/rules.h"

namespace pipesim {
namespace ran {
namespace {

// Small numbers are gibibytes.
Bytes bytes_of(double number) { return number < 1e4 ? number * kGiB : Bytes(number); }

std::optional<Bytes> allocated(const runs::Row& row) {
  for (const char* key :
       {"max_memory_allocated_bytes", "max_memory_usage_log", "memory_GB", "max_memory_GB"}) {
    if (const auto number = row.number(key)) return bytes_of(*number);
  }
  return std::nullopt;
}

std::optional<RunMemory> compared(const runs::Row& row, const runs::Rules& rules) {
  const runs::Asked asked = scenario_of(row, rules);
  if (!asked.missing.empty() || row.text("max_memory_allocated_bytes") == "OOM") return {};
  try {
    const Scenario scenario = read_scenario(YamlSource(row.id(), asked.scenario));
    const Result result = simulate(prepare_first(scenario));
    if (!result.fits) return {};
    const Bytes peak = *result.report.peak_memory;
    RunMemory run{.table = row.table(), .id = row.id(), .fits = *result.fits};
    run.printed = allocated(row);
    if (run.printed) run.simulated = peak - kFrameworkOverhead;
    if (const auto shown = row.number("mem")) {
      run.printed = bytes_of(*shown);
      run.simulated = peak + (scenario.hardware->gpu.memory - *scenario.modelled->capacity);
    }
    return run;
  } catch (const InputError&) {
    return {};  // `validate runs` names it
  } catch (const InfeasibleError&) {
    return {};
  }
}

double middle(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Row line(const std::string& name, const std::vector<const RunMemory*>& runs) {
  const auto count = [&](MemoryFit fits) {
    return std::ranges::count(runs, fits, &RunMemory::fits);
  };
  std::vector<double> errors;
  for (const RunMemory* run : runs) {
    if (run->printed) errors.push_back(*run->simulated / *run->printed - 1);
  }
  Row row{name,
          fmt::format("{}", runs.size()),
          fmt::format("{}", count(MemoryFit::kYes)),
          fmt::format("{}", count(MemoryFit::kTight)),
          fmt::format("{}", count(MemoryFit::kNo)),
          fmt::format("{}", errors.size())};
  if (errors.empty()) {
    row.insert(row.end(), {"-", "-"});
    return row;
  }
  row.push_back(fmt::format("{:+.1f}%", 100 * middle(errors)));
  for (double& error : errors) error = std::abs(error);
  row.push_back(fmt::format("{:.1f}%", 100 * middle(errors)));
  return row;
}

}  // namespace
}  // namespace ran

std::vector<RunMemory> memory_of_runs(const std::string& file, const std::string& rules,
                                      const Location& asked) {
  const YamlSource source = YamlSource::from_file(file, asked);
  const runs::Rules known = runs::read_rules(YamlSource::from_file(rules, asked));
  const std::vector<runs::Row> rows = runs::read_rows(source);
  std::vector<std::optional<RunMemory>> compared(rows.size());
  ThreadTeam().run(rows.size(), [&](size_t i) { compared[i] = ran::compared(rows[i], known); });
  std::vector<RunMemory> all;
  for (auto& each : compared) {
    if (each) all.push_back(std::move(*each));
  }
  return all;
}

std::string run_memory_text(const std::vector<RunMemory>& runs) {
  std::vector<std::pair<std::string, std::vector<const RunMemory*>>> tables;
  std::vector<const RunMemory*> all;
  for (const RunMemory& run : runs) {
    if (tables.empty() || tables.back().first != run.table) tables.push_back({run.table, {}});
    tables.back().second.push_back(&run);
    all.push_back(&run);
  }
  std::vector<Row> rows{
      {"runs that ran", "runs", "fit", "tight", "no", "printed", "signed", "median"}};
  for (const auto& [table, of] : tables) rows.push_back(ran::line(table, of));
  rows.push_back(ran::line("all", all));
  return aligned(rows);
}

std::string run_memory_rows(const std::vector<RunMemory>& runs) {
  std::vector<Row> rows{{"table", "run", "fits", "printed", "simulated"}};
  for (const RunMemory& run : runs) {
    rows.push_back({run.table, run.id, std::string(kFitNames[static_cast<size_t>(run.fits)]),
                    run.printed ? human(*run.printed) : "-",
                    run.simulated ? human(*run.simulated) : "-"});
  }
  return aligned(rows, 2);
}

std::string run_memory_json(const std::vector<RunMemory>& runs) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const RunMemory& run : runs) {
    list.push_back(
        {{"table", run.table},
         {"id", run.id},
         {"fits", kFitNames[static_cast<size_t>(run.fits)]},
         {"printed_bytes", run.printed ? Json(run.printed->value()) : Json(nullptr)},
         {"simulated_bytes", run.simulated ? Json(run.simulated->value()) : Json(nullptr)}});
  }
  return list.dump(1) + "\n";
}

}  // namespace pipesim
