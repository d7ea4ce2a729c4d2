#include "sim/scenario/samples.h"

#include <numeric>

#include "models/layer_work.h"

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

}  // namespace

double samples_of(const Scenario& scenario) {
  const auto& unequal = scenario.batch.unequal;
  if (unequal && unequal->lengths()) return tokens_of(*unequal) / *scenario.batch.seq_length;
  return static_cast<double>(scenario.batch.microbatches) * *scenario.batch.micro_batch_size;
}

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

}  // namespace pipesim
