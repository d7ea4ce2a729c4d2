#include "sim/case/throughput.h"

#include <algorithm>
#include <numeric>

#include "models/layer_work.h"
#include "sim/scenario/gpus.h"

namespace pipesim {
namespace {

// Tokens of all documents, where they differ.
double tokens_of(const UnequalBatch& unequal) {
  double tokens = 0;
  for (const Documents& documents : unequal.documents) {
    for (const int document : documents) tokens += document;
  }
  return tokens;
}

Flops flops_of_image(Transformer model, const LayerContext& context, bool causal) {
  model.encoder->images = 1;
  const auto flops = [&] { return model_flops(model, context.seq_length, causal, context); };
  const Flops with_one = flops();
  model.encoder = std::nullopt;
  return with_one - flops();
}

// Samples of one pipeline; of documents that differ, seq_length tokens of them for one.
double samples_of(const Scenario& scenario) {
  const auto& unequal = scenario.batch.unequal;
  if (unequal && unequal->lengths()) return tokens_of(*unequal) / *scenario.batch.seq_length;
  return static_cast<double>(scenario.batch.microbatches) * *scenario.batch.micro_batch_size;
}

// Where documents differ a sample stands for seq_length tokens of them, where images differ it has
// as many as all have on average.
Flops flops_of_sample(const Scenario& scenario, const LayerContext& context, bool causal) {
  Transformer model = scenario.modelled->model;
  const auto& unequal = scenario.batch.unequal;
  const double samples = samples_of(scenario);
  Flops of_images;
  if (unequal && !unequal->images.empty()) {
    const double images = std::accumulate(unequal->images.begin(), unequal->images.end(), 0.0);
    of_images = images / samples * flops_of_image(model, context, causal);
    model.encoder = std::nullopt;
  }
  const auto flops = [&](int tokens) { return model_flops(model, tokens, causal, context); };
  if (!unequal || !unequal->lengths()) return flops(context.seq_length) + of_images;
  Flops sum;
  for (const Documents& documents : unequal->documents) {
    for (const int document : documents) sum += flops(document);
  }
  return 1 / samples * sum + of_images;
}

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
