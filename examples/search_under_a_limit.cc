// Searches the best schedule under memory limits, in units of what 1F1B's first device holds, and
// prints the first passes of the best order.
#include <cstddef>
#include <cstdio>
#include <pipesim/search.h>

namespace {

constexpr const char* kScenario = R"(
schedule: 1f1b
parallel: {pipeline_model_parallel_size: 4}
batch: {num_microbatches: 12}
cost: {kind: given, per: device, forward: 18 ms, backward_input: 18 ms, backward_weight: 9 ms,
       transfer: 0.6 ms}
memory: {kind: given, per: device, activation: 3.5 GiB, weight_stash: 1.3 GiB}
)";

}  // namespace

int main() {
  try {
    const auto scenario = pipesim::scenario_from_text(kScenario);
    pipesim::Found last;
    for (const char* limit : {"0.5", "1.0", "2.0"}) {
      for (const pipesim::Found& found : pipesim::search(scenario, limit, {.effort = 1e5}).found) {
        std::printf("limit %s: %-8s %s  %.3f s, at most %.1f%% above any schedule\n", limit,
                    found.schedule.c_str(), found.refined ? "refined" : "as it is",
                    found.time_seconds, 100 * found.gap);
        last = found;
      }
    }
    if (last.passes.empty()) return 1;
    std::printf("device 0:");
    for (std::size_t i = 0; i < 8; ++i) std::printf(" %s", last.passes[0][i].c_str());
    std::printf(" ...\n");
  } catch (const pipesim::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
