#include "sim/interop/megatron/flags.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <string_view>

#include "sim/core/error.h"
#include "sim/interop/megatron/fork_runtime.h"
#include "sim/interop/megatron/launch.h"
#include "sim/interop/megatron/model_flags.h"
#include "sim/interop/megatron/setting_flags.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

struct Asked {
  explicit Asked(const Case& made)
      : scenario(*made.scenario),
        choice(made.choice),
        problem(made.problem),
        expert(made.context ? made.context->expert : 1),
        shape(made.problem.shape) {}

  const Scenario& scenario;
  const ScheduleChoice& choice;
  const Problem& problem;
  int expert;  // ranks that divide the experts
  const Shape& shape;
};

// Every layer of every chunk again, from its input.
bool recomputes_in_full(const ScheduleChoice& choice) {
  return granularity_of(choice) == RecomputeGranularity::kFull &&
         recompute_chunks_of(choice) == chunks_of(choice);
}

void add_full_recompute(const RecomputedLayers& layers, MegatronFlags& to) {
  const bool block = layers.first > 0;
  to.flags.emplace_back("--recompute-granularity full");
  to.flags.push_back(fmt::format("--recompute-method {}", block ? "block" : "uniform"));
  to.flags.push_back(fmt::format("--recompute-num-layers {}", block ? layers.first : layers.group));
  if (layers.others.of_modules()) {
    to.differences.push_back(fmt::format(
        "{} recomputed in the other layers, for which it has no flag", to_text(layers.others)));
  }
  if (layers.every > 1) {
    to.differences.push_back(
        fmt::format("one of every {} layers recomputed, for which it has no flag", layers.every));
  }
}

// Adds a schedule's own flags; returns why it cannot, or an empty string.
using Add = std::string (*)(const Asked& asked, MegatronFlags& to);

std::string plain(const Asked& /*asked*/, MegatronFlags& /*to*/) { return ""; }

bool overlaps_experts(const Problem& problem) {
  return problem.option<bool>("overlap_moe_expert_parallel_comm").value_or(false);
}

std::string interleaved(const Asked& asked, MegatronFlags& to) {
  const Problem& problem = asked.problem;
  if (problem.option<bool>("zero_bubble_table5_dependencies").value_or(false)) {
    return "no runtime skips the waits that zero_bubble_table5_dependencies leaves out";
  }
  if (asked.shape.devices > 1) {
    to.flags.push_back(
        fmt::format("--num-virtual-stages-per-pipeline-rank {}", asked.shape.chunks));
  }
  if (const auto group = problem.option<long>("microbatch_group_size_per_vp_stage")) {
    to.flags.push_back(
        fmt::format("--microbatch-group-size-per-virtual-pipeline-stage {}", *group));
  }
  if (overlaps_experts(problem)) {
    const auto& modelled = asked.scenario.modelled;
    if (modelled && !(modelled->model.experts && asked.expert > 1)) {
      return "Megatron-LM overlaps the exchange of tokens between ranks of experts, and here are "
             "none";
    }
    if (recomputes_in_full(asked.choice)) return "Megatron-LM overlaps nothing that recomputes all";
    if (!modelled) {
      to.notes.emplace_back(
          "to set: a model of experts, --expert-model-parallel-size and "
          "--moe-token-dispatcher-type alltoall");
    }
    to.flags.emplace_back("--overlap-moe-expert-parallel-comm");
  }
  if (problem.option<bool>("delay_wgrad_compute").value_or(false)) {
    to.flags.emplace_back("--delay-wgrad-compute");
  }
  if (problem.option<bool>("ep_overlap_early_attn_memory_release").value_or(false)) {
    to.flags.emplace_back("--ep-overlap-early-attn-memory-release");
  }
  return "";
}

constexpr std::string_view kTimed =
    "the fork plans from pass times that it measures while training; with other times than the "
    "scenario's its order may differ";

// `pending`: the microbatches whose activations the schedule may keep.
std::string zero_bubble(MegatronFlags& to, int pending) {
  to.flags.emplace_back("--enable-zero-bubble");
  to.flags.push_back(fmt::format("--zero-bubble-max-pending-backward {}", pending));
  to.notes.emplace_back(kTimed);
  return "";
}
std::string zb_1p(const Asked& asked, MegatronFlags& to) {
  return zero_bubble(to, asked.shape.devices);
}
std::string zb_2p(const Asked& asked, MegatronFlags& to) {
  return zero_bubble(to, 2 * asked.shape.devices);
}
std::string zb(const Asked& asked, MegatronFlags& to) {
  if (!asked.problem.activation_limit) return zb_2p(asked, to);
  const Bytes one = for_planning(asked.problem).device_activation();
  const double pending = std::floor(*asked.problem.activation_limit / one * (1 + 1e-12));
  return zero_bubble(to, static_cast<int>(std::min<double>(pending, asked.shape.microbatches)));
}

