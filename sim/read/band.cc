#include "sim/read/band.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "sim/band/columns.h"
#include "sim/core/data_folder.h"
#include "sim/core/input_text.h"
#include "sim/read/anchor.h"
#include "sim/scenario/gpus.h"

namespace pipesim {

namespace {

// A file of the catalogue, or nothing where there is no such file.
std::optional<std::string> catalogue_file(const std::string& name) {
  const std::string path = data_folder("catalog") + "/" + name;
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? std::optional(path) : std::nullopt;
}

std::optional<std::string> residuals_file(bool anchored) {
  return catalogue_file(anchored ? "anchored_residuals.csv" : "residuals.csv");
}

}  // namespace

std::vector<Residual> catalogue_residuals(bool anchored) {
  const auto path = residuals_file(anchored);
  if (!path) return {};
  return read_residuals(*path, {*path, 1, 1, ""});
}

std::vector<ScheduleRun> catalogue_schedule_runs() {
  const auto path = catalogue_file("schedule_runs.csv");
  if (!path) return {};
  return read_schedule_runs(*path, {*path, 1, 1, ""});
}

double network_of(const Scenario& scenario) {
  const Interconnect& wires = scenario.hardware->interconnect;
  if (gpus_of(scenario.parallel) <= wires.gpus_per_node) return 0;
  return 8e-9 * wires.nic_bandwidth.value() * wires.nics_per_node / wires.gpus_per_node;
}

std::optional<DifferenceBand> read_difference_band(const Scenario& scenario) {
  if (!scenario.roofline) return std::nullopt;
  static const auto kBand = difference_band(catalogue_schedule_runs());
  return kBand;
}

std::vector<std::string> measured_frameworks() {
  std::set<std::string> names;
  for (const Residual& row : catalogue_residuals(false)) names.insert(row.framework);
  return {names.begin(), names.end()};
}

namespace {

// "megatron-core" of "megatron-core-0.12" and of itself.
std::string family_of(const std::string& software) {
  const size_t release = software.find_last_of('-');
  const bool released = release != std::string::npos && release + 1 < software.size() &&
                        software.find_first_not_of("0123456789.", release + 1) == std::string::npos;
  return released ? software.substr(0, release) : software;
}

// The measured runs, and the software of each.
struct Measured {
  explicit Measured(bool anchored) : rows(catalogue_residuals(anchored)), model(rows) {
    if (const auto path = residuals_file(anchored)) {
      static constexpr std::array<const char*, 1> kColumn{"software"};
      for (const ColumnsRow& row : read_columns(read_input(*path, {}), *path, kColumn)) {
        software.push_back(row.fields.front());
      }
    }
  }

  // The framework and year with most runs of this software; the newest of equals. Runs of the
  // query's GPU, precision and kind go first, then those of another release, then any of its kind.
  void name_framework(const std::string& asked, BandQuery& query) const {
    struct Pass {
      bool any_release;
      bool any_gpu;
    };
    for (const auto [any_release, any_gpu] : {Pass{false, false}, {true, false}, {true, true}}) {
      std::map<std::pair<int, std::string>, int> groups;
      for (size_t i = 0; i < rows.size(); ++i) {
        const Residual& row = rows[i];
        const bool near = row.kind == query.kind &&
                          (any_gpu || (row.gpu == query.gpu && row.precision == query.precision));
        const bool alike =
            any_release ? family_of(software[i]) == family_of(asked) : software[i] == asked;
        if (near && alike) ++groups[{row.year, row.framework}];
      }
      if (groups.empty()) continue;
      const auto most = std::ranges::max_element(
          groups, {}, [](const auto& each) { return std::pair(each.second, each.first); });
      std::tie(query.year, query.framework) = most->first;
      return;
    }
  }

  std::vector<Residual> rows;
  BandModel model;
  std::vector<std::string> software;  // by row
};

// Wider by the spread of a GPU known from its data sheet alone.
std::optional<Band> widened(std::optional<Band> band, double spread) {
  if (!band || spread == 0) return band;
  band->low /= 1 + spread;
  band->high *= 1 + spread;
  return band;
}

}  // namespace

std::optional<Band> read_band(const Scenario& scenario) {
  if (!scenario.roofline) return std::nullopt;
  // Read once: a sweep reads thousands of scenarios.
  static const Measured kPlain(false);
  static const Measured kAnchored(true);
  const auto& anchor = scenario.roofline->anchor;
  const Gpu& gpu = scenario.hardware->gpu;
  const Transformer& model = scenario.modelled->model;
  if (model.traced && !anchor) return std::nullopt;
  BandQuery query{.gpu = gpu.like.empty() ? gpu.name : gpu.like,
                  .precision = precision_name(*scenario.modelled),
                  .kind = model.experts ? "moe" : "dense",
                  .framework = scenario.framework.name,
                  .year = scenario.framework.year,
                  .model = model_shape(model.num_layers, model.hidden_size),
                  .gpus = static_cast<int>(gpus_of(scenario.parallel)),
                  .network = network_of(scenario)};
  const bool anchored = anchor && anchor->same_model;
  const Measured& measured = anchored ? kAnchored : kPlain;
  if (query.framework.empty()) measured.name_framework(scenario.roofline->software.name, query);
  return widened(measured.model.band(query), gpu.spread);
}

}  // namespace pipesim
