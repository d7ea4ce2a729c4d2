#include "sim/read/band.h"

#include <filesystem>
#include <string>

#include "sim/core/data_folder.h"
#include "sim/read/anchor.h"

namespace pipesim {
namespace {

BandModel model_of(const char* file) {
  const std::string path = data_folder("catalog") + "/" + file;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return BandModel({});
  return BandModel(read_residuals(path, {path, 1, 1, ""}));
}

}  // namespace

std::optional<Band> read_band(const Scenario& scenario) {
  if (!scenario.roofline) return std::nullopt;
  // Read once: a sweep reads thousands of scenarios.
  static const BandModel kPlain = model_of("residuals.csv");
  static const BandModel kAnchored = model_of("anchored_residuals.csv");
  const auto& anchor = scenario.roofline->anchor;
  const BandQuery query{.gpu = scenario.hardware->gpu.name,
                        .precision = precision_name(*scenario.modelled),
                        .kind = scenario.modelled->model.experts ? "moe" : "dense"};
  return (anchor && anchor->same_model ? kAnchored : kPlain).band(query);
}

}  // namespace pipesim