std::string v_schedule(MegatronFlags& to, const char* memory) {
  to.flags.emplace_back("--zero-bubble-v-schedule");
  to.flags.push_back(fmt::format("--zero-bubble-v-schedule-mem-setup {}", memory));
  return "";
}
std::string zb_v(const Asked& /*asked*/, MegatronFlags& to) {
  to.notes.emplace_back(kTimed);
  return v_schedule(to, "zb");
}
std::string v_half(const Asked& /*asked*/, MegatronFlags& to) { return v_schedule(to, "half"); }
std::string v_min(const Asked& /*asked*/, MegatronFlags& to) { return v_schedule(to, "min"); }

std::string v_1f1b(const Asked& /*asked*/, MegatronFlags& to) {
  to.flags.emplace_back("--enable-1f1b-v");
  return "";
}

std::string sequence_splits(const Asked& asked, MegatronFlags& to) {
  if (std::ranges::adjacent_find(asked.choice.slices, std::ranges::not_equal_to()) !=
      asked.choice.slices.end()) {
    return fmt::format(
        "its slices are of unequal lengths, and --num-seq-splits cuts equal ones, `splits: {}`",
        asked.shape.splits);
  }
  to.flags.push_back(fmt::format("--num-seq-splits {}", asked.shape.splits));
  return "";
}

std::string grouped(const Asked& asked, MegatronFlags& to, long group) {
  to.flags.push_back(fmt::format("--interleave-group-size {}", group));
  const int stages = asked.shape.devices * asked.shape.chunks;
  const auto& modelled = asked.scenario.modelled;
  if (modelled && modelled->model.num_layers % stages == 0) {
    to.flags.push_back(fmt::format("--num-layers-per-virtual-pipeline-stage {}",
                                   modelled->model.num_layers / stages));
  } else {
    to.notes.push_back(fmt::format(
        "to set: --num-layers-per-virtual-pipeline-stage, the model's layers divided by {}",
        stages));
  }
  return "";
}
std::string gis(const Asked& asked, MegatronFlags& to) {
  const auto group = asked.problem.option<long>("group_size");
  return grouped(asked, to, group.value_or(asked.shape.devices));
}
std::string gis_h(const Asked& asked, MegatronFlags& to) {
  return grouped(asked, to, (asked.shape.devices + 1) / 2);
}

// Copies as long as the scenario's, of the chunks whose activations wait longest.
std::string offloaded(const Asked& asked, MegatronFlags& to, int chunks) {
  const StageCost& cost = asked.problem.stage(0);
  const Seconds pass = cost.forward + cost.backward_input + cost.backward_weight;
  to.flags.emplace_back("--cpu-offload");
  to.flags.push_back(fmt::format("--offload-chunk-num {}",
                                 asked.problem.option<long>("offload_chunks").value_or(chunks)));
  to.flags.push_back(
      fmt::format("--offload-time {:.4g}", (cost.copy_out + cost.copy_in) / 2 / pass));
  return grouped(asked, to, asked.problem.option<long>("group_size").value_or(1));
}
std::string po_h(const Asked& asked, MegatronFlags& to) {
  return offloaded(asked, to, (asked.shape.chunks + 1) / 2);
}
std::string po_f(const Asked& asked, MegatronFlags& to) {
  return offloaded(asked, to, asked.shape.chunks);
}

struct Line {
  std::string_view schedule;
  Add add;
  bool validates = false;  // whether its runtime can validate the optimizer's step afterwards
  bool limit = false;      // whether flags say a memory limit
};

// One for each schedule whose record names a runtime; tests/interop holds the two together.
constexpr std::array kTable{
    Line{"1f1b", plain},
    Line{"1f1b-v", v_1f1b},
    Line{"gis", gis},
    Line{"gis-h", gis_h},
    Line{"interleaved-1f1b", interleaved},
    Line{"po-f", po_f},
    Line{"po-h", po_h},
    Line{"seq-1f1b", sequence_splits},
    Line{"v-half", v_half, true},
    Line{"v-min", v_min, true},
    Line{"zb", zb, true, true},
    Line{"zb-1p", zb_1p, true},
    Line{"zb-2p", zb_2p, true},
    Line{"zb-v", zb_v, true},
};

const Line* line_of(std::string_view schedule) {
  const auto* const found = std::ranges::find(kTable, schedule, &Line::schedule);
  return found == kTable.end() ? nullptr : found;
}

