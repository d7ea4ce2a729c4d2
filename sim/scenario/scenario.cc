#include "sim/scenario/scenario.h"

#include <fmt/format.h>

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

std::string label_of(const ScheduleChoice& choice) {
  const int recomputed = recompute_chunks_of(choice);
  const RecomputeGranularity granularity = granularity_of(choice);
  if (granularity == RecomputeGranularity::kSelective ||
      granularity == RecomputeGranularity::kPointwise) {
    return fmt::format("{} ({} recompute)", choice.name, to_text(granularity));
  }
  if (recomputed == 0) return choice.name;
  if (recomputed == chunks_of(choice)) return choice.name + " (recompute)";
  return fmt::format("{} (recompute {} of {})", choice.name, recomputed, chunks_of(choice));
}

}  // namespace pipesim
