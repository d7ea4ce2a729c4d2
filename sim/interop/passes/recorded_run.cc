#include "sim/interop/passes/recorded_run.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>

#include "sim/core/text.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

// Plans of larger programs are not made just to find a name.
constexpr size_t kLargestToName = 20000;

using Passes = std::vector<RecordedPass>;

Problem problem_of(const Schedule& schedule, const Shape& shape) {
  Problem problem;
  problem.shape = shape;
  problem.shape.splits = schedule.default_splits;
  problem.placement = schedule.place(shape.devices, shape.chunks);
  problem.stages.resize(static_cast<size_t>(problem.placement.virtual_stages()));
  for (StageCost& stage : problem.stages) {
    stage.forward = stage.backward_input = stage.backward_weight = Seconds(1);
    stage.activation = Bytes(1);
  }
  return for_planning(problem);
}

std::optional<Program> planned(const Schedule& schedule, const Shape& shape) {
  if (shape.microbatches < 1) return {};  // fewer forwards than chunks were recorded
  if (shape.chunks < schedule.min_chunks || shape.chunks > schedule.max_chunks) return {};
  if (schedule.offloads() || schedule.default_splits != 1) return {};
  const Problem problem = problem_of(schedule, shape);
  if (schedule.refusal(problem)) return {};
  return schedule.plan(problem);
}

int count(const Passes& passes, PassKind kind) {
  return static_cast<int>(std::ranges::count(passes, kind, &RecordedPass::kind));
}

// Fills in numbers of one chunk in order of passes of a kind.
void count_out(Passes& passes) {
  std::array<int, kPassKinds> next{};
  for (RecordedPass& pass : passes) {
    if (pass.chunk < 0) pass.chunk = 0;
    if (pass.microbatch < 0) pass.microbatch = next[static_cast<size_t>(pass.kind)]++;
  }
}

// Fills in numbers from a program whose kinds come in the same order; false where they do not.
bool take_numbers(const Program& program, RecordedIteration& iteration) {
  for (size_t rank = 0; rank < iteration.ranks.size(); ++rank) {
    const auto planned = program.passes(static_cast<int>(rank));
    Passes& passes = iteration.ranks[rank];
    if (!std::ranges::equal(planned, passes, {}, &Pass::kind, &RecordedPass::kind)) return false;
    for (size_t i = 0; i < passes.size(); ++i) {
      passes[i].chunk = planned[i].chunk;
      passes[i].microbatch = static_cast<int>(planned[i].microbatch);
    }
  }
  return true;
}

const Schedule& named_schedule(const std::string& name, const Location& asked) {
  if (const Schedule* schedule = find_schedule(name)) return *schedule;
  const auto names = schedule_names();
  throw InputError(asked,
                   fmt::format("schedule '{}' is not known{}", name, suggestion(name, names)));
}

bool lacks(const Recording& recording, int RecordedPass::*number) {
  for (const auto& iteration : recording.iterations) {
    for (const Passes& passes : iteration.ranks) {
      for (const RecordedPass& pass : passes) {
        if (pass.*number < 0) return true;
      }
    }
  }
  return false;
}

// Several chunks, and the format does not say whose passes are whose.
void number_by_schedule(Recording& recording, const std::string& asked_name,
                        const Location& asked) {
  const std::string name = asked_name.empty() ? "interleaved-1f1b" : asked_name;
  const Schedule& schedule = named_schedule(name, asked);
  int forwards = 0;
  for (const auto& iteration : recording.iterations) {
    for (const Passes& passes : iteration.ranks) {
      forwards = std::max(forwards, count(passes, PassKind::kF));
    }
  }
  const Shape shape{recording.ranks, recording.chunks, forwards / recording.chunks};
  const auto program = planned(schedule, shape);
  if (!program) {
    throw InputError(asked_name.empty() ? recording.where : asked,
                     fmt::format("{} chunks of {} ranks and {} forwards are no {}: name the "
                                 "schedule that ran with --schedule",
                                 recording.chunks, recording.ranks, forwards, name));
  }
  const size_t before = recording.iterations.size();
  std::erase_if(recording.iterations, [&program](RecordedIteration& iteration) {
    return !take_numbers(*program, iteration);
  });
  if (recording.iterations.empty()) {
    throw InputError(asked_name.empty() ? recording.where : asked,
                     fmt::format("in none of {} iterations do forwards and backwards come in the "
                                 "order of {}: name the schedule that ran with --schedule",
                                 before, name));
  }
  recording.notes.push_back(fmt::format("chunks and microbatches are counted by {}", name));
}

// Rank of each stage, in order of the stages; empty where the format names none.
std::vector<int> ranks_of_stages(const Recording& recording) {
  std::map<int, int> rank_of;
  for (const auto& iteration : recording.iterations) {
    for (size_t rank = 0; rank < iteration.ranks.size(); ++rank) {
      for (const RecordedPass& pass : iteration.ranks[rank]) {
        if (pass.stage < 0) continue;
        const auto [known, fresh] = rank_of.emplace(pass.stage, static_cast<int>(rank));
        if (fresh || known->second == static_cast<int>(rank)) continue;
        throw InputError(recording.where, fmt::format("stage {} is on ranks {} and {}", pass.stage,
                                                      known->second, rank));
      }
    }
  }
  std::vector<int> ranks;
  for (const auto& [stage, rank] : rank_of) {
    if (stage != static_cast<int>(ranks.size())) {
      throw InputError(recording.where,
                       fmt::format("stage {} has passes, stage {} has none", stage, ranks.size()));
    }
    ranks.push_back(rank);
  }
  return ranks;
}

