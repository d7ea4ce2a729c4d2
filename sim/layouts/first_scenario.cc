#include "sim/layouts/first_scenario.h"

#include <algorithm>
#include <fmt/format.h>

#include "models/layer_parameters.h"

namespace pipesim {
namespace {

// Adam in mixed precision with a distributed optimizer: 2 bytes of weight, 4 of gradient, and 12
// that the data ranks share (docs/reference/model.md, "Memory of a GPU").
double state_bytes(const Transformer& model, const FirstSizes& sizes) {
  return total_parameters(model) / (sizes.tensor * sizes.pipeline) * (6 + 12.0 / sizes.data);
}

bool states_fit(const Transformer& model, const Hardware& hardware, const FirstSizes& sizes) {
  return state_bytes(model, sizes) <= hardware.gpu.memory.value() / 2;
}

// Two layers for every stage, so that schedules with two chunks per device have one for each.
bool enough_layers(const Transformer& model, int pipeline) {
  return 2 * pipeline <= model.num_layers;
}

bool divides_model(const Transformer& model, int tensor) {
  const auto& own = model.window_heads;
  if (own && (own->num_attention_heads % tensor != 0 || own->num_query_groups % tensor != 0)) {
    return false;
  }
  return model.num_attention_heads % tensor == 0 &&
         (model.latent || model.num_query_groups % tensor == 0);
}

int tensor_size(const Transformer& model, const Hardware& hardware, std::optional<int> gpus,
                int pipeline) {
  int tensor = 1;
  for (int size : {2, 4, 8}) {
    const bool whole = !gpus || *gpus % (size * pipeline) == 0;
    if (hardware.cluster.gpus_per_node % size == 0 && divides_model(model, size) && whole) {
      tensor = size;
    }
  }
  return tensor;
}

FirstSizes sizes_on(const Transformer& model, const Hardware& hardware, FirstSizes sizes,
                    int gpus) {
  for (int pipeline = sizes.pipeline; enough_layers(model, pipeline); pipeline *= 2) {
    if (gpus % (sizes.tensor * pipeline) != 0) break;
    sizes.pipeline = pipeline;
    sizes.data = gpus / (sizes.tensor * pipeline);
    if (states_fit(model, hardware, sizes)) break;
  }
  return sizes;
}

FirstSizes fewest_gpus(const Transformer& model, const Hardware& hardware,
                       const FirstSizes& least) {
  FirstSizes best = least;
  bool found = false;
  for (int pipeline = least.pipeline; enough_layers(model, pipeline); pipeline *= 2) {
    if (!found) best.pipeline = pipeline;
    for (int data = 1; data <= 64; data *= 2) {
      FirstSizes sizes = least;
      sizes.pipeline = pipeline;
      sizes.data = data;
      if (!states_fit(model, hardware, sizes)) continue;
      if (!found || sizes.gpus() < best.gpus()) best = sizes;
      found = true;
    }
  }
  return best;
}

std::string experts_text(const Transformer& model, const FirstSizes& sizes) {
  if (!model.experts) return "";
  return fmt::format("  expert_model_parallel_size: {}\n  expert_tensor_parallel_size: 1\n",
                     sizes.expert);
}

}  // namespace

FirstSizes first_sizes(const Transformer& model, const Hardware& hardware, std::optional<int> gpus,
                       const Location& asked) {
  if (gpus && *gpus % 2 != 0) {
    throw InputError(
        asked, fmt::format("a pipeline needs an even number of GPUs; the nearest: {}", *gpus + 1));
  }
  FirstSizes sizes;
  sizes.pipeline = gpus && *gpus % 4 != 0 ? 2 : 4;
  sizes.tensor = tensor_size(model, hardware, gpus, sizes.pipeline);
  if (model.experts) {
    sizes.expert = sizes.tensor;
    while (model.experts->num_experts % sizes.expert != 0) sizes.expert /= 2;
  }
  sizes = gpus ? sizes_on(model, hardware, sizes, *gpus) : fewest_gpus(model, hardware, sizes);
  return sizes;
}

std::string first_scenario(const Transformer& model, const Hardware& hardware,
                           const FirstSizes& sizes) {
  const bool learned = model.positions == Positions::kLearned;
  // Of positions, as many as ranks divide: OPT has two rows more.
  const int rows = std::min(4096, model.max_position_embeddings);
  const int tokens = learned ? std::max(rows - rows % 64, std::min(rows, 64)) : 4096;
  const bool even = model.num_layers % (2 * sizes.pipeline) == 0;
  std::string text = fmt::format(
      "# {0} on {2} GPUs of {1}. Every key: docs/reference/scenario.md. Any key can be given on "
      "the\n"
      "# command line too, as in `pipesim run FILE batch.global_batch_size=256`.\n\n",
      model.name, hardware.name, sizes.gpus());
  text += fmt::format(
      "# The transformer, a name of `pipesim list models`; or its shape "
      "(docs/reference/scenario.md, "
      "\"Model\").\n"
      "model: {}\n\n"
      "# GPUs and network, a name of `pipesim list clusters`; {{name: {}, network: {{bandwidth: "
      "200 "
      "Gbps}}}}\n# changes one (docs/reference/scenario.md).\n"
      "cluster: {}\n\n",
      model.name, hardware.name, hardware.name);
  text +=
      "# What is compared: names of `pipesim list`, each drawn in docs/reference/gallery.md.\n"
      "schedule: [1f1b, interleaved-1f1b, zb-h1, v-half]\n\n"
      "# How the GPUs divide the model; `pipesim plan` finds the fastest sizes "
      "(docs/how-to/plan.md).\n";
  text += fmt::format(
      "parallel:\n"
      "  tensor_model_parallel_size: {}\n"
      "  sequence_parallel: {}\n"
      "{}"
      "  pipeline_model_parallel_size: {}\n"
      "  data_parallel_size: {}\n",
      sizes.tensor, sizes.tensor > 1, experts_text(model, sizes), sizes.pipeline, sizes.data);
  if (!even) {
    text += fmt::format("  balance: auto  # {} layers do not divide evenly\n", model.num_layers);
  }
  text += fmt::format(
      "\n# The samples of one iteration, of a microbatch, and the tokens of a sample "
      "(docs/reference/scenario.md).\n"
      "batch: {{global_batch_size: {}, micro_batch_size: 1, seq_length: {}}}\n\n"
      "# Memory of a GPU follows from the model (docs/reference/model.md, \"Memory of a GPU\").\n"
      "memory: {{{}use_distributed_optimizer: true}}\n\n"
      "# `replay` is fast; under `simgrid` messages share links (docs/reference/model.md, "
      "\"Execution\").\n"
      "engine: replay\n",
      8 * sizes.pipeline * sizes.data, tokens, hardware.gpu.has_bf16 ? "" : "precision: fp16, ");
  return text;
}

}  // namespace pipesim
