#include "sim/layouts/first_scenario.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <sstream>
#include <string_view>

#include "models/layer_parameters.h"

namespace pipesim {
namespace {

// Adam in mixed precision: 2 bytes of weight, 4 of gradient, 12 of the optimizer.
constexpr double kStateBytes = 18;

struct Section {
  std::string_view key;
  std::string_view comment;
};
constexpr std::array kSections{
    Section{"model", "The transformer, a name of `pipesim list models`, or its shape."},
    Section{
        "cluster",
        "GPUs and network, a name of `pipesim list clusters`. Any key of it can be changed, as in\n"
        "# {name: dgx-h100, network: {bandwidth: 200 Gbps}}."},
    Section{"schedule",
            "The order of passes, a name of `pipesim list`. Several are compared, as in\n"
            "# `pipesim run FILE schedule='[1f1b, interleaved-1f1b, zb-h1]'`."},
    Section{"parallel", "How the GPUs divide the model."},
    Section{"batch", "Samples of an iteration and of a microbatch, and tokens of a sample."},
    Section{"cost", "Seconds follow from the model and the GPU's measured curves."},
    Section{"memory", "Memory of a GPU follows from the model."},
    Section{"recompute", "Activations that the backward pass computes again."},
    Section{"vocabulary", "Where embedding and output are computed."},
    Section{"offload", "Activations wait on the host where that hides behind compute."},
    Section{"framework", "How the training framework runs the passes."},
    Section{"optimizer", "The optimizer's step."}};

// A line of a key without indentation begins a section.
const Section* section_of(std::string_view line) {
  const auto found = std::ranges::find(kSections, line.substr(0, line.find(':')), &Section::key);
  return found == kSections.end() ? nullptr : &*found;
}

}  // namespace

int fewest_gpus(const Transformer& model, const Hardware& hardware) {
  const int node = hardware.cluster.gpus_per_node;
  const double states = kStateBytes * total_parameters(model);
  int gpus = node;
  while (states > gpus * hardware.gpu.memory.value() / 2) gpus *= 2;
  return gpus;
}

int first_seq_length(const Transformer& model) {
  constexpr int kUsual = 4096;
  if (model.positions != Positions::kLearned) return kUsual;
  // Ranks divide a multiple of 64; OPT has two rows more.
  const int rows = std::min(kUsual, model.max_position_embeddings);
  return std::max(rows - rows % 64, std::min(rows, 64));
}

std::string first_scenario(const ClusterPlan& plan, const Planned& planned) {
  std::istringstream lines(plan_scenario(plan, planned));
  std::string text =
      "# Every key: docs/reference/scenario.md. Any key can be given on the command line too, as "
      "in\n"
      "# `pipesim run FILE batch.global_batch_size=256`.\n";
  for (std::string line; std::getline(lines, line);) {
    // The same layers, and those of another schedule that is asked for.
    if (line.starts_with("  pipeline_model_parallel_layout:")) line = "  balance: auto";
    if (const Section* section = section_of(line)) {
      text += fmt::format("\n# {}\n", section->comment);
    }
    text += line + '\n';
  }
  return text;
}

}  // namespace pipesim
