#include "sim/prepare/automatic_offload.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <vector>

#include "sim/case/make_case.h"
#include "sim/core/text.h"
#include "sim/prepare/advice.h"
#include "sim/prepare/microbatch_order.h"

namespace pipesim {
namespace {

constexpr long kMostPasses = 1L << 20;  // of an iteration

void check_size(const Outline& outline) {
  const Scenario& scenario = *outline.scenario;
  const ScheduleChoice& choice = outline.choice;
  const long passes = 2L * outline.placement.virtual_stages() * scenario.parallel.pipelines *
                      shape_of(outline).units();
  if (passes <= kMostPasses) return;
  throw InputError(choice.offload->where,
                   fmt::format("auto simulates iterations of up to {} passes, {} has {}: say how "
                               "many chunks",
                               kMostPasses, choice.name, passes));
}

// Counts the activations that leave among those that may.
std::string counted(const Program& program) {
  const std::vector<int> copied = program.copied_units();
  const long copies = std::accumulate(copied.begin(), copied.end(), 0L);
  const size_t all = static_cast<size_t>(program.placement().model_stages()) *
                     static_cast<size_t>(program.shape().units());
  return fmt::format("{} of {} activations leave", copies, all);
}

// Copies' seconds over passes' seconds, on the stage where that ratio is largest.
double ratio_of(const Problem& problem) {
  double ratio = 0;
  for (const StageCost& cost : problem.stages) {
    const Seconds passes = cost.forward + cost.backward_input + cost.backward_weight;
    if (passes > Seconds(0)) ratio = std::max(ratio, (cost.copy_out + cost.copy_in) / passes);
  }
  return ratio;
}

// Where not all may go.
std::string some_of(const Offload& offload, int microbatches) {
  if (offload.microbatches.all()) return "";
  return fmt::format(" and {} of {} microbatches",
                     numbers_of(offload.microbatches, microbatches).size(), microbatches);
}

// Standard error of an ensemble's mean.
double error_of(const Report& report) {
  if (!report.ensemble) return 0;
  return report.ensemble->stddev.value() / std::sqrt(report.ensemble->runs);
}

// By how much of `kept` the other takes longer; 0 where that is no more than rounding or noise.
double share_longer(const Report& report, const Report& kept) {
  const double seconds = (report.iteration - kept.iteration).value();
  const double error = 2 * std::hypot(error_of(report), error_of(kept));
  const bool free = seconds <= std::max(1e-9 * kept.iteration.value(), error);
  return free ? 0 : seconds / kept.iteration.value();
}

std::string reason_of(const Case& made, const Program& program) {
  const Offload& offload = *made.choice.offload;
  return fmt::format(
      "{} of {} chunks{} at no cost in time: copies take up to k = {:.3g} of the "
      "passes, {}",
      *offload.chunks, made.placement.chunks(), some_of(offload, made.scenario->batch.microbatches),
      ratio_of(made.problem), counted(program));
}

}  // namespace

ChosenOffload choose_offload(const Outline& outline, const Layout* balanced) {
  check_size(outline);
  const auto case_of = [&](const std::optional<Offload>& offload) {
    Outline tried = outline;
    tried.choice.offload = offload;
    return batch_case(std::move(tried), balanced);
  };
  const Report kept = simulate(case_of(std::nullopt)).report;
  Offload offload = *outline.choice.offload;
  std::string more;  // why not one chunk more
  for (int chunks = outline.placement.chunks(); chunks > 0; --chunks) {
    offload.chunks = chunks;
    Case made = case_of(offload);
    Result result = simulate(made);
    double share = share_longer(result.report, kept);
    const auto add = [&](const std::string& consequence) {
      more = fmt::format("; {} chunk{} would {}", chunks, chunks == 1 ? "" : "s", consequence);
    };
    if (share == 0 && result.host && !result.host->fits()) {
      add(fmt::format("take {} of a node's host memory", human(*result.host->node)));
      auto nearest = offload_that_fits(made, result);
      if (!nearest) break;
      made = std::move(nearest->made);
      result = simulate(made);
      share = share_longer(result.report, kept);
    }
    if (share == 0) return {made.choice, reason_of(made, *result.program) + more};
    add(fmt::format("make the iteration {:.2f}% longer", 100 * share));
  }
  ScheduleChoice none = outline.choice;
  none.offload->chunks = 0;
  return {std::move(none), "none" + more};
}

}  // namespace pipesim