[[noreturn]] void refuse(const ScheduleChoice& choice, std::string_view reason,
                         std::string_view nearest = "") {
  const std::string near =
      nearest.empty() ? "" : fmt::format("; the nearest that has some is {}", nearest);
  throw InfeasibleError(fmt::format("no Megatron flags for {}: {}{}; schedules with flags: {}",
                                    choice.name, reason, near,
                                    fmt::join(megatron_schedules(), ", ")));
}

// For a program without a record: a schedule with flags and a like placement, a V for two
// directions. It cuts microbatches, and runs W apart, if the program does.
std::string_view nearest_with_flags(const Program& program) {
  const Placement& place = program.placement();
  const int devices = program.shape().devices;
  bool weights = false;
  for (int device = 0; device < devices; ++device) {
    const auto passes = program.passes(device);
    weights = weights || std::ranges::find(passes, PassKind::kW, &Pass::kind) != passes.end();
  }
  if (program.shape().splits > 1) return "seq-1f1b";
  if (place == Placement::looped(devices, 1)) return weights ? "zb" : "1f1b";
  const bool vee = place == Placement::vee(devices) || place.directions() > 1;
  if (vee) return weights ? "zb-v" : "1f1b-v";
  return weights ? "gis" : "interleaved-1f1b";
}

void check_passes(const ScheduleChoice& choice, const Program& program) {
  for (int device = 0; device < program.shape().devices; ++device) {
    for (const Pass& pass : program.passes(device)) {
      const bool plain = pass.kind == PassKind::kF || pass.kind == PassKind::kB ||
                         pass.kind == PassKind::kW || pass.kind == PassKind::kBW ||
                         pass.kind == PassKind::kFB;
      if (plain || (pass.kind == PassKind::kR && recomputes_in_full(choice))) continue;
      refuse(choice, fmt::format("these flags do not place its {} passes, such as {}",
                                 to_text(pass.kind), program.text(device, pass)));
    }
  }
}

void add_sizes(const Case& made, bool validates, MegatronFlags& to) {
  const Scenario& scenario = *made.scenario;
  const Shape& shape = made.problem.shape;
  const ParallelSizes& sizes = scenario.parallel;
  to.flags.push_back(fmt::format("--pipeline-model-parallel-size {}", shape.devices));
  if (sizes.tensor > 1) {
    to.flags.push_back(fmt::format("--tensor-model-parallel-size {}", sizes.tensor));
  }
  if (sizes.context > 1) {
    to.flags.push_back(fmt::format("--context-parallel-size {}", sizes.context));
  }
  if (scenario.modelled) add_setting(made, validates, to);
  if (recomputes_in_full(made.choice)) add_full_recompute(made.choice.recompute->layers, to);
  const int samples = shape.microbatches * sizes.data;  // of a microbatch of one
  if (const auto size = scenario.batch.micro_batch_size) {
    to.flags.push_back(fmt::format("--micro-batch-size {}", *size));
    to.flags.push_back(fmt::format("--global-batch-size {}", samples * *size));
  } else {
    to.notes.push_back(fmt::format(
        "to set: --micro-batch-size, and --global-batch-size, which is {} times it", samples));
  }
  to.ranks = ranks_of(made);
}

// With one chunk messages hold its devices; with several only where that is asked for, and a
// message each way between the same two devices would wait for the other.
void add_transfers(const Case& made, MegatronFlags& to) {
  if (to.runtime != to_text(Runtime::kMegatron) || made.problem.shape.devices == 1) return;
  if (made.problem.shape.chunks == 1) {
    if (made.blocking) return;
    to.left_out.emplace_back("messages beside compute: 1F1B waits for them (framework.transfers)");
  } else if (made.blocking && made.problem.shape.devices > 2) {
    to.flags.emplace_back("--no-overlap-p2p-communication");
  } else if (made.blocking) {
    to.differences.emplace_back("interleaving over two devices that waits for its messages");
  }
}

// Gives Megatron-LM the longest document, or the room of packed ones.
void add_lengths(const Scenario& scenario, MegatronFlags& to) {
  if (!scenario.modelled || !scenario.batch.unequal) return;
  to.differences.emplace_back(
      "samples of unequal lengths or images, for which it has no flag: --seq-length is the "
      "longest");
}

// True if every stage has as many decoder layers, and the MTP modules are with the output: the
// default of both programs.
bool is_even(const Layout& layout) {
  return std::ranges::all_of(layout.stages, [&](const StageLayers& stage) {
    return stage.layers == layout.stages.front().layers && (stage.mtp == 0 || stage.output);
  });
}

