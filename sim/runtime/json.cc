#include "sim/runtime/json.h"

#include <nlohmann/json.hpp>
#include <ostream>

namespace pipesim::runtime {
namespace {

nlohmann::ordered_json json_of(const Execution& execution) {
  nlohmann::ordered_json json{{"schema", 1},
                              {"schedule", execution.schedule},
                              {"label", execution.label},
                              {"devices", execution.devices},
                              {"messages", to_text(execution.semantics)},
                              {"measured_seconds", execution.measured()},
                              {"simulated_seconds", execution.simulated},
                              {"ratio", execution.measured() / execution.simulated},
                              {"same_order", execution.disorder.empty()},
                              {"same_results", execution.same_results},
                              {"wall_seconds", execution.wall},
                              {"wait_overhead_seconds", execution.overhead},
                              {"waits", execution.waits},
                              {"scale", execution.scale}};
  if (execution.gradient_error) {
    json["gradient_error"] = *execution.gradient_error;
    json["peak_activation_bytes"] = execution.peak_bytes;
    json["simulated_peak_activation_bytes"] = execution.simulated_peak_bytes;
  }
  return json;
}

}  // namespace

void write_json(std::ostream& out, std::span<const Execution> executions) {
  if (executions.size() == 1) {
    out << json_of(executions.front()).dump(2) << '\n';
    return;
  }
  auto all = nlohmann::ordered_json::array();
  for (const Execution& execution : executions) all.push_back(json_of(execution));
  out << all.dump(2) << '\n';
}

}  // namespace pipesim::runtime