// The placement by the format's stages, or by the named schedule.
Placement placement_of(Recording& recording, const std::string& schedule, const Location& asked) {
  const std::vector<int> ranks = ranks_of_stages(recording);
  if (ranks.empty()) {
    if (schedule.empty()) return Placement::looped(recording.ranks, recording.chunks);
    return named_schedule(schedule, asked).place(recording.ranks, recording.chunks);
  }
  const auto stages = static_cast<int>(ranks.size());
  for (int rank = 0; rank < recording.ranks; ++rank) {
    if (std::ranges::count(ranks, rank) > 0) continue;
    throw InputError(recording.where, fmt::format("rank {} holds none of {} stages", rank, stages));
  }
  Placement placement = Placement::custom(ranks);
  recording.chunks = placement.chunks();
  for (auto& iteration : recording.iterations) {
    for (Passes& passes : iteration.ranks) {
      for (RecordedPass& pass : passes) pass.chunk = placement.chunk(pass.stage);
    }
  }
  return placement;
}

PassLists lists_of(const RecordedIteration& iteration) {
  PassLists lists(iteration.ranks.size());
  for (size_t rank = 0; rank < lists.size(); ++rank) {
    for (const RecordedPass& pass : iteration.ranks[rank]) {
      lists[rank].push_back(make_pass(pass.kind, pass.microbatch, pass.chunk));
    }
  }
  return lists;
}

// The lists that most iterations have; ties: the first.
PassLists common_lists(const Recording& recording) {
  PassLists best;
  size_t most = 0;
  for (const auto& candidate : recording.iterations) {
    PassLists lists = lists_of(candidate);
    const auto same = static_cast<size_t>(std::ranges::count_if(
        recording.iterations,
        [&lists](const RecordedIteration& each) { return lists_of(each) == lists; }));
    if (same > most) {
      most = same;
      best = std::move(lists);
    }
    if (2 * most > recording.iterations.size()) break;
  }
  return best;
}

std::string name_of(const Program& program, const std::string& asked) {
  if (!asked.empty()) return asked;
  if (program.size() > kLargestToName) return "";
  std::string found;
  for (const Schedule* schedule : schedules()) {
    if (schedule->origin == Origin::kOurs) continue;
    const auto candidate = planned(*schedule, program.shape());
    if (!candidate || !candidate->same_order(program)) continue;
    // The schedule meant for so many chunks wins among several with this order.
    if (schedule->default_chunks == program.shape().chunks) return schedule->name;
    if (found.empty()) found = schedule->name;
  }
  return found;
}

Program program_of(const Recording& recording, const Placement& placement) {
  PassLists lists = common_lists(recording);
  Shape shape{placement.devices(), placement.chunks(), 0};
  for (size_t rank = 0; rank < lists.size(); ++rank) {
    const int chunks = placement.chunks(static_cast<int>(rank));
    for (const Pass& pass : lists[rank]) {
      shape.microbatches = std::max(shape.microbatches, static_cast<int>(pass.microbatch) + 1);
      if (pass.chunk < chunks) continue;
      throw InputError(recording.where,
                       fmt::format("chunk {} of a rank with {} chunks", pass.chunk, chunks));
    }
  }
  const auto passes = 2L * placement.virtual_stages() * shape.microbatches;
  long found = 0;
  for (const auto& list : lists) found += static_cast<long>(list.size());
  if (found < passes) {
    throw InputError(recording.where,
                     fmt::format("{} microbatches on {} stages are {} passes at least, but an "
                                 "iteration has {}",
                                 shape.microbatches, placement.virtual_stages(), passes, found));
  }
  if (const auto fault = Program::find_fault(shape, placement, lists, {})) {
    throw InputError(recording.where, fmt::format("rank {}: {}", fault->device, fault->message));
  }
  return {shape, placement, std::move(lists)};
}

}  // namespace

RecordedRun recorded_run(Recording recording, const std::string& schedule, const Location& asked) {
  if (recording.iterations.empty()) throw InputError(recording.where, "no iteration");
  if (!schedule.empty()) (void)named_schedule(schedule, asked);
  if (recording.chunks > 1 && lacks(recording, &RecordedPass::microbatch)) {
    number_by_schedule(recording, schedule, asked);
  }
  const Placement placement = placement_of(recording, schedule, asked);
  for (auto& iteration : recording.iterations) {
    for (Passes& passes : iteration.ranks) count_out(passes);
  }
  RecordedRun run{
      std::move(recording), Program({1, 1, 0}, Placement::looped(1, 1), {{}}), "", {}, {}};
  run.program = program_of(run.recording, placement);
  run.schedule = name_of(run.program, schedule);
  const PassLists expected = common_lists(run.recording);
  const auto& iterations = run.recording.iterations;
  const size_t warm_up = iterations.size() < 6 ? iterations.size() / 2 : 3;
  run.warm_up = static_cast<int>(warm_up);
  for (size_t i = 0; i < iterations.size(); ++i) {
    if (lists_of(iterations[i]) != expected) {
      run.left_out.push_back(iterations[i].number);
    } else if (i >= warm_up) {
      run.iterations.push_back(i);
    }
  }
  if (run.iterations.empty()) {
    throw InputError(run.recording.where, "after the warm-up no iteration has all passes");
  }
  return run;
}

}  // namespace pipesim
