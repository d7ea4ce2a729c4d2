// Simulates two schedules on more and more microbatches: how the bubble shrinks.
#include <cstdio>
#include <pipesim/simulate.h>
#include <string>

namespace {

constexpr const char* kScenario = R"(
schedule: [1f1b, zb-h1]
parallel: {pipeline_model_parallel_size: 8}
batch: {num_microbatches: 8}
cost: {kind: given, per: device, forward: 18 ms, backward_input: 18 ms, backward_weight: 9 ms,
       transfer: 0.6 ms}
memory: {kind: given, per: device, activation: 3.5 GiB, weight_stash: 1.3 GiB}
)";

void compare(const pipesim::Scenario& scenario) {
  for (const pipesim::Result& result : pipesim::simulate(scenario).results) {
    const pipesim::Metrics& metrics = result.metrics;
    std::printf("%2d microbatches  %-6s  %.3f s  bubble %5.2f%%  peak %.1f GiB\n",
                scenario.num_microbatches(), result.label.c_str(), metrics.iteration_seconds,
                100 * metrics.bubble_rate, *metrics.peak_activation_bytes / (1 << 30));
  }
}

}  // namespace

int main() {
  try {
    const auto scenario = pipesim::scenario_from_text(kScenario);
    for (const int microbatches : {8, 16, 32}) {
      compare(scenario.replace({{"batch.num_microbatches", std::to_string(microbatches)}}));
    }
  } catch (const pipesim::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
