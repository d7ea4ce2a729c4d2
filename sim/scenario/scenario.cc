#include "sim/scenario/scenario.h"

#include <fmt/format.h>
#include <string_view>

#include "sim/pipeline/schedule.h"

namespace pipesim {

int chunks_of(const ScheduleChoice& choice) {
  if (choice.program) return choice.program->shape().chunks;
  return choice.chunks.value_or(find_schedule(choice.name)->default_chunks);
}

int splits_of(const ScheduleChoice& choice) {
  if (choice.program) return choice.program->shape().splits;
  const auto given = choice.options.find("splits");
  return given == choice.options.end() ? find_schedule(choice.name)->default_splits
                                       : static_cast<int>(std::get<long>(given->second));
}

RecomputeGranularity granularity_of(const ScheduleChoice& choice) {
  return choice.recompute ? choice.recompute->granularity : RecomputeGranularity::kNone;
}

int recompute_chunks_of(const ScheduleChoice& choice) {
  if (granularity_of(choice) != RecomputeGranularity::kFull) return 0;
  return choice.recompute->chunks.value_or(chunks_of(choice));
}

int offload_chunks_of(const ScheduleChoice& choice) {
  const auto& offload = choice.offload;
  if (!offload) return 0;
  const Schedule* schedule = choice.program ? nullptr : find_schedule(choice.name);
  if (schedule != nullptr && schedule->offloads) return 0;
  if (!offload->which.empty()) return static_cast<int>(offload->which.size());
  return offload->chunks.value_or(chunks_of(choice));
}

std::string label_of(const ScheduleChoice& choice) {
  const int chunks = chunks_of(choice);
  std::string text;
  const auto add = [&](std::string_view what, int count) {
    if (count == 0) return;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", what);
    if (count < chunks) text += fmt::format(" {} of {}", count, chunks);
  };
  const RecomputeGranularity granularity = granularity_of(choice);
  if (granularity == RecomputeGranularity::kSelective ||
      granularity == RecomputeGranularity::kPointwise) {
    text = fmt::format("{} recompute", to_text(granularity));
  }
  add("recompute", recompute_chunks_of(choice));
  add("offload", offload_chunks_of(choice));
  return text.empty() ? choice.name : fmt::format("{} ({})", choice.name, text);
}

}  // namespace pipesim
