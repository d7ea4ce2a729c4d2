#include "sim/case/throughput.h"

#include <algorithm>

#include "models/layer_work.h"

namespace pipesim {
namespace {

// Model FLOPs count all of attention, as Megatron-LM does, and nothing that is run again.
void add_utilization(const Case& made, Throughput& rate) {
  const Scenario& scenario = *made.scenario;
  if (!scenario.modelled || !scenario.hardware) return;
  const LayerContext& context = *made.context;
  const Flops flops = model_flops(scenario.modelled->model, context.seq_length, false);
  const FlopsPerSecond peak = scenario.hardware->gpu.peak[static_cast<size_t>(context.precision)];
  const double used = rate.samples_per_second_per_gpu * flops.value();
  rate.model_tflops_per_gpu = used / 1e12;
  rate.mfu = used / peak.value();
  if (context.recompute.of_modules()) return;
  const double again =
      static_cast<double>(made.problem.recompute_chunks) / std::max(1, made.placement.chunks());
  rate.hfu = *rate.mfu * (1 + again / 3);  // a forward of three
}

}  // namespace

std::optional<Throughput> throughput_of(const Case& made, Seconds iteration) {
  const Scenario& scenario = *made.scenario;
  if (!scenario.batch.micro_batch_size) return std::nullopt;
  const double samples = static_cast<double>(scenario.batch.microbatches) *
                         *scenario.batch.micro_batch_size * scenario.parallel.data;
  const double gpus = static_cast<double>(scenario.parallel.pipeline) * scenario.parallel.tensor *
                      scenario.parallel.context * scenario.parallel.data;
  const double rate = samples / iteration.value();
  Throughput throughput{rate, rate / gpus};
  add_utilization(made, throughput);
  return throughput;
}

}  // namespace pipesim
