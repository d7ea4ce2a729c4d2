#include "sim/interop/megatron/launch.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <numeric>
#include <string_view>

namespace pipesim {
namespace {

// A line of the environment, needed beside the first flag and without any of the others.
struct Variable {
  std::string_view line;
  std::string_view beside;
  std::array<std::string_view, 2> without = {};
};
// Assertions of validate_args (megatron/training/arguments.py), which spares Blackwell the first:
// one queue starts collectives before the matmuls that they run beside. Both overlaps of the rows
// below need several.
constexpr std::array kVariables{
    Variable{"export CUDA_DEVICE_MAX_CONNECTIONS=1",
             "--tensor-model-parallel-size",
             {"--use-megatron-fsdp", "--overlap-moe-expert-parallel-comm"}},
    Variable{"export CUDA_DEVICE_MAX_CONNECTIONS=1",
             "--context-parallel-size",
             {"--use-megatron-fsdp", "--overlap-moe-expert-parallel-comm"}},
    Variable{"export CUDA_DEVICE_MAX_CONNECTIONS=32",
             "--overlap-moe-expert-parallel-comm",
             {"--use-megatron-fsdp"}},
    Variable{"unset CUDA_DEVICE_MAX_CONNECTIONS", "--use-megatron-fsdp"},
    Variable{"export NVTE_CPU_OFFLOAD_V1=1", "--fine-grained-activation-offloading"},
};

// A variable that is set outside, else has this value.
std::string settable(std::string_view name, std::string_view value) {
  return fmt::format("{}=${{{}:-{}}}\n", name, name, value);
}

std::string comments(const MegatronFlags& flags) {
  std::string text;
  for (const auto* lines : {&flags.differences, &flags.left_out, &flags.notes}) {
    const char* const before = lines == &flags.notes ? "" : "left out: ";
    for (const std::string& line : *lines) text += fmt::format("# {}{}\n", before, line);
  }
  return text;
}

}  // namespace

LaunchRanks ranks_of(const Case& made) {
  const Scenario& scenario = *made.scenario;
  const ParallelSizes& sizes = scenario.parallel;
  LaunchRanks ranks;
  ranks.gpus = made.problem.shape.devices * sizes.tensor * sizes.context * sizes.data;
  ranks.data = sizes.data;
  if (!scenario.hardware) return ranks;
  // Links that join more GPUs than a host has join trays of four (NVL72).
  constexpr int kMostOfHost = 16;
  constexpr int kGpusOfTray = 4;
  const int node = scenario.hardware->cluster.gpus_per_node;
  ranks.gpus_per_node = node > kMostOfHost ? kGpusOfTray : node;
  ranks.cluster = scenario.hardware->name;
  return ranks;
}

std::string ranks_text(const LaunchRanks& ranks) {
  return fmt::format("{} GPUs{}{}, data parallel size {}", ranks.gpus,
                     ranks.cluster.empty() ? "" : " of ", ranks.cluster, ranks.data);
}

// Ranks fill a node, or are fewer.
std::string launch_places(const LaunchRanks& ranks, std::string_view folder) {
  const int each = std::gcd(ranks.gpus, ranks.gpus_per_node);
  return settable("NNODES", fmt::format("{}", ranks.gpus / each)) +
         settable("GPUS_PER_NODE", fmt::format("{}", each)) +
         settable("NODE_RANK", "${SLURM_NODEID:-0}") + settable("MASTER_ADDR", "localhost") +
         settable("MASTER_PORT", "29500") + settable(folder, ".");
}

std::string launch_arrays() {
  return "NODES=(--nnodes \"$NNODES\" --nproc-per-node \"$GPUS_PER_NODE\" --node-rank "
         "\"$NODE_RANK\")\n"
         "ADDRESS=(--master-addr \"$MASTER_ADDR\" --master-port \"$MASTER_PORT\")\n";
}

bool has_flag(const std::vector<std::string>& flags, std::string_view asked) {
  return std::ranges::any_of(flags, [asked](const std::string& flag) {
    return flag == asked || flag.starts_with(fmt::format("{} ", asked));
  });
}

std::vector<std::string> environment_of(const MegatronFlags& flags) {
  std::vector<std::string> lines;
  for (const Variable& each : kVariables) {
    const bool without = std::ranges::none_of(each.without, [&flags](std::string_view flag) {
      return !flag.empty() && has_flag(flags.flags, flag);
    });
    const bool stands = std::ranges::find(lines, each.line) != lines.end();
    if (without && !stands && has_flag(flags.flags, each.beside)) lines.emplace_back(each.line);
  }
  return lines;
}

std::string launch_script(const MegatronFlags& flags) {
  std::string text = fmt::format("#!/usr/bin/env bash\n# {}: {} on {}.\n", flags.runtime,
                                 flags.model, ranks_text(flags.ranks));
  text += comments(flags);
  text +=
      "# Run it on every node, with MASTER_ADDR and MEGATRON, the folder of a checkout.\n"
      "set -euo pipefail\n\n";
  for (const std::string& line : environment_of(flags)) text += line + "\n";
  text += launch_places(flags.ranks, "MEGATRON");
  text +=
      "\n# To set: what only you know. As it stands the run takes made-up tokens and saves "
      "nothing.\n"
      "DATA=(--mock-data)  # --data-path PREFIX --split 99,1,0\n"
      "TOKENIZER=(--tokenizer-type NullTokenizer)"
      "  # HuggingFaceTokenizer --tokenizer-model FOLDER\n"
      "CHECKPOINTS=()  # --save FOLDER --load FOLDER --save-interval 500\n"
      "TRAINING=(--train-iters 50 --lr 1e-4 --log-interval 1)\n\nFLAGS=(\n";
  for (const std::string& flag : flags.flags) text += fmt::format("  {}\n", flag);
  return text + ")\n\n" + launch_arrays() +
         "torchrun \"${NODES[@]}\" \"${ADDRESS[@]}\" \"$MEGATRON/pretrain_gpt.py\" "
         "\"${FLAGS[@]}\" \\\n"
         "  \"${DATA[@]}\" \"${TOKENIZER[@]}\" \"${CHECKPOINTS[@]}\" \"${TRAINING[@]}\"\n";
}

}  // namespace pipesim
