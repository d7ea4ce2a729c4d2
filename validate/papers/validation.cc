#include "validate/papers/validation.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/report/json/schema.h"
#include "validate/papers/controllable_memory/controllable_memory.h"
#include "validate/papers/korthikanti/korthikanti.h"
#include "validate/papers/megatron/megatron.h"
#include "validate/papers/nemo/nemo.h"
#include "validate/papers/pipeoffload/pipeoffload.h"
#include "validate/papers/runs/runs.h"
#include "validate/papers/simumax/simumax.h"
#include "validate/papers/table_error.h"
#include "validate/papers/vocabulary_parallelism/vocabulary_parallelism.h"
#include "validate/papers/zero_bubble/zero_bubble.h"

namespace pipesim {

const std::vector<Validation>& validations() {
  static const std::vector<Validation> kAll{
      {"zero_bubble", "Zero Bubble Pipeline Parallelism, arXiv 2401.10241", zero_bubble::compare},
      {"vocabulary_parallelism",
       "Balancing Pipeline Parallelism with Vocabulary Parallelism, arXiv 2411.05288",
       compare_vocabulary_parallelism},
      {"controllable_memory", "Pipeline Parallelism with Controllable Memory, arXiv 2405.15362",
       compare_controllable_memory},
      {"pipeoffload", "PipeOffload, arXiv 2503.01328", compare_pipeoffload},
      {"korthikanti",
       "Reducing Activation Recomputation in Large Transformer Models, arXiv 2205.05198",
       compare_korthikanti},
      {"megatron", "Megatron-LM's published throughput, TFLOP/s per GPU, from first principles",
       megatron::compare},
      {"nemo", "NeMo's published throughput on H100 in FP8, from first principles", nemo::compare},
      {"simumax", "SimuMax's measured runs of Megatron-LM on B200, from first principles",
       simumax::compare},
      {"runs", "Measured training runs, from first principles", compare_runs},
      {"search", "pipesim search on the settings of Zero Bubble's Tables 5 and 8",
       zero_bubble::compare_search}};
  return kAll;
}

namespace {

std::string error_columns(const Cell& cell) {
  if (!cell.simulated) return fmt::format("{:>10} {:>10}", "-", "-");
  if (cell.relative) {
    return fmt::format("{:>10.{}f} {:>+9.1f}%", *cell.simulated, cell.digits,
                       100 * *cell.relative_error());
  }
  return fmt::format("{:>10.{}f} {:>+10.{}f}", *cell.simulated, cell.digits, *cell.error(),
                     cell.digits);
}

}  // namespace

bool missed(const std::vector<Cell>& cells) {
  const bool cell_missed = std::ranges::any_of(
      cells, [](const Cell& cell) { return cell.must_agree && !cell.agrees(); });
  return cell_missed || std::ranges::any_of(table_errors(cells), &TableError::beyond_median);
}

std::string validation_table(const Validation& validation, const std::vector<Cell>& cells,
                             const std::optional<ExpectedErrors>& expected) {
  std::string text = validation.title + "\n";
  size_t width = 0;
  size_t table_width = 0;
  for (const Cell& cell : cells) {
    width = std::max(width, cell.cell.size());
    table_width = std::max(table_width, cell.table.size());
  }
  for (const Cell& cell : cells) {
    text += fmt::format("{:<{}} {:<{}} {:>10.{}f} {} {}{}\n", cell.table, table_width, cell.cell,
                        width, cell.published, cell.digits, error_columns(cell),
                        cell.must_agree && !cell.agrees() ? "MISSED " : "", cell.note);
  }
  for (const TableError& error : table_errors(cells)) {
    text += fmt::format("{}: {}\n", error.table, error.text());
    const ExpectedError* recorded = recorded_of(expected, validation.name, error.table);
    if (recorded != nullptr) text += fmt::format("  {}\n", goal_text(error, *recorded));
  }
  return text;
}

std::string validation_json(const std::vector<Compared>& all) {
  auto json = nlohmann::ordered_json::array();
  for (const Compared& each : all) {
    for (const Cell& cell : each.cells) {
      json.push_back({{"schema", kJsonSchema},
                      {"paper", each.validation->name},
                      {"table", cell.table},
                      {"cell", cell.cell},
                      {"published", cell.published},
                      {"simulated", nullptr},
                      {"error", nullptr},
                      {"note", cell.note}});
      if (!cell.simulated) continue;
      auto& of = json.back();
      of["simulated"] = *cell.simulated;
      of["error"] = *cell.error();
      if (cell.relative) of["relative_error"] = *cell.relative_error();
    }
  }
  return json.dump(1) + "\n";
}

}  // namespace pipesim
