// Plans a model on two nodes and simulates each layout again on a network of half the speed.
#include <cstdio>
#include <pipesim/plan.h>
#include <pipesim/simulate.h>

int main() {
  try {
    const pipesim::Plan plan = pipesim::plan({.model = "llama3-8b",
                                              .clusters = {"dgx-h100"},
                                              .gpus = 16,
                                              .global_batch_size = 64,
                                              .seq_length = 8192,
                                              .options = {"--contention", "0", "--best", "3"}});
    for (const pipesim::Layout& layout : plan.layouts) {
      const auto slower = pipesim::scenario_from_text(layout.scenario)
                              .replace({{"cluster.network.bandwidth", "200 Gbps"}});
      std::printf("tp %d pp %d dp %d  %.3f s  MFU %.1f%%  on half the network %.3f s\n",
                  layout.tensor_model_parallel_size, layout.pipeline_model_parallel_size,
                  layout.data_parallel_size, layout.iteration_seconds, 100 * layout.mfu,
                  pipesim::simulate(slower).results.at(0).metrics.iteration_seconds);
    }
  } catch (const pipesim::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
