#include "sim/report/text/curves.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/scenario/curve_origins.h"

namespace pipesim {

std::string curves_text(const Scenario& scenario) {
  if (!scenario.roofline || !scenario.roofline->calibration) return "";
  const CurveOrigins origins = curve_origins(*scenario.sources);
  std::string text = fmt::format("curves measured ({}): {}\n", scenario.roofline->calibration->file,
                                 fmt::join(origins.measured, ", "));
  if (!origins.fitted.empty()) {
    text += fmt::format("curves fitted to measurements in the catalogue: {}\n",
                        fmt::join(origins.fitted, ", "));
  }
  if (!origins.catalogue.empty()) {
    text += fmt::format("curves published or assumed in the catalogue: {}\n",
                        fmt::join(origins.catalogue, ", "));
  }
  return text;
}

}  // namespace pipesim
