// Iteration times from stages' measured times, of the baselines: the artifact's runs on one host.
#include "models/redistributed.h"
#include "validate/papers/timed_run.h"
#include "validate/papers/vocabulary_parallelism/vocabulary_parallelism.h"

namespace pipesim::vocabulary_parallelism {

Seconds seconds_from_stages(const HostRun& measured, const Hardware& hardware) {
  TimedRun run;
  run.model = measured.model;
  run.hardware = hardware;
  run.layers = split_with_last(measured.model.num_layers, measured.last_layers, measured.devices);
  run.devices = measured.devices;
  run.microbatches = measured.microbatches;
  run.setting.context.seq_length = measured.seq;
  run.setting.context.micro_batch_size = measured.micro_batch;
  run.setting.state.gradients_in_fp32 = false;
  for (size_t stage = 0; stage < measured.forward.size(); ++stage) {
    run.measured.push_back({measured.forward[stage], measured.backward[stage]});
  }
  return iteration_seconds(run);
}

}  // namespace pipesim::vocabulary_parallelism
