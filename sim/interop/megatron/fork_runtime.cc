#include "sim/interop/megatron/fork_runtime.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>

#include "sim/interop/megatron/flag_list.h"

namespace pipesim {
namespace {

// Flags of Megatron-LM that the fork does not know, and what a scenario with them has.
struct Missing {
  std::string_view flag;
  std::string_view what;
};
constexpr std::array kMissing{
    Missing{"--multi-latent-attention", "latent attention"},
    Missing{"--mtp-num-layers", "MTP layers"},
    Missing{"--moe-ffn-hidden-size", "experts of a width of their own"},
    Missing{"--moe-latent-size", "experts in a latent space"},
    Missing{"--context-parallel-size", "context parallelism in its runtime"},
    Missing{"--expert-tensor-parallel-size", "experts of a tensor parallel size of their own"},
    Missing{"--fp8-format", "fp8 without Transformer Engine, which its runtime does not take"},
    Missing{"--recompute-modules", "a choice of modules to recompute"},
    Missing{"--moe-token-dispatcher-type flex", "dispatcher flex"},
    Missing{"--use-megatron-fsdp", "Megatron-FSDP"},
    Missing{"--num-distributed-optimizer-instances", "several copies of its optimizer's state"},
    Missing{"--overlap-param-gather", "gathering of parameters behind forwards in its runtime"},
    Missing{"--fine-grained-activation-offloading", "modules that offload"},
    Missing{"--use-precision-aware-optimizer", "optimizer's states in other precisions"},
    Missing{"--window-size", "windows of attention"},
    Missing{"--softmax-type", "scores that belong to no token"},
    Missing{"--attention-output-gate", "gate of attention's output"},
    Missing{"--qk-l2-norm", "norms without weights"},
};

}  // namespace

std::string add_fork_runtime(const Scenario& scenario, MegatronFlags& to) {
  std::vector<std::string>& flags = to.flags;
  for (const Missing& each : kMissing) {
    if (has_flag(flags, each.flag)) return fmt::format("the fork has no {}", each.what);
  }
  if (std::erase(flags, "--grad-reduce-in-bf16") > 0) {
    to.left_out.emplace_back("gradients of 16 bits: the fork reduces them in fp32");
  }
  const bool splits =
      has_flag(flags, "--enable-zero-bubble") || has_flag(flags, "--zero-bubble-v-schedule");
  if (splits && has_flag(flags, "--use-distributed-optimizer") &&
      has_flag(flags, "--overlap-grad-reduce")) {
    return "the fork has no overlap of gradients with its distributed optimizer";
  }
  for (const char* flag :
       {"--enable-zb-runtime", "--use-legacy-models", "--transformer-impl local"}) {
    flags.emplace_back(flag);
  }
  // Sequence splits need it, and a scenario without a model has no other wish.
  if (!scenario.modelled || scenario.modelled->context.flash_attention ||
      has_flag(flags, "--num-seq-splits")) {
    flags.emplace_back("--use-flash-attn");
  }
  constexpr std::string_view kUntied = "--untie-embeddings-and-output-weights";
  if (has_flag(flags, kUntied)) return "";
  flags.emplace_back(kUntied);
  if (scenario.modelled) {
    to.left_out.emplace_back("tied embeddings: the fork's last stage holds a copy more");
  }
  return "";
}

}  // namespace pipesim
