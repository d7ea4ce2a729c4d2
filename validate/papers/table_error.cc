#include "validate/papers/table_error.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace pipesim {
namespace {

double median_of(const std::vector<double>& values) {
  if (values.empty()) return 0;
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

bool bound(const Cell& cell) { return !cell.simulated || cell.must_agree || cell.relative; }

TableError error_of(const std::string& table, const std::vector<Cell>& cells) {
  TableError error;
  error.table = table;
  // Cells that are not modelled do not put away those that are.
  const bool any_bound = std::ranges::any_of(cells, [&table](const Cell& cell) {
    return cell.table == table && (cell.must_agree || cell.relative);
  });
  for (const Cell& cell : cells) {
    if (cell.table != table || (any_bound && !bound(cell))) continue;
    ++error.published;
    error.relative = cell.relative;
    error.worst_target = std::max(error.worst_target, cell.worst);
    error.median_target = std::max(error.median_target, cell.median);
    error.difference_target = std::max(error.difference_target, cell.within);
    if (!cell.simulated) continue;
    ++error.simulated;
    const double off = deviation(cell);
    error.agree += cell.agrees() ? 1 : 0;
    error.lower += cell.may_be_lower && *cell.error() < -std::pow(10.0, -cell.digits) ? 1 : 0;
    error.within_15 += off <= 0.15 ? 1 : 0;
    error.within_30 += off <= 0.30 ? 1 : 0;
    error.worst = std::max(error.worst, off);
    error.worst_difference = std::max(error.worst_difference, std::abs(*cell.error()));
    error.deviations.push_back(off);
  }
  std::ranges::sort(error.deviations);
  error.median = median_of(error.deviations);
  return error;
}

std::string target(double share) {
  return share > 0 ? fmt::format(" (target {:.3g}%)", 100 * share) : std::string();
}

}  // namespace

double deviation(const Cell& cell) {
  if (cell.relative) return std::abs(*cell.relative_error());
  return cell.may_be_lower ? std::max(0.0, *cell.error()) : std::abs(*cell.error());
}

bool TableError::beyond_median() const { return median_target > 0 && median > median_target; }

int TableError::within(double goal) const {
  constexpr double kRounding = 5e-5;  // a figure of four printed digits
  return static_cast<int>(
      std::ranges::count_if(deviations, [goal](double off) { return off <= goal + kRounding; }));
}

std::string TableError::text() const {
  std::string text = fmt::format("{} of {} cells simulated", simulated, published);
  if (simulated == 0) return text;
  if (!relative) {
    text += fmt::format(", {} agree to the printed digits", agree);
    if (lower > 0) text += fmt::format(" or are lower ({} by more than the last digit)", lower);
    return text + fmt::format(", worst difference {:.6f}", worst);
  }
  text += fmt::format(", median error {:.1f}%{}, worst {:.1f}%{}", 100 * median,
                      target(median_target), 100 * worst, target(worst_target));
  if (difference_target > 0) {
    text += fmt::format(", worst difference {:.2f} (target {:.3g}{})", worst_difference,
                        difference_target, worst_target > 0 ? " where that is more" : "");
  }
  if (worst_target <= 0 && difference_target <= 0)
    text += fmt::format(", {} within 15%, {} within 30%", within_15, within_30);
  return beyond_median() ? text + " MISSED" : text;
}

std::vector<TableError> table_errors(const std::vector<Cell>& cells) {
  std::vector<std::string> tables;
  for (const Cell& cell : cells) {
    if (std::ranges::find(tables, cell.table) == tables.end()) tables.push_back(cell.table);
  }
  std::vector<TableError> errors;
  errors.reserve(tables.size());
  for (const std::string& table : tables) errors.push_back(error_of(table, cells));
  return errors;
}

}  // namespace pipesim
