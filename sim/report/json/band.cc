#include "sim/report/json/band.h"

#include <nlohmann/json.hpp>

namespace pipesim {

nlohmann::ordered_json band_json(const std::optional<Band>& band, Seconds iteration) {
  if (!band) return nullptr;
  return {{"level", kBandLevel},
          {"iteration_seconds", {band->low * iteration.value(), band->high * iteration.value()}},
          {"rows", band->rows},
          {"group", band->group}};
}

}  // namespace pipesim
