#include "sim/graph/stage_seconds.h"

#include <algorithm>

#include "sim/core/enum_array.h"

namespace pipesim {

std::vector<double> stage_seconds(const TaskGraph& graph) {
  const auto chunks = static_cast<size_t>(graph.pipelines().front().program->shape().chunks);
  const size_t stages = static_cast<size_t>(graph.devices()) * chunks;
  std::vector<EnumArray<PassKind, double>> seconds(stages);
  std::vector<EnumArray<PassKind, double>> classes(stages);
  for (const TaskClass& of : graph.classes()) {
    if (of.kind != TaskKind::kCompute) continue;
    seconds[of.device * chunks + of.chunk][of.pass] += of.seconds.value();
    classes[of.device * chunks + of.chunk][of.pass] += 1;
  }
  std::vector<double> all;
  for (size_t i = 0; i < stages; ++i) {
    const auto of = [&](PassKind kind) {
      return seconds[i][kind] / std::max(1.0, classes[i][kind]);
    };
    const double backward = std::max(of(PassKind::kBW), of(PassKind::kB) + of(PassKind::kW));
    all.push_back(of(PassKind::kR) + std::max(of(PassKind::kF) + backward, of(PassKind::kFB)));
  }
  return all;
}

}  // namespace pipesim
