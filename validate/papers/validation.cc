#include "validate/papers/validation.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

#include "validate/papers/megatron/megatron.h"
#include "validate/papers/zero_bubble/zero_bubble.h"

namespace pipesim {

namespace {

std::string relative_summary(const std::string& table, std::vector<double>& errors) {
  std::ranges::sort(errors);
  const auto within = [&errors](double limit) {
    return std::ranges::count_if(errors, [limit](double error) { return error <= limit; });
  };
  const size_t middle = errors.size() / 2;
  const double median =
      errors.size() % 2 == 1 ? errors[middle] : (errors[middle - 1] + errors[middle]) / 2;
  return fmt::format("{}: {} rows, {} within 15%, {} within 30%, median {:.1f}%, worst {:.1f}%\n",
                     table, errors.size(), within(0.15), within(0.30), 100 * median,
                     100 * errors.back());
}

}  // namespace

std::optional<double> Cell::error() const {
  if (!simulated) return std::nullopt;
  return relative ? *simulated / published - 1 : *simulated - published;
}

bool Cell::agrees() const {
  if (!simulated) return false;
  const double scale = std::pow(10.0, digits);
  const long ours = std::lround(*simulated * scale);
  const long theirs = std::lround(published * scale);
  return may_be_lower ? ours <= theirs : ours == theirs;
}

const std::vector<Validation>& validations() {
  static const std::vector<Validation> kAll{
      {"zero_bubble", "Zero Bubble Pipeline Parallelism, arXiv 2401.10241", compare_zero_bubble},
      {"search", "pipesim search on the settings of Zero Bubble's Tables 5 and 8", compare_search},
      {"megatron", "Megatron-LM's published throughput, TFLOP/s per GPU, from first principles",
       compare_megatron}};
  return kAll;
}

std::string validation_table(const Validation& validation, const std::vector<Cell>& cells) {
  std::string text = validation.title + "\n";
  struct Count {
    int published = 0, simulated = 0, agree = 0, lower = 0;
    double worst = 0;
  };
  std::map<std::string, Count> counts;
  std::map<std::string, std::vector<double>> errors;  // of relative cells
  size_t width = 0;
  size_t table_width = 0;
  for (const Cell& cell : cells) {
    width = std::max(width, cell.cell.size());
    table_width = std::max(table_width, cell.table.size());
  }
  for (const Cell& cell : cells) {
    const auto error = cell.error();
    if (error && cell.relative) {
      text += fmt::format("{:<{}} {:<{}} {:>10.{}f} {:>10.{}f} {:>+9.1f}% {}\n", cell.table,
                          table_width, cell.cell, width, cell.published, cell.digits,
                          *cell.simulated, cell.digits, 100 * *error, cell.note);
      errors[cell.table].push_back(std::abs(*error));
      continue;
    }
    const std::string values = error ? fmt::format("{:>10.{}f} {:>+10.{}f}", *cell.simulated,
                                                   cell.digits, *error, cell.digits)
                                     : fmt::format("{:>10} {:>10}", "-", "-");
    text += fmt::format("{:<{}} {:<{}} {:>10.{}f} {} {}{}\n", cell.table, table_width, cell.cell,
                        width, cell.published, cell.digits, values,
                        cell.must_agree && !cell.agrees() ? "MISSED " : "", cell.note);
    // What stands beside a cell for information is not counted.
    if (error && !cell.must_agree) continue;
    Count& count = counts[cell.table];
    ++count.published;
    if (!error) continue;
    ++count.simulated;
    count.agree += cell.agrees() ? 1 : 0;
    count.lower += cell.may_be_lower && *error < -std::pow(10.0, -cell.digits) ? 1 : 0;
    count.worst = std::max(count.worst, std::abs(*error));
  }
  for (const auto& [table, count] : counts) {
    text += fmt::format(
        "{}: {} of {} cells simulated, {} agree to the printed digits{}, worst difference {:.6f}\n",
        table, count.simulated, count.published, count.agree,
        count.lower > 0 ? fmt::format(" or are lower ({} by more than the last digit)", count.lower)
                        : "",
        count.worst);
  }
  for (auto& [table, all] : errors) text += relative_summary(table, all);
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
    }
    json.push_back(std::move(of));
  }
  return json.dump(1) + "\n";
}

}  // namespace pipesim
