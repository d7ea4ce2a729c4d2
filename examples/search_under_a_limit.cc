// Searches the best schedule under memory limits, in units of what 1F1B's first device holds, and
// prints the first passes of the best order.
#include <cstdio>
#include <exception>
#include <optional>
#include <pipesim/scenario.h>
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
    pipesim::SearchOptions options;
    options.refinement.effort = 1e5;
    const pipesim::Search search(pipesim::scenario_from_text(kScenario), options);
    std::optional<pipesim::Found> last;
    for (const double limit : {0.5, 1.0, 2.0}) {
      const pipesim::SearchResult result = search.at(limit * search.unit());
      if (!result.best) continue;
      last = result.best;
      std::printf("limit %.1f: %-8s %s  %.3f s, at most %.1f%% above any schedule\n", limit,
                  last->schedule.c_str(), last->refined ? "refined" : "as it is",
                  last->time.value(), 100 * result.gap());
    }
    if (!last) return 1;
    std::printf("device 0:");
    for (size_t i = 0; i < 8; ++i) {
      std::printf(" %s", last->program->text(0, last->program->passes(0)[i]).c_str());
    }
    std::printf(" ...\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