// Megatron-LM takes the number of chunks from the layout, and refuses to be told both.
void add_layout(const Case& made, MegatronFlags& to) {
  if (!made.layout || made.placement.devices() == 1 || is_even(*made.layout)) return;
  const std::string text = to_megatron_layout(*made.layout);
  if (to.runtime == to_text(Runtime::kMegatron)) {
    std::erase_if(to.flags, [](const std::string& flag) {
      return flag.starts_with("--num-virtual-stages-per-pipeline-rank ");
    });
    to.flags.push_back(fmt::format("--pipeline-model-parallel-layout \"{}\"", text));
  } else {
    to.differences.push_back(
        fmt::format("the layers stand unevenly, {}, for which it has no flag", text));
  }
}

// The line of a choice; refuses one that no flag selects, with the nearest that one does.
const Line& line_with_flags(const ScheduleChoice& choice, const Program& program) {
  if (choice.program) {
    refuse(choice, "a schedule that was read from a CSV has no name there",
           nearest_with_flags(program));
  }
  const Schedule& schedule = schedule_of(choice);
  if (schedule.runs_on == Runtime::kNone) {
    refuse(choice,
           schedule.no_flags.empty()
               ? "neither Megatron-LM nor sail-sg's zero-bubble fork has a flag that "
                 "selects it"
               : schedule.no_flags,
           choice.described ? nearest_with_flags(program) : schedule.nearest_with_flags);
  }
  const Line* const line = line_of(choice.name);
  if (line == nullptr) {
    throw LogicError(
        fmt::format("{} runs on {}, and no line of sim/interop/megatron/flags.cc has "
                    "its flags",
                    choice.name, to_text(schedule.runs_on)));
  }
  return *line;
}

// Refuses what a schedule is asked for and its flags cannot say.
void check_flags_say_all(const Case& made, const Program& program, const Line& line) {
  const ScheduleChoice& choice = made.choice;
  const Schedule& schedule = schedule_of(choice);
  if (!line.limit && !std::holds_alternative<std::monostate>(choice.memory_limit)) {
    refuse(choice, "its flags take no memory limit");
  }
  check_passes(choice, program);
  if (program.copies() != nullptr && !schedule.offloads()) {
    refuse(choice, "the flags that copy its activations to the host are not known here");
  }
  // Microbatches overlap on one stage too, without chunks.
  const bool alone = program.shape().devices == 1 && !overlaps_experts(made.problem);
  if (alone && line.add != plain) {
    refuse(choice, fmt::format("{} runs it on two devices or more", to_text(schedule.runs_on)));
  }
  if (const auto& modelled = made.scenario->modelled) {
    const std::string fault = why_no_flags(modelled->model);
    if (!fault.empty()) refuse(choice, fault);
  }
}

}  // namespace

std::vector<std::string> megatron_schedules() {
  std::vector<std::string> names;
  for (const Schedule* schedule : schedules()) {
    if (schedule->runs_on != Runtime::kNone) names.push_back(schedule->name);
  }
  return names;
}

bool flags_take_limit(const Schedule& schedule) {
  const Line* const line = line_of(schedule.name);
  return line != nullptr && line->limit;
}

MegatronFlags megatron_flags(const Case& made, const Program& program) {
  const Line& line = line_with_flags(made.choice, program);
  check_flags_say_all(made, program, line);
  const ScheduleChoice& choice = made.choice;
  const Schedule& schedule = schedule_of(choice);
  MegatronFlags flags{std::string(to_text(schedule.runs_on)), {}, {}, {}};
  const bool post_validation = made.scenario->sync == OptimizerSync::kPostValidation;
  add_sizes(made, post_validation && line.validates, flags);
  std::string reason = line.add(Asked(made), flags);
  if (post_validation && line.validates) {
    flags.flags.emplace_back("--enable-optimizer-post-validation");
  } else if (post_validation) {
    flags.differences.emplace_back(
        "the optimizer's step is validated afterwards, for which this schedule has no flag");
  }
  if (reason.empty() && schedule.runs_on == Runtime::kZeroBubbleFork) {
    reason = add_fork_runtime(*made.scenario, flags);
  }
  if (!reason.empty()) refuse(choice, reason);
  add_transfers(made, flags);
  add_lengths(*made.scenario, flags);
  add_layout(made, flags);
  return flags;
}

std::string megatron_text(const MegatronFlags& flags) {
  if (!flags.model.empty()) return launch_script(flags);
  std::string text = fmt::format("# flags of {}\n", flags.runtime);
  for (const auto* lines : {&flags.differences, &flags.notes}) {
    for (const std::string& line : *lines) text += fmt::format("# {}\n", line);
  }
  text += fmt::format("# start {} processes: data parallel size {}\n", flags.ranks.gpus,
                      flags.ranks.data);
  for (const std::string& flag : flags.flags) text += flag + '\n';
  return text;
}

}  // namespace pipesim
