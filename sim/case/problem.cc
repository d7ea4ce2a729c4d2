#include "sim/case/problem.h"

#include <algorithm>
#include <fmt/format.h>

#include "models/vocabulary_share.h"
#include "sim/case/host_links.h"
#include "sim/case/roofline.h"
#include "sim/core/text.h"
#include "sim/execution/with_offload.h"
#include "sim/execution/with_recompute.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/balance.h"

namespace pipesim {
namespace {

// The value of one microbatch on a virtual stage. Per device, the chunks of a device share its
// value; with two directions a microbatch passes only one of its two chunks, which then is the
// whole device.
template <class T>
T of_stage(const std::vector<T>& values, CostBasis per, const Placement& place, int vs) {
  if (per == CostBasis::kStage) {
    return values[values.size() == 1 ? 0 : static_cast<size_t>(place.model_stage(vs))];
  }
  const T value = values[values.size() == 1 ? 0 : static_cast<size_t>(place.device(vs))];
  return value / (static_cast<double>(place.chunks()) / place.directions());
}

// One limit serves all devices: what the one that holds most beside activations leaves.
Bytes left_for_activations(const ScheduleChoice& choice, Bytes total,
                           const MemoryEstimate& memory) {
  Bytes beside;
  for (const DeviceMemory& device : memory.devices) beside = std::max(beside, device.total());
  if (beside < total) return total - beside;
  throw InfeasibleError(fmt::format(
      "memory_limit {} of {}: a device holds {} beside activations; give it more than that",
      human(total), choice.name, human(beside)));
}

std::string describe_difference(const Shape& from, const Shape& to) {
  std::string text;
  const auto add = [&text](const char* key, int value) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, value);
  };
  if (to.devices != from.devices) add("pipeline_model_parallel_size", to.devices);
  if (to.chunks != from.chunks) add("virtual_pipeline_model_parallel_size", to.chunks);
  if (to.microbatches != from.microbatches) add("num_microbatches", to.microbatches);
  return text;
}

[[noreturn]] void refuse_shape(const ScheduleChoice& choice, const Refusal& refusal,
                               const std::string& nearest) {
  throw InputError(choice.where, nearest.empty()
                                     ? refusal.reason
                                     : fmt::format("{}; nearest shape that it accepts: {}",
                                                   refusal.reason, nearest));
}

// Placements of a fixed number of chunks do not ask for it.
void check_chunks(const Scenario& scenario, const ScheduleChoice& choice) {
  if (choice.program) return;
  const Schedule& schedule = *find_schedule(choice.name);
  const int chunks = chunks_of(choice);
  if (chunks >= schedule.min_chunks && chunks <= schedule.max_chunks) return;
  Problem asked;
  asked.shape = {scenario.parallel.pipeline, chunks, scenario.batch.microbatches,
                 splits_of(choice)};
  const auto refusal = schedule.refusal(asked);
  refuse_shape(choice, *refusal, describe_difference(asked.shape, refusal->nearest));
}

// Where no bytes are known a limit is a multiple of what p microbatches keep, and so is what is
// needed. Nothing where they are, or where the limit is not what is wrong.
std::optional<std::string> limit_without_bytes(const ScheduleChoice& choice,
                                               const Problem& problem) {
  const Bytes one = for_planning(problem).device_activation();
  if (problem.device_activation() > Bytes(0) || *problem.activation_limit >= one) return {};
  const int devices = problem.shape.devices;
  return fmt::format(
      "{} needs memory_limit {:.4g} at least, what one microbatch keeps of what {} do; it is "
      "{:.4g}",
      choice.name, 1.0 / devices, devices, *problem.activation_limit / (devices * one));
}

