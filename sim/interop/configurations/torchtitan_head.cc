#include "sim/interop/configurations/torchtitan_head.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <sstream>
#include <string_view>

#include "sim/core/letters.h"
#include "sim/interop/megatron/launch.h"
#include "sim/scenario/scenario.h"

namespace pipesim {
namespace {

// A key of a job file that head says in another way: in tokens, or not at all.
enum class Change { kTokens, kMicrobatches, kNothing };
struct Renamed {
  std::string_view path, option;
  Change change;
};
constexpr std::array kRenamed{
    Renamed{"training.seq_len", "training.max_context_length", Change::kNothing},
    Renamed{"training.global_batch_size", "training.num_tokens_per_train_step", Change::kTokens},
    Renamed{"training.local_batch_size", "", Change::kNothing},
    Renamed{"parallelism.pipeline_parallel_microbatch_size", "parallelism.num_pp_microbatches",
            Change::kMicrobatches},
    Renamed{"parallelism.context_parallel_rotate_method", "", Change::kNothing},
};

std::string option_of(std::string_view path, std::string value, const Case& made) {
  const Batch& batch = made.scenario->batch;
  const auto* const renamed = std::ranges::find(kRenamed, path, &Renamed::path);
  if (renamed != kRenamed.end()) {
    if (renamed->option.empty()) return "";
    path = renamed->option;
    if (renamed->change == Change::kTokens) {
      value = fmt::format("{}", std::stol(value) * *batch.seq_length);
    } else if (renamed->change == Change::kMicrobatches) {
      value = fmt::format("{}", batch.microbatches);
    }
  }
  std::erase(value, '"');
  if (value != "true" && value != "false") return fmt::format("--{} {}", path, value);
  const size_t key = path.find('.') + 1;
  return fmt::format("--{}{}{}", path.substr(0, key), value == "true" ? "" : "no_",
                     path.substr(key));
}

// The job file's sections model and activation_checkpoint are words of their own there.
struct Job {
  std::string flavor;
  std::string checkpointing;
  std::string options;  // a line each
};

Job job_of(const Case& made, const std::string& text) {
  Job job;
  std::istringstream lines(text);
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find(" = ");
    if (line.starts_with('[')) section = line.substr(1, line.find(']') - 1);
    if (equals == std::string::npos) continue;
    const std::string path = fmt::format("{}.{}", section, line.substr(0, equals));
    std::string value = line.substr(equals + 3);
    if (path == "model.flavor" || path == "activation_checkpoint.mode") {
      std::erase(value, '"');
      (section == "model" ? job.flavor : job.checkpointing) = value;
    } else if (section != "model") {
      const std::string option = option_of(path, value, made);
      if (!option.empty()) job.options += fmt::format("  {}\n", option);
    }
  }
  job.flavor = small_letters(job.flavor);
  return job;
}

}  // namespace

std::string why_not_torchtitan_head(const Case& made) {
  const Modelled& modelled = *made.scenario->modelled;
  constexpr int kLayersOfEightBits =
      126;  // of its llama3_405b, which no option takes out of float8
  if (modelled.model.num_layers == kLayersOfEightBits) {
    return "its llama3_405b computes in float8";
  }
  if (modelled.context.context > 1 && modelled.context.exchange == ContextExchange::kRing) {
    return "its context ranks gather keys and values (cp_comm_type: all_gather)";
  }
  return "";
}

std::string torchtitan_head_script(const Case& made, const std::string& text) {
  const Scenario& scenario = *made.scenario;
  const Job job = job_of(made, text);
  const Batch& batch = scenario.batch;
  std::string script = fmt::format(
      "#!/usr/bin/env bash\n# torchtitan at head (b5bcd76): {} on {}.\n"
      "# left out: the loss runs in chunks there, which holds fewer logits\n{}",
      scenario.modelled->model.name, ranks_text(ranks_of(made)),
      "# Run it on every node, with MASTER_ADDR and TORCHTITAN, the folder of a checkout.\n"
      "set -euo pipefail\n\n");
  script += launch_places(ranks_of(made), "TORCHTITAN");
  script +=
      "\n# To set: what only you know. As it stands the run takes C4 and saves nothing.\n"
      "TOKENIZER=(--hf_assets_path ./assets/hf/Llama-3.1-" +
      std::string(job.flavor == "8b" ? "8B" : "70B") +
      ")\nCHECKPOINTS=()  # --checkpoint.enable --dump_folder FOLDER\n"
      "TRAINING=(--training.steps 50 --metrics.log_freq 1)\n\nFLAGS=(\n";
  script += fmt::format("  --training.num_tokens_per_microbatch_per_dp_rank {}\n",
                        1L * *batch.micro_batch_size * *batch.seq_length);
  script += job.options + "  --training.disable_cuda_graphs\n)\n\n";
  script += launch_arrays();
  script += fmt::format(
      "cd \"$TORCHTITAN\"\ntorchrun \"${{NODES[@]}}\" \"${{ADDRESS[@]}}\" -m torchtitan.train "
      "--module llama3 \\\n  --config llama3_{} \"${{FLAGS[@]}}\" \"${{TOKENIZER[@]}}\" "
      "\"${{CHECKPOINTS[@]}}\" \\\n  \"${{TRAINING[@]}}\" activation-checkpoint:{}\n",
      job.flavor, job.checkpointing);
  return script;
}

}  // namespace pipesim
