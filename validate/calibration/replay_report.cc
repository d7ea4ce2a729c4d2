#include "validate/calibration/replay_report.h"

#include <fmt/format.h>
#include <ostream>

#include "sim/core/csv.h"

namespace pipesim::calibration {
namespace {

// The digits of measurements.
std::string six_digits(double value) { return fmt::format("{:.6g}", value); }

std::string for_people(const Comparison::Line& line, double value) {
  if (line.unit == "s") return fmt::format("{:.3f} ms", 1e3 * value);
  if (line.unit == "bytes") return fmt::format("{:.3f} GiB", value / kGiB.value());
  return fmt::format("{:.1f}%", 100 * value);
}

std::string error_for_people(const Comparison::Line& line) {
  const bool relative = line.unit == "1" || line.simulated != 0;
  return relative ? fmt::format("{:+.2f}%", 100 * line.error()) : "";
}

// A name of a schedule may be a path, or hold what YAML gives a meaning to.
std::string in_quotes(const std::string& text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    result += letter;
  }
  return result + '"';
}

}  // namespace

std::string described(const ReplayDocument& document) {
  std::string text;
  for (const Comparison& comparison : document.comparisons) {
    text += fmt::format("{}, device {}, arrivals {}\n  {:24}{:>14}{:>14}{:>10}\n",
                        comparison.schedule, comparison.device, to_text(comparison.arrivals), "",
                        "simulated", "measured", "error");
    for (const Comparison::Line& line : comparison.lines) {
      text += fmt::format("  {:24}{:>14}{:>14}{:>10}\n", line.quantity,
                          for_people(line, line.simulated), for_people(line, line.measured),
                          error_for_people(line));
    }
  }
  return text;
}

void write_csv(const ReplayDocument& document, std::ostream& out) {
  out << "# pipesim-replay/1\n";
  out << "# scenario: " << document.scenario << '\n';
  for (const auto& [name, value] : document.facts) out << "# " << name << ": " << value << '\n';
  out << "schedule,device,arrivals,quantity,unit,simulated,measured,error\n";
  for (const Comparison& comparison : document.comparisons) {
    for (const Comparison::Line& line : comparison.lines) {
      out << fmt::format("{},{},{},{},{},{},{},{}\n", csv_field(comparison.schedule),
                         comparison.device, to_text(comparison.arrivals), csv_field(line.quantity),
                         line.unit, six_digits(line.simulated), six_digits(line.measured),
                         six_digits(line.error()));
    }
  }
}

void write_yaml(const ReplayDocument& document, std::ostream& out) {
  out << "schema: pipesim-replay/1\n";
  out << "scenario: " << in_quotes(document.scenario) << "\nmeasured:\n";
  for (const auto& [name, value] : document.facts) {
    out << "  " << name << ": " << in_quotes(value) << '\n';
  }
  out << "rows:\n";
  for (const Comparison& comparison : document.comparisons) {
    out << fmt::format("  - schedule: {}\n    device: {}\n    arrivals: {}\n    lines:\n",
                       in_quotes(comparison.schedule), comparison.device,
                       to_text(comparison.arrivals));
    for (const Comparison::Line& line : comparison.lines) {
      out << fmt::format(
          "      - {{quantity: {}, unit: {}, simulated: {}, measured: {}, error: {}}}\n",
          line.quantity, line.unit, six_digits(line.simulated), six_digits(line.measured),
          six_digits(line.error()));
    }
  }
}

}  // namespace pipesim::calibration
