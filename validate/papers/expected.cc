#include "validate/papers/expected.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include "sim/read/yaml.h"

namespace pipesim {
namespace {

constexpr double kMostError = 1e6;

ExpectedError read_error(const YamlValue& value) {
  YamlMap map(value);
  ExpectedError error;
  error.median = map.require("median", "the table's median error").number(0, kMostError);
  error.worst = map.require("worst", "the table's worst error").number(0, kMostError);
  error.goal = map.require("goal", "the median error that it should have").number(0, kMostError);
  if (const auto reason = map.find("reason")) error.reason = reason->text();
  map.finish();
  const bool far = error.median >= kMedianNeedsReason || error.worst >= kWorstNeedsReason;
  if (far && error.reason.empty()) {
    value.fail("is so far off that it could hardly fail: expected a 'reason'");
  }
  return error;
}

// Half of the cells, those that are not modelled counted as off.
bool is_met(const TableError& error, const ExpectedError& recorded) {
  return error.simulated > 0 && 2 * error.within(recorded.goal) >= error.published;
}

void compare(const std::string& what, const char* which, double ours, double recorded,
             std::vector<std::string>& sentences) {
  if (ours <= recorded + kErrorAllowance) return;
  sentences.push_back(
      fmt::format("{}: {} error {:.4f}, recorded {:.4f}", what, which, ours, recorded));
}

}  // namespace

std::optional<ExpectedErrors> read_expected(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / "expected.yaml").string();
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  const YamlSource source = YamlSource::from_file(path, {path, 1, 1, ""});
  ExpectedErrors expected;
  for (const auto& [validation, tables] : source.root().entries()) {
    for (const auto& [table, value] : tables.entries())
      expected[validation][table] = read_error(value);
  }
  return expected;
}

std::vector<std::string> unexpected(const std::string& validation,
                                    const std::vector<TableError>& errors,
                                    const ExpectedErrors& expected) {
  static const std::map<std::string, ExpectedError> kNone;
  const auto found = expected.find(validation);
  const auto& recorded = found == expected.end() ? kNone : found->second;
  std::vector<std::string> sentences;
  for (const TableError& error : errors) {
    const std::string what = fmt::format("{}, {}", validation, error.table);
    const auto entry = recorded.find(error.table);
    if (entry == recorded.end()) {
      sentences.push_back(
          fmt::format("{}: no error is recorded, it has median {:.4f}, worst {:.4f}", what,
                      error.median, error.worst));
      continue;
    }
    compare(what, "median", error.median, entry->second.median, sentences);
    compare(what, "worst", error.worst, entry->second.worst, sentences);
  }
  for (const auto& [table, error] : recorded) {
    if (std::ranges::find(errors, table, &TableError::table) == errors.end())
      sentences.push_back(fmt::format("{}, {}: recorded, but it has no cells", validation, table));
  }
  return sentences;
}

const ExpectedError* recorded_of(const std::optional<ExpectedErrors>& expected,
                                 const std::string& validation, const std::string& table) {
  if (!expected) return nullptr;
  const auto of = expected->find(validation);
  if (of == expected->end()) return nullptr;
  const auto entry = of->second.find(table);
  return entry == of->second.end() ? nullptr : &entry->second;
}

std::string goal_text(const TableError& error, const ExpectedError& recorded) {
  const auto text = [&error](double value) {
    return error.relative ? fmt::format("{:.3g}%", 100 * value) : fmt::format("{:.4g}", value);
  };
  return fmt::format("recorded {}, worst {}; goal {}: {}, {} of {} cells within it{}",
                     text(recorded.median), text(recorded.worst), text(recorded.goal),
                     is_met(error, recorded) ? "met" : "not met", error.within(recorded.goal),
                     error.published, recorded.reason.empty() ? "" : "; " + recorded.reason);
}

void GoalsMet::add(const TableError& error, const ExpectedError& recorded) {
  ++tables;
  tables_met += is_met(error, recorded) ? 1 : 0;
  cells += error.published;
  cells_met += error.within(recorded.goal);
}

std::string GoalsMet::text() const {
  return fmt::format(
      "goals: {} of {} tables have half of their cells within theirs; {} of {} cells are\n",
      tables_met, tables, cells_met, cells);
}

}  // namespace pipesim
