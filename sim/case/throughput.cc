#include "sim/case/throughput.h"

#include <algorithm>
#include <numeric>

#include "sim/scenario/gpus.h"
#include "sim/scenario/samples.h"

namespace pipesim {
namespace {

// Model FLOPs count nothing that is run again.
void add_utilization(const Case& made, const Program& program, Throughput& rate) {
  const Scenario& scenario = *made.scenario;
  if (!scenario.modelled || !scenario.hardware) return;
  const LayerContext& context = *made.context;
  const FlopsPerSecond peak = scenario.hardware->gpu.peak[static_cast<size_t>(context.precision)];
  const auto used = [&](bool causal) {
    return rate.samples_per_second_per_gpu * flops_of_sample(scenario, context, causal).value();
  };
  rate.model_tflops_per_gpu = used(false) / 1e12;
  rate.mfu = used(false) / peak.value();
  rate.model_tflops_per_gpu_causal = used(context.causal) / 1e12;
  rate.mfu_causal = used(context.causal) / peak.value();
  const bool part = context.recompute.of_modules() || !context.recomputed_layers.all();
  const bool frozen = scenario.modelled->model.encoder && scenario.modelled->model.encoder->frozen;
  if (part || frozen || !trains_model(context)) return;  // of what F and its repetition take
  const Placement& place = made.placement;
  double again = 0;  // stages that recompute
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    if (program.recomputes(vs)) again += 1;
  }
  rate.hfu = *rate.mfu * (1 + again / place.virtual_stages() / 3);  // a forward of three
}

}  // namespace

Throughput mean_of(std::span<const Throughput> runs, std::span<const double> seconds) {
  const double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  Throughput mean{.model_tflops_per_gpu = 0,
                  .mfu = 0,
                  .model_tflops_per_gpu_causal = 0,
                  .mfu_causal = 0,
                  .hfu = 0};
  for (size_t i = 0; i < runs.size(); ++i) {
    const Throughput& run = runs[i];
    const double share = seconds[i] / all;
    mean.samples_per_second += share * run.samples_per_second;
    mean.samples_per_second_per_gpu += share * run.samples_per_second_per_gpu;
    for (const auto rate :
         {&Throughput::model_tflops_per_gpu, &Throughput::mfu,
          &Throughput::model_tflops_per_gpu_causal, &Throughput::mfu_causal, &Throughput::hfu}) {
      mean.*rate = mean.*rate && run.*rate ? std::optional(*(mean.*rate) + share * *(run.*rate))
                                           : std::nullopt;
    }
  }
  return mean;
}

std::optional<Throughput> throughput_of(const Case& made, const Program& program,
                                        Seconds iteration) {
  const Scenario& scenario = *made.scenario;
  if (!scenario.batch.micro_batch_size) return std::nullopt;
  const double samples = samples_of(scenario) * scenario.parallel.data;
  const double rate = samples / iteration.value();
  Throughput throughput{rate, rate / static_cast<double>(gpus_of(scenario.parallel))};
  add_utilization(made, program, throughput);
  return throughput;
}

}  // namespace pipesim
