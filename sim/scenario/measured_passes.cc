#include "sim/scenario/measured_passes.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "sim/core/error.h"

namespace pipesim {
namespace {

using Field = Seconds StageOfRun::*;
constexpr std::array<Field, 3> kSeconds{&StageOfRun::forward, &StageOfRun::backward_input,
                                        &StageOfRun::backward_weight};
constexpr std::array<Field, 3> kLaunches{&StageOfRun::launch_forward, &StageOfRun::launch_backward,
                                         &StageOfRun::launch_weight};

std::vector<StageOfRun> put_together(const std::vector<StageOfRun>& stages, size_t each) {
  std::vector<StageOfRun> sums(stages.size() / each);
  for (size_t s = 0; s < stages.size(); ++s) {
    StageOfRun& sum = sums[s / each];
    for (const Field field : kSeconds) sum.*field += stages[s].*field;
    for (const Field field : kLaunches) sum.*field = std::max(sum.*field, stages[s].*field);
  }
  return sums;
}

// Beyond the median of the stages between first and last.
Seconds surplus(const std::vector<StageOfRun>& stages, size_t stage, Field field) {
  if (stages.size() < 3 || (stage != 0 && stage + 1 != stages.size())) return {};
  std::vector<Seconds> between;
  for (size_t s = 1; s + 1 < stages.size(); ++s) between.push_back(stages[s].*field);
  std::ranges::sort(between);
  const Seconds median = (between[(between.size() - 1) / 2] + between[between.size() / 2]) / 2;
  return std::max(Seconds(0), stages[stage].*field - median);
}

std::vector<StageOfRun> divided(const std::vector<StageOfRun>& stages, size_t parts) {
  std::vector<StageOfRun> result;
  for (size_t s = 0; s < stages.size(); ++s) {
    for (size_t part = 0; part < parts; ++part) {
      StageOfRun each = stages[s];  // launches as they are
      for (const Field field : kSeconds) {
        const Seconds extra = surplus(stages, s, field);
        const bool here = part == (s == 0 ? 0 : parts - 1);
        each.*field = (stages[s].*field - extra) / static_cast<double>(parts);
        if (here) each.*field += extra;
      }
      result.push_back(each);
    }
  }
  return result;
}

}  // namespace

std::vector<StageOfRun> on_stages(const MeasuredPasses& measured, int count) {
  const size_t have = measured.stages.size();
  const auto want = static_cast<size_t>(count);
  if (want == have) return measured.stages;
  if (want > have && want % have == 0) return divided(measured.stages, want / have);
  if (have % want == 0) return put_together(measured.stages, have / want);
  throw InfeasibleError(fmt::format(
      "{} measured {} stages, from which those of {} do not follow: choose a schedule whose number "
      "of stages divides {} or is a multiple of it",
      measured.file, have, want, have));
}

void fill(const StageOfRun& measured, StageCost& stage) {
  stage.forward = measured.forward + measured.launch_forward;
  stage.backward_input = measured.backward_input + measured.launch_backward;
  stage.backward_weight = measured.backward_weight + measured.launch_weight;
}

Seconds message_between(const MeasuredPasses& measured, const StageOfRun& up,
                        const StageOfRun& down) {
  const Seconds launch = (down.launch_forward + up.launch_backward) / 2;
  return std::max(Seconds(0), measured.message - launch);
}

}  // namespace pipesim
