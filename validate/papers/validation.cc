#include "validate/papers/validation.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

#include "validate/papers/controllable_memory/controllable_memory.h"
#include "validate/papers/korthikanti/korthikanti.h"
#include "validate/papers/megatron/megatron.h"
#include "validate/papers/nemo/nemo.h"
#include "validate/papers/pipeoffload/pipeoffload.h"
#include "validate/papers/simumax/simumax.h"
#include "validate/papers/vocabulary_parallelism/vocabulary_parallelism.h"
#include "validate/papers/zero_bubble/zero_bubble.h"

namespace pipesim {

std::optional<double> Cell::error() const {
  if (!simulated) return std::nullopt;
  return *simulated - published;
}

std::optional<double> Cell::relative_error() const {
  if (!simulated) return std::nullopt;
  return *simulated / published - 1;
}

bool Cell::agrees() const {
  if (!simulated) return false;
  if (relative) {
    const bool any = worst == 0 && within == 0;
    return any || std::abs(*relative_error()) <= worst || std::abs(*error()) <= within;
  }
  const double scale = std::pow(10.0, digits);
  const long ours = std::lround(*simulated * scale);
  const long theirs = std::lround(published * scale);
  return may_be_lower ? ours <= theirs : ours == theirs;
}

const std::vector<Validation>& validations() {
  static const std::vector<Validation> kAll{
      {"zero_bubble", "Zero Bubble Pipeline Parallelism, arXiv 2401.10241", compare_zero_bubble},
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
       compare_megatron},
      {"nemo", "NeMo's published throughput on H100 in FP8, from first principles", compare_nemo},
      {"simumax", "SimuMax's measured runs of Megatron-LM on B200, from first principles",
       compare_simumax},
      {"search", "pipesim search on the settings of Zero Bubble's Tables 5 and 8", compare_search}};
  return kAll;
}

namespace {

// What is said of a table under its cells.
struct Count {
  int published = 0, simulated = 0, agree = 0, lower = 0;
  double worst = 0;
  bool relative = false;
  double most = 0, points = 0, median = 0;  // targets
  std::vector<double> shares;               // absolute relative errors

  void add(const Cell& cell) {
    ++published;
    relative = cell.relative;
    most = std::max(most, cell.worst);
    points = std::max(points, cell.within);
    median = std::max(median, cell.median);
    if (!cell.simulated) return;
    ++simulated;
    const double error = *cell.error();
    agree += cell.agrees() ? 1 : 0;
    lower += cell.may_be_lower && error < -std::pow(10.0, -cell.digits) ? 1 : 0;
    worst = std::max(worst, std::abs(error));
    shares.push_back(std::abs(*cell.relative_error()));
  }

  [[nodiscard]] double median_share() const {
    if (shares.empty()) return 0;
    std::vector<double> sorted = shares;
    std::ranges::sort(sorted);
    const size_t half = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }
  [[nodiscard]] long within(double limit) const {
    return std::ranges::count_if(shares, [limit](double share) { return share <= limit; });
  }
  [[nodiscard]] bool beyond_median() const { return median > 0 && median_share() > median; }

  [[nodiscard]] std::string text() const {
    if (!relative) {
      return fmt::format(
          "{} of {} cells simulated, {} agree to the printed digits{}, worst difference {:.6f}",
          simulated, published, agree,
          lower > 0 ? fmt::format(" or are lower ({} by more than the last digit)", lower) : "",
          worst);
    }
    std::string text = fmt::format("{} of {} cells simulated", simulated, published);
    if (shares.empty()) return text;
    const auto target = [](double share) {
      return share > 0 ? fmt::format(" (target {:.3g}%)", 100 * share) : std::string();
    };
    text += fmt::format(", median error {:.1f}%{}, worst {:.1f}%{}", 100 * median_share(),
                        target(median), 100 * std::ranges::max(shares), target(most));
    if (points > 0) {
      text += fmt::format(", worst difference {:.2f} (target {:.3g}{})", worst, points,
                          most > 0 ? " where that is more" : "");
    }
    if (most <= 0 && points <= 0)
      text += fmt::format(", {} within 15%, {} within 30%", within(0.15), within(0.30));
    return beyond_median() ? text + " MISSED" : text;
  }
};

// By table. What stands beside a cell for information is not counted.
std::map<std::string, Count> counts_of(const std::vector<Cell>& cells) {
  std::map<std::string, Count> counts;
  for (const Cell& cell : cells) {
    if (cell.simulated && !cell.must_agree && !cell.relative) continue;
    counts[cell.table].add(cell);
  }
  return counts;
}

std::string error_text(const Cell& cell) {
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
  return cell_missed || std::ranges::any_of(counts_of(cells), [](const auto& entry) {
           return entry.second.beyond_median();
         });
}

std::string validation_table(const Validation& validation, const std::vector<Cell>& cells) {
  std::string text = validation.title + "\n";
  size_t width = 0;
  size_t table_width = 0;
  for (const Cell& cell : cells) {
    width = std::max(width, cell.cell.size());
    table_width = std::max(table_width, cell.table.size());
  }
  for (const Cell& cell : cells) {
    text += fmt::format("{:<{}} {:<{}} {:>10.{}f} {} {}{}\n", cell.table, table_width, cell.cell,
                        width, cell.published, cell.digits, error_text(cell),
                        cell.must_agree && !cell.agrees() ? "MISSED " : "", cell.note);
  }
  for (const auto& [table, count] : counts_of(cells)) {
    text += fmt::format("{}: {}\n", table, count.text());
  }
  return text;
}

std::string validation_json(const std::vector<Cell>& cells) {
  auto json = nlohmann::ordered_json::array();
  for (const Cell& cell : cells) {
    nlohmann::ordered_json of{
        {"table", cell.table},  {"cell", cell.cell}, {"published", cell.published},
        {"simulated", nullptr}, {"error", nullptr},  {"note", cell.note}};
    if (cell.simulated) {
      of["simulated"] = *cell.simulated;
      of["error"] = *cell.error();
      if (cell.relative) of["relative_error"] = *cell.relative_error();
    }
    json.push_back(std::move(of));
  }
  return json.dump(1) + "\n";
}

}  // namespace pipesim
