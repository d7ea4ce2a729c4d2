// Registers a schedule and simulates it beside 1F1B. Scenarios, searches and sweeps of this program
// know it by its name.
#include <cstdio>
#include <optional>
#include <pipesim/schedule.h>
#include <pipesim/simulate.h>

namespace {

using pipesim::PassKind;

// B before F before W, with at most p microbatches in flight.
std::optional<pipesim::NextPass> next_pass(const pipesim::Turn& turn) {
  const bool more = turn.in_flight() < turn.problem().devices;
  if (more) return turn.first_ready({PassKind::kB, PassKind::kF, PassKind::kW});
  return turn.first_ready({PassKind::kB, PassKind::kW});
}

const pipesim::RegisteredSchedule kMine{{
    .name = "mine",
    .summary = "B before F before W, with at most p microbatches in flight",
    .source = "examples/own_schedule.cc",
    .next_pass = next_pass,
}};

constexpr const char* kScenario = R"(
schedule: [1f1b, mine]
parallel: {pipeline_model_parallel_size: 4}
batch: {num_microbatches: 8}
cost: {kind: given, per: device, forward: 10 ms, backward_input: 10 ms, backward_weight: 10 ms}
)";

}  // namespace

int main() {
  try {
    const auto scenario = pipesim::scenario_from_text(kScenario);
    for (const pipesim::Result& result : pipesim::simulate(scenario).results) {
      std::printf("%-6s  %.3f s  bubble %5.2f%%\n", result.label.c_str(),
                  result.metrics.iteration_seconds, 100 * result.metrics.bubble_rate);
    }
  } catch (const pipesim::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
