// Interleaved 1F1B (Narayanan et al. 2021, arXiv 2104.04473, section 2.2.2), with Megatron's group
// size N (microbatch_group_size_per_vp_stage), p <= N <= m: microbatches go through the chunks in
// groups of N. Combined 1F1B (megatron/core/pipeline_parallel/combined_1f1b.py) runs one more
// forward in the warm-up, so that the F and the BW of a step do not depend on each other.
#include <algorithm>
#include <fmt/format.h>

#include "sim/planning/schedule.h"

namespace pipesim::interleaved_1f1b {
namespace {

// Megatron-LM's names.
constexpr auto kCombined = "overlap_moe_expert_parallel_comm";
constexpr auto kDelayed = "delay_wgrad_compute";
constexpr auto kEarly = "ep_overlap_early_attn_memory_release";

std::optional<long> wanted_group(const Problem& problem) {
  return problem.option<long>("microbatch_group_size_per_vp_stage");
}

int group_size(const Problem& problem) {
  return static_cast<int>(
      wanted_group(problem).value_or(std::min(problem.shape.devices, problem.shape.microbatches)));
}

// A last, shorter group must still fill the pipeline, or a chunk would wait for itself.
bool groups_fit(int group, int devices, int microbatches) {
  const int rest = microbatches % group;
  return group >= devices && group <= microbatches && (rest == 0 || rest >= devices);
}

std::optional<Refusal> refuse(const Problem& problem) {
  const Shape& shape = problem.shape;
  const int group = group_size(problem);
  if (groups_fit(group, shape.devices, shape.microbatches)) return std::nullopt;
  Refusal refusal;
  refusal.reason = fmt::format(
      "interleaved-1f1b sends {} microbatches in groups of {}: a group must hold at least the {} "
      "devices and at most all microbatches, and a shorter last group at least the devices",
      shape.microbatches, group, shape.devices);
  refusal.nearest = shape;
  // A group size that was asked for stays as it is; it bounds the devices.
  const int usable = wanted_group(problem) ? group : shape.devices;
  refusal.nearest.devices = std::min(shape.devices, usable);
  for (int step = 0;; ++step) {
    for (const int m : {shape.microbatches - step, shape.microbatches + step}) {
      if (m > 0 && groups_fit(usable, refusal.nearest.devices, m)) {
        refusal.nearest.microbatches = m;
        return refusal;
      }
    }
  }
}

// The order in which every device runs its forwards: chunk by chunk within a group.
std::vector<Pass> forward_order(const Shape& shape, int group) {
  std::vector<Pass> order;
  for (int begin = 0; begin < shape.microbatches; begin += group) {
    const int end = std::min(begin + group, shape.microbatches);
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      for (int i = begin; i < end; ++i) order.push_back(make_pass(PassKind::kF, i, chunk));
    }
  }
  return order;
}

Program plan(const Problem& problem) {
  const Shape& shape = problem.shape;
  const int group = group_size(problem);
  const bool extra = problem.option<bool>(kCombined).value_or(false);
  const bool blocks = extra && problem.stages.front().overlapped;
  std::vector<OverlappedPair> pairs;
  const std::vector<Pass> forwards = forward_order(shape, group);
  PassLists lists(shape.devices);
  for (int device = 0; device < shape.devices; ++device) {
    auto& list = lists[device];
    const auto warm_up = static_cast<size_t>(2 * (shape.devices - 1 - device) +
                                             (shape.chunks - 1) * group + (extra ? 1 : 0));
    size_t next = 0;
    while (next < std::min(warm_up, forwards.size())) list.push_back(forwards[next++]);
    for (Pass pass : forwards) {  // backwards come in the same order, last chunk first
      pass.kind = PassKind::kBW;
      pass.chunk = static_cast<std::uint16_t>(shape.chunks - 1 - pass.chunk);
      if (next == forwards.size()) {
        list.push_back(pass);
      } else if (blocks) {
        list.push_back(make_pass(PassKind::kFB, static_cast<int>(pairs.size())));
        pairs.push_back({forwards[next++], pass});
      } else {
        list.push_back(forwards[next++]);
        list.push_back(pass);
      }
    }
  }
  const bool paper = problem.option<bool>("zero_bubble_table5_dependencies").value_or(false);
  return {shape, problem.placement, std::move(lists), std::move(pairs),
          paper ? WrapAround::kFirstOfGroup : WrapAround::kEvery};
}

// Combined 1F1B has blocks only where their seconds are known.
bool not_combined(const Problem& problem) {
  return !problem.option<bool>(kCombined).value_or(false);
}

std::optional<BlockRun> combined_blocks(const ScheduleOptions& options) {
  const auto is_set = [&options](const char* name) {
    const auto found = options.find(name);
    return found != options.end() && found->second == OptionValue(true);
  };
  if (!is_set(kCombined)) return std::nullopt;
  return BlockRun{.weight_apart = is_set(kDelayed), .early_attention = is_set(kEarly)};
}

bool whole_groups(const Problem& problem) {
  return group_size(problem) == problem.shape.devices &&
         problem.shape.microbatches % problem.shape.devices == 0;
}

bool plain_groups(const Problem& problem) { return whole_groups(problem) && not_combined(problem); }

const RegisteredSchedule kInterleaved{{
    .name = "interleaved-1f1b",
    .summary = "1F1B over v chunks per device: bubble divided by v, more messages and memory",
    .source = "Narayanan et al. 2021, arXiv 2104.04473, section 2.2.2; group size: Megatron-LM",
    .order = "as 1F1B over v chunks, microbatches in groups of N",
    .default_chunks = 2,
    .min_chunks = 2,
    .max_chunks = 1024,
    .options = {{.name = "microbatch_group_size_per_vp_stage",
                 .help = "microbatches that go through a chunk before the next chunk's turn",
                 .minimum = 1,
                 .maximum = 1 << 20,
                 .default_text = "the number of devices"},
                {.name = kCombined,
                 .type = OptionSpec::Type::kFlag,
                 .help = "Megatron-LM's combined 1F1B: one more warm-up forward, and F and BW of "
                         "the steady state as one block where its seconds are known "
                         "(cost.overlapped, or a model's)",
                 .default_text = "false"},
                {.name = kDelayed,
                 .type = OptionSpec::Type::kFlag,
                 .help = "weight gradients of modelled blocks run apart, behind the exchange of "
                         "tokens",
                 .default_text = "false",
                 .needs = kCombined},
                {.name = kEarly,
                 .type = OptionSpec::Type::kFlag,
                 .help = "attention's backward of modelled blocks goes before the forward's "
                         "experts",
                 .default_text = "false",
                 .needs = kCombined},
                {.name = "zero_bubble_table5_dependencies",
                 .type = OptionSpec::Type::kFlag,
                 .help =
                     "wait at the wrap-around boundary only for microbatches that are multiples "
                     "of p, as the evaluator behind Zero Bubble Table 5 does (not executable)",
                 .default_text = "false"}},
    .refuse = refuse,
    .plan = plan,
    .fixed_order = not_combined,
    .whole_backward = true,
    .claims = {.bubble = {.formula = "(p-1) (F+B+W) / v, F, B, W of a device",
                          .domain = "N = p, m a multiple of p; equal stages, free transfers",
                          .holds =
                              [](const Problem& problem) {
                                return plain_groups(problem) && uniform(problem) &&
                                       free_transfers(problem);
                              },
                          .bubble =
                              [](const Problem& problem) {
                                const StageCost& cost = problem.stage(0);
                                return (problem.shape.devices - 1) *
                                       (cost.forward + cost.backward_input + cost.backward_weight);
                              }},
               .peak = {.formula = "min(2(p-1-d) + (v-1)p + 1, m v) chunks, one more if combined",
                        .domain = "N = p, m a multiple of p",
                        .holds = whole_groups,
                        .in_flight =
                            [](const Problem& problem, int device) {
                              const Shape& shape = problem.shape;
                              const int more = not_combined(problem) ? 1 : 2;
                              return std::min(2 * (shape.devices - 1 - device) +
                                                  (shape.chunks - 1) * shape.devices + more,
                                              shape.microbatches * shape.chunks);
                            }}},
    .calls = CallGroups::kMegatron,
    .blocks = combined_blocks,
    .runs_on = Runtime::kMegatron,
}};

}  // namespace
}  // namespace pipesim::interleaved_1f1b
