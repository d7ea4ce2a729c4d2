#include "sim/interop/megatron/fork_runtime.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>

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
    Missing{"--context-parallel-size", "context parallelism in its runtime"},
    Missing{"--expert-tensor-parallel-size", "experts of a tensor parallel size of their own"},
    Missing{"--fp8-format", "fp8 without Transformer Engine, which its runtime does not take"},
    Missing{"--recompute-modules", "a choice of modules to recompute"},
    Missing{"--moe-token-dispatcher-type flex", "dispatcher flex"},
    Missing{"--use-megatron-fsdp", "Megatron-FSDP"},
    Missing{"--num-distributed-optimizer-instances", "several copies of its optimizer's state"},
    Missing{"--overlap-param-gather", "gathering of parameters behind forwards in its runtime"},
};

// Whether a flag stands there, `asked` with its value or without.
bool has(const std::vector<std::string>& flags, std::string_view asked) {
  return std::ranges::any_of(flags, [&](const std::string& flag) {
    return flag == asked || flag.starts_with(fmt::format("{} ", asked));
  });
}

}  // namespace

std::string add_fork_runtime(const Scenario& scenario, std::vector<std::string>& flags,
                             std::vector<std::string>& notes) {
  for (const Missing& each : kMissing) {
    if (has(flags, each.flag)) return fmt::format("the fork has no {}", each.what);
  }
  if (std::erase(flags, "--grad-reduce-in-bf16") > 0) {
    notes.emplace_back("gradients are reduced in fp32, the fork's only way");
  }
  const bool splits = has(flags, "--enable-zero-bubble") || has(flags, "--zero-bubble-v-schedule");
  if (splits && has(flags, "--use-distributed-optimizer") && has(flags, "--overlap-grad-reduce")) {
    return "the fork has no overlap of gradients with its distributed optimizer";
  }
  for (const char* flag :
       {"--enable-zb-runtime", "--use-legacy-models", "--transformer-impl local"}) {
    flags.emplace_back(flag);
  }
  // Sequence splits need it, and a scenario without a model has no other wish.
  if (!scenario.modelled || scenario.modelled->context.flash_attention ||
      has(flags, "--num-seq-splits")) {
    flags.emplace_back("--use-flash-attn");
  }
  constexpr std::string_view kUntied = "--untie-embeddings-and-output-weights";
  if (has(flags, kUntied)) return "";
  flags.emplace_back(kUntied);
  if (scenario.modelled) {
    notes.emplace_back("the fork has no tied embeddings, so its last stage holds a copy more");
  }
  return "";
}

}  // namespace pipesim
