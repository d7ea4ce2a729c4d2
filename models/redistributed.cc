#include "models/redistributed.h"

#include <algorithm>
#include <cmath>

#include "models/layer_work.h"

namespace pipesim {

std::vector<int> split_with_last(int layers, int last, int stages) {
  std::vector<int> split(stages, last);
  const int rest = layers - last;
  const int others = stages - 1;
  for (int stage = 0; stage < others; ++stage) {
    split[stage] = rest / others + (stage >= others - rest % others ? 1 : 0);
  }
  return split;
}

Layout redistributed_layout(const Transformer& model, int seq_length, int stages) {
  const int layers = model.num_layers;
  if (stages == 1) return listed_layout(model, std::vector<int>{layers});
  LayerContext context;
  context.seq_length = seq_length;
  context.causal = false;
  const Flops output = flops(layer_work(model, LayerKind::kOutput, PassKind::kF, context));
  const Flops whole = model_flops(model, seq_length, false) / 3;
  const double output_in_layers = output / ((whole - output) / layers);
  const double mean_stage = (layers + output_in_layers) / stages;
  const int least = static_cast<int>(std::ceil(mean_stage - output_in_layers));
  return listed_layout(model,
                       split_with_last(layers, std::clamp(least, 0, layers / stages), stages));
}

}  // namespace pipesim
