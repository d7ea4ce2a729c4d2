// Simulates two schedules on more and more microbatches: how the bubble shrinks.
#include <cstdio>
#include <exception>
#include <memory>
#include <pipesim/scenario.h>
#include <pipesim/simulate.h>

namespace {

constexpr const char* kScenario = R"(
schedule: [1f1b, zb-h1]
parallel: {pipeline_model_parallel_size: 8}
batch: {num_microbatches: 8}
cost: {kind: given, per: device, forward: 18 ms, backward_input: 18 ms, backward_weight: 9 ms,
       transfer: 0.6 ms}
memory: {kind: given, per: device, activation: 3.5 GiB, weight_stash: 1.3 GiB}
)";

void compare(int microbatches) {
  // A scenario is a value: what a file can say, code can set.
  pipesim::Scenario scenario = pipesim::scenario_from_text(kScenario);
  scenario.batch.microbatches = microbatches;
  const auto shared = std::make_shared<const pipesim::Scenario>(std::move(scenario));
  for (const pipesim::Prepared& each : pipesim::prepare_all(shared)) {
    const pipesim::Result result = pipesim::simulate(each.get());
    const pipesim::Report& report = result.report;
    std::printf("%2d microbatches  %-6s  %.3f s  bubble %5.2f%%  peak %.1f GiB\n", microbatches,
                each.label.c_str(), report.iteration.value(), 100 * report.bubble_rate,
                report.peak_activation.value() / (1 << 30));
  }
}

}  // namespace

int main() {
  try {
    for (const int microbatches : {8, 16, 32}) compare(microbatches);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