// Of every device's share of the vocabulary, and of the collectives; modelled ones by
// fill_roofline.
void add_vocabulary(const Scenario& scenario, Problem& problem) {
  problem.vocabulary = scenario.vocabulary;
  if (!is_sharded(problem.vocabulary) || scenario.roofline) return;
  const GivenCost& cost = scenario.cost;
  for (size_t d = 0; d < static_cast<size_t>(problem.shape.devices); ++d) {
    const auto of = [d](const auto& values) { return values[values.size() == 1 ? 0 : d]; };
    VocabularyCost share;
    share.output_forward = of(cost.output_forward);
    share.output_backward = of(cost.output_backward);
    share.input_forward = of(cost.input_forward);
    share.input_backward = of(cost.input_backward);
    if (scenario.memory && !scenario.memory->output_activation.empty()) {
      share.output_activation = of(scenario.memory->output_activation);
    }
    if (scenario.modelled) {
      share.output_activation =
          share_activation(scenario.modelled->model, scenario.modelled->context);
    }
    problem.vocabulary_costs.push_back(share);
  }
  problem.barriers.fill(cost.collective);
  problem.barriers[static_cast<size_t>(Barrier::kRendezvous)] = Seconds(0);
}

void check_copies(const ScheduleChoice& choice, const Problem& problem) {
  const bool known = std::ranges::any_of(problem.stages, [](const StageCost& stage) {
    return stage.copy_out > Seconds(0) || stage.copy_in > Seconds(0);
  });
  if (!known) refuse_unknown_copies(choice.where, choice.name);
}

OffloadScope scope_of(const Offload& offload, const Problem& problem) {
  OffloadScope scope{.chunks = problem.offload_chunks, .which = offload.which};
  const int all = problem.shape.microbatches;
  scope.microbatches.resize(all);
  for (const int each : numbers_of(offload.microbatches, all)) {
    scope.microbatches[each] = true;
  }
  return scope;
}

void check_overlapped(const ScheduleChoice& choice, const Program& program,
                      const Problem& problem) {
  if (program.pairs().empty() || problem.stages.front().overlapped) return;
  throw InputError(
      choice.where,
      fmt::format("{} has overlapped F&BW blocks: cost.overlapped must say how long they "
                  "take",
                  choice.name));
}

}  // namespace

void refuse_unknown_copies(const Location& where, std::string_view what) {
  throw InputError(where,
                   fmt::format("{} copies activations to the host: cost.copy_out and cost.copy_in "
                               "must say how long that takes, or bytes of activations, given or of "
                               "a model, and a cluster by name",
                               what));
}

Placement placement_of(const ScheduleChoice& choice, int devices) {
  if (choice.program) return choice.program->placement();
  return find_schedule(choice.name)->place(devices, chunks_of(choice));
}

