#include "sim/anchor/report.h"

#include <fmt/format.h>
#include <vector>

#include "sim/core/text.h"
#include "sim/read/anchor.h"
#include "sim/report/text/aligned.h"
#include "sim/scenario/gpus.h"

namespace pipesim {
namespace {

std::string difference(Seconds ours, Seconds measured) {
  return fmt::format("{:+.1f}%", 100 * (ours / measured - 1));
}

// In double quotes, as YAML and JSON have them.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

std::string anchor_table(std::span<const MeasuredStep> runs, const AnchorFit& fit) {
  std::vector<Row> rows{
      {"run", "GPUs", "microbatches", "measured", "simulated", "off", "anchored", "off"}};
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto& [scenario, measured, name] = runs[i];
    rows.push_back({name, fmt::format("{}", gpus_of(scenario.parallel)),
                    fmt::format("{}", scenario.batch.microbatches), human(measured),
                    human(fit.runs[i].simulated), difference(fit.runs[i].simulated, measured),
                    human(fit.runs[i].anchored), difference(fit.runs[i].anchored, measured)});
  }
  std::string text = aligned(rows);
  text +=
      fmt::format("compute: kernels take {:.3f} times as long as simulated\n", fit.factors.compute);
  text += fmt::format("fixed_seconds: {} more of every step\n", human(fit.factors.fixed));
  text +=
      fmt::format("reduction: takes {:.3f} times as long as simulated\n", fit.factors.reduction);
  for (const std::string& each : fit.unidentified) text += "not told apart: " + each + '\n';
  return text;
}

std::string anchor_yaml(std::span<const MeasuredStep> runs, const AnchorFit& fit) {
  std::string text = fmt::format(
      "# Made by 'pipesim anchor'; a scenario takes it by cost.anchor.\n"
      "factors: {{compute: {}, reduction: {}}}\nfixed_seconds: {}\nfrom:\n",
      fit.factors.compute, fit.factors.reduction, fit.factors.fixed.value());
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto& [scenario, measured, name] = runs[i];
    text += fmt::format(
        "  - {{scenario: {}, model: {}, gpu: {}, precision: {}, gpus: {}, num_microbatches: {}, "
        "data_parallel_size: {}, measured_seconds: {}, simulated_seconds: {}, anchored_seconds: "
        "{}}}\n",
        quoted(name), quoted(scenario.modelled->model.name), quoted(scenario.hardware->gpu.name),
        precision_name(*scenario.modelled), gpus_of(scenario.parallel), scenario.batch.microbatches,
        scenario.parallel.data, measured.value(), fit.runs[i].simulated.value(),
        fit.runs[i].anchored.value());
  }
  if (fit.unidentified.empty()) return text + "unidentified: []\n";
  text += "unidentified:\n";
  for (const std::string& each : fit.unidentified) text += fmt::format("  - {}\n", quoted(each));
  return text;
}

}  // namespace pipesim
