#include "sim/planning/schedule.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "sim/core/error.h"
#include "sim/core/text.h"

namespace pipesim {
namespace {

std::vector<std::unique_ptr<const Schedule>>& registered() {
  static std::vector<std::unique_ptr<const Schedule>> all;
  return all;
}

std::vector<const Schedule*> sorted() {
  std::vector<const Schedule*> all;
  for (const auto& schedule : registered()) all.push_back(schedule.get());
  std::ranges::sort(all, {}, &Schedule::name);
  const auto twin = std::ranges::adjacent_find(all, {}, &Schedule::name);
  if (twin != all.end()) throw LogicError(fmt::format("two schedules named '{}'", (*twin)->name));
  return all;
}

}  // namespace

std::optional<Refusal> Schedule::refusal(const Problem& problem) const {
  const int chunks = problem.shape.chunks;
  if (chunks < min_chunks || chunks > max_chunks) {
    Refusal refusal;
    refusal.reason = min_chunks == max_chunks
                         ? fmt::format("{} holds {} chunk{} per device, not {}", name, min_chunks,
                                       min_chunks == 1 ? "" : "s", chunks)
                         : fmt::format("{} needs at least {} chunks per device, not {}", name,
                                       min_chunks, chunks);
    refusal.nearest = problem.shape;
    refusal.nearest.chunks = std::clamp(chunks, min_chunks, max_chunks);
    return refusal;
  }
  if (is_sharded(problem.vocabulary) &&
      std::ranges::find(vocabulary, problem.vocabulary, &VocabularySupport::placement) ==
          vocabulary.end()) {
    return Refusal{fmt::format("{} has no order for the passes of vocabulary placement {}", name,
                               to_text(problem.vocabulary)),
                   problem.shape};
  }
  const Bytes least = problem.device_activation();
  if (memory_limit && problem.activation_limit && *problem.activation_limit < least) {
    return Refusal{fmt::format("{} needs a memory limit of at least {}, what one microbatch keeps "
                               "on the device that keeps most; the limit is {}",
                               name, human(least), human(*problem.activation_limit)),
                   problem.shape};
  }
  return refuse == nullptr ? std::nullopt : refuse(problem);
}

const std::vector<const Schedule*>& schedules() {
  static const std::vector<const Schedule*> kAll = sorted();
  return kAll;
}

const Schedule* find_schedule(std::string_view name) {
  const auto found = std::ranges::find(schedules(), name, &Schedule::name);
  return found == schedules().end() ? nullptr : *found;
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const Schedule* schedule : schedules()) names.push_back(schedule->name);
  return names;
}

RegisteredSchedule::RegisteredSchedule(Schedule schedule) {
  registered().push_back(std::make_unique<const Schedule>(std::move(schedule)));
}

Problem for_planning(Problem problem) {
  const bool bytes_known = problem.device_activation() > Bytes(0);
  for (StageCost& stage : problem.stages) {
    if (!bytes_known) stage.activation = stage.weight_stash = Bytes(1.0 / problem.shape.splits);
    stage.activation = std::max(stage.activation, stage.weight_stash);
  }
  return problem;
}

bool uniform(const Problem& problem) {
  const StageCost& first = problem.stages.front();
  return std::ranges::all_of(problem.stages, [&first](const StageCost& stage) {
    return stage.forward == first.forward && stage.backward_input == first.backward_input &&
           stage.backward_weight == first.backward_weight;
  });
}

bool free_transfers(const Problem& problem) {
  return std::ranges::all_of(problem.stages,
                             [](const StageCost& stage) { return stage.transfer == Seconds(0); });
}

bool b_frees_nothing(const Problem& problem) {
  const Bytes activation = problem.stages.front().activation;
  return std::ranges::all_of(problem.stages, [activation](const StageCost& stage) {
    return stage.activation == activation && stage.weight_stash == activation;
  });
}

}  // namespace pipesim