Problem make_problem(const Scenario& scenario, const ScheduleChoice& choice) {
  check_chunks(scenario, choice);
  refuse_unbalanced(scenario, choice);
  Problem problem;
  problem.placement = placement_of(choice, scenario.parallel.pipeline);
  const Placement& place = problem.placement;
  problem.shape = {place.devices(), place.chunks(), scenario.batch.microbatches, splits_of(choice)};
  const double splits = problem.shape.splits;
  problem.options = choice.options;
  problem.recompute_chunks = recompute_chunks_of(choice);
  problem.offload_chunks = offload_chunks_of(choice);
  add_vocabulary(scenario, problem);
  const GivenCost& cost = scenario.cost;
  std::optional<MemoryEstimate> modelled;
  if (scenario.modelled) modelled = memory_of(scenario, choice);
  problem.stages.reserve(place.virtual_stages());
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    const auto seconds = [&](const std::vector<Seconds>& values) {
      return of_stage(values, cost.per, place, vs) / splits;
    };
    StageCost stage;
    if (!scenario.roofline) {
      stage.forward = seconds(cost.forward);
      stage.backward_input = seconds(cost.backward_input);
      stage.backward_weight = seconds(cost.backward_weight);
    }
    if (!cost.overlapped.empty()) stage.overlapped = seconds(cost.overlapped);
    if (!cost.recompute.empty()) stage.recompute = seconds(cost.recompute);
    if (!cost.copy_out.empty()) {
      stage.copy_out = seconds(cost.copy_out);
      stage.copy_in = seconds(cost.copy_in);
    }
    const int next = place.downstream(vs);
    if (next >= 0 && place.device(next) != place.device(vs)) {
      stage.transfer = cost.transfer;
      if (cost.message) {
        // What a schedule plans with is the nominal way of the first pipeline.
        stage.transfer =
            message_seconds(*scenario.cluster, rank_of(scenario, 0, place.device(vs)),
                            rank_of(scenario, 0, place.device(next)), *cost.message / splits);
      }
    }
    if (scenario.memory) {
      const GivenMemory& memory = *scenario.memory;
      const auto bytes = [&](const std::vector<Bytes>& values) {
        return of_stage(values, memory.per, place, vs) / splits;
      };
      stage.activation = bytes(memory.activation);
      stage.weight_stash = bytes(memory.weight_stash);
      if (!memory.checkpoint.empty()) stage.checkpoint = bytes(memory.checkpoint);
    }
    if (modelled) {
      const StageMemory& memory = modelled->stages[place.model_stage(vs)];
      stage.activation = memory.activation / splits;
      stage.weight_stash = memory.weight_stash / splits;
      stage.checkpoint = memory.checkpoint / splits;
    }
    problem.stages.push_back(stage);
  }
  if (scenario.roofline) fill_roofline(scenario, choice, problem);
  add_host_links(scenario, choice, problem);
  if (const auto* bytes = std::get_if<Bytes>(&choice.memory_limit)) {
    problem.activation_limit = *bytes;
  } else if (const auto* total = std::get_if<TotalLimit>(&choice.memory_limit)) {
    problem.activation_limit = left_for_activations(choice, total->bytes, *modelled);
  } else if (const auto* factor = std::get_if<double>(&choice.memory_limit)) {
    problem.activation_limit =
        *factor * place.devices() * for_planning(problem).device_activation();
  }
  return problem;
}

std::shared_ptr<const Program> make_program(const ScheduleChoice& choice, const Problem& problem) {
  std::shared_ptr<const Program> program = choice.program;
  if (program && program->vocabulary() != problem.vocabulary && is_sharded(problem.vocabulary)) {
    throw InputError(
        choice.where,
        fmt::format("{} has no passes of a vocabulary that all devices share", choice.name));
  }
  if (!program) {
    const Schedule& schedule = *find_schedule(choice.name);
    const Problem planning = for_planning(problem);
    if (const auto refusal = schedule.refusal(planning)) {
      // A refusal for memory has no other shape to offer: its reason says the least limit, and it
      // is a request that cannot be met, not a mistake in writing.
      const std::string nearest = describe_difference(problem.shape, refusal->nearest);
      if (nearest.empty() && problem.activation_limit) {
        throw InfeasibleError(limit_without_bytes(choice, problem).value_or(refusal->reason));
      }
      refuse_shape(choice, *refusal, nearest);
    }
    if (schedule.offloads()) check_copies(choice, problem);
    program = std::make_shared<const Program>(schedule.plan(planning));
  }
  check_overlapped(choice, *program, problem);
  if (program->copies() != nullptr) return program;
  if (problem.recompute_chunks > 0) {
    program = std::make_shared<const Program>(with_recompute(*program, problem.recompute_chunks));
  }
  if (problem.offload_chunks > 0) {
    check_copies(choice, problem);
    program = offloaded(choice, *program, problem);
  }
  return program;
}

std::shared_ptr<const Program> offloaded(const ScheduleChoice& choice, const Program& program,
                                         const Problem& problem) {
  const OffloadScope scope = scope_of(choice.offload.value_or(Offload{}), problem);
  return std::make_shared<const Program>(with_offload(program, problem, scope));
}

int rank_of(const Scenario& scenario, int pipeline, int device) {
  return device * scenario.parallel.pipelines + pipeline;
}

}  // namespace pipesim
