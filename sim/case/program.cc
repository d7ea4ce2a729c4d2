#include "sim/case/program.h"

#include <algorithm>
#include <fmt/format.h>

#include "sim/core/error.h"
#include "sim/execution/with_offload.h"
#include "sim/execution/with_recompute.h"
#include "sim/planning/planners.h"

namespace pipesim {
namespace {

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
      fmt::format("{} has overlapped blocks of F and BW: cost.overlapped must say how long they "
                  "take",
                  choice.name));
}

}  // namespace

void refuse_shape(const ScheduleChoice& choice, const Shape& shape, const Refusal& refusal) {
  const std::string nearest = describe_difference(shape, refusal.nearest);
  throw InputError(choice.where, nearest.empty()
                                     ? refusal.reason
                                     : fmt::format("{}; nearest shape that it accepts: {}",
                                                   refusal.reason, nearest));
}

void refuse_unknown_copies(const Location& where, std::string_view what) {
  throw InputError(where,
                   fmt::format("{} copies activations to the host: cost.copy_out and cost.copy_in "
                               "must say how long that takes, or bytes of activations, given or of "
                               "a model, and a cluster by name",
                               what));
}

std::shared_ptr<const Program> program_on_device(const ScheduleChoice& choice,
                                                 const Problem& problem, Reuse* reuse) {
  if (choice.program && copies_by_itself(choice)) check_copies(choice, problem);
  std::shared_ptr<const Program> program = read_program(choice, problem.vocabulary);
  if (!program) {
    const Schedule& schedule = schedule_of(choice);
    const Problem planning = for_planning(problem, schedule);
    if (const auto refusal = schedule.refusal(planning)) {
      // A refusal for memory has no other shape to offer: its reason says the least limit, and it
      // is a request that cannot be met, not a mistake in writing.
      const bool same_shape = describe_difference(problem.shape, refusal->nearest).empty();
      if (same_shape && problem.activation_limit) {
        throw InfeasibleError(limit_without_bytes(choice, problem).value_or(refusal->reason));
      }
      refuse_shape(choice, problem.shape, *refusal);
    }
    if (copies_by_itself(choice)) check_copies(choice, problem);
    const bool fixed = reuse != nullptr && schedule.fixed_order(planning);
    const auto make = [&] {
      return recomputing(plan_with(schedule, planning, fixed ? nullptr : reuse), problem);
    };
    program = fixed ? reuse->program(schedule, planning, make) : make();
  } else {
    program = recomputing(program, problem);
  }
  check_overlapped(choice, *program, problem);
  return program;
}

std::shared_ptr<const Program> make_program(const ScheduleChoice& choice, const Problem& problem,
                                            Reuse* reuse) {
  auto program = program_on_device(choice, problem, reuse);
  return awaits_offload(*program, problem) ? offloaded(choice, *program, problem) : program;
}

std::shared_ptr<const Program> offloaded(const ScheduleChoice& choice, const Program& program,
                                         const Problem& problem) {
  check_copies(choice, problem);
  const OffloadScope scope = scope_of(choice.offload.value_or(Offload{}), problem);
  return std::make_shared<const Program>(with_offload(program, problem, scope));
}

}  // namespace pipesim
