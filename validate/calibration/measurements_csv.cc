#include "validate/calibration/measurements_csv.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ios>
#include <ostream>
#include <sstream>
#include <string_view>
#include <vector>

#include "validate/calibration/csv_table.h"

namespace pipesim::calibration {
namespace {

constexpr std::string_view kSchema = "pipesim-measurements/1";
constexpr std::string_view kHeader =
    "group,name,parameters,flops,bytes,median_us,p10_us,p90_us,min_us,repetitions,"
    "launches_per_repetition,sm_clock_mhz,memory_clock_mhz,temperature_c,power_w,throttle_reasons";

// Six significant digits: finer than any spread, and stable text.
std::string number(double value) { return fmt::format("{:.6g}", value); }

std::string joined(const Parameters& parameters) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : parameters) parts.push_back(fmt::format("{}={}", name, value));
  return fmt::format("{}", fmt::join(parts, " "));
}

std::string state_cells(const std::optional<CardState>& state) {
  if (!state) return ",,,,";
  return fmt::format("{},{},{},{},{}", number(state->sm_clock_mhz), number(state->memory_clock_mhz),
                     number(state->temperature_c), number(state->power_w), state->throttle_reasons);
}

void require(const std::ostream& out) {
  if (!out) throw std::ios_base::failure("measurements could not be written");
}

// Libraries' reasons may have several lines.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// "name: value", of which the value may hold further colons.
std::pair<std::string, std::string> parted(const CsvTable& table, const std::string& text) {
  const auto colon = text.find(": ");
  if (colon == std::string::npos) {
    table.fail(fmt::format("expected '# name: value', not '#{}'", text));
  }
  return {text.substr(text.find_first_not_of(' '), colon - text.find_first_not_of(' ')),
          text.substr(colon + 2)};
}

void read_comments(const CsvTable& table, Measurements& measured) {
  const auto& comments = table.comments();
  if (comments.empty() || comments.front() != " " + std::string(kSchema)) {
    table.fail(fmt::format("expected the file to begin with '# {}'", kSchema));
  }
  for (std::size_t i = 1; i < comments.size(); ++i) {
    auto fact = parted(table, comments[i]);
    if (fact.first == "not_measured") {
      const auto [what, reason] = parted(table, fact.second);
      measured.not_measured.push_back({what, reason});
    } else {
      measured.facts.push_back(std::move(fact));
    }
  }
}

Parameters read_parameters(const CsvTable& table, const std::string& cell) {
  Parameters parameters;
  std::istringstream words(cell);
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) {
      table.fail(fmt::format("parameters: expected name=value, not '{}'", word));
    }
    parameters.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return parameters;
}

}  // namespace

void write_measurements(const Measurements& measured, std::ostream& out) {
  out << "# " << kSchema << '\n';
  for (const auto& [name, value] : measured.facts) out << fmt::format("# {}: {}\n", name, value);
  for (const NotMeasured& entry : measured.not_measured) {
    out << fmt::format("# not_measured: {}: {}\n", entry.what, one_line(entry.reason));
  }
  out << kHeader << '\n';
  for (const Point& point : measured.points) {
    const TimeSummary& time = point.time_us;
    out << fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\n", point.group, point.name,
                       joined(point.parameters), point.flops, point.bytes, number(time.median),
                       number(time.p10), number(time.p90), number(time.minimum), time.repetitions,
                       point.launches_per_repetition, state_cells(point.state));
  }
  require(out);
}

void write_samples(const Measurements& measured, std::ostream& out) {
  out << "key,samples_us\n";
  for (const Point& point : measured.points) {
    if (point.samples_us.empty()) continue;
    out << point.key() << ",";
    for (std::size_t i = 0; i < point.samples_us.size(); ++i) {
      out << (i == 0 ? "" : " ") << fmt::format("{:.4g}", point.samples_us[i]);
    }
    out << '\n';
  }
  require(out);
}

Measurements read_measurements(const std::string& path) {
  CsvTable table(path, {"group", "name", "parameters", "flops", "bytes", "median_us", "p10_us",
                        "p90_us", "min_us", "repetitions"});
  Measurements measured;
  read_comments(table, measured);
  while (table.next()) {
    Point point;
    point.group = table.text(0);
    point.name = table.text(1);
    point.parameters = read_parameters(table, table.text(2));
    point.flops = table.number<double>(3);
    point.bytes = table.number<double>(4);
    point.time_us = {.median = table.positive<double>(5),
                     .p10 = table.positive<double>(6),
                     .p90 = table.positive<double>(7),
                     .minimum = table.positive<double>(8),
                     .repetitions = table.positive<std::size_t>(9)};
    measured.points.push_back(std::move(point));
  }
  return measured;
}

}  // namespace pipesim::calibration
