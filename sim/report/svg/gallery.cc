#include "sim/report/svg/gallery.h"

#include <fmt/format.h>

#include "sim/case/make_case.h"
#include "sim/core/error.h"
#include "sim/prepare/prepare.h"
#include "sim/report/svg/svg.h"

namespace pipesim {
namespace {

constexpr int kMostShapes = 8;  // tried one after the other, each the nearest to the one before

Scenario example(const Schedule& schedule) {
  Scenario scenario;
  scenario.file = "gallery";
  scenario.schedules.push_back(
      {.name = schedule.name, .where = {"gallery", 1, 1, ""}, .options = options_of(schedule)});
  scenario.parallel.pipeline = 4;
  scenario.batch.microbatches = 8;
  scenario.cost.forward = scenario.cost.backward_input =
      scenario.cost.backward_weight = {Seconds(1)};
  scenario.cost.overlapped = {Seconds(3)};
  scenario.cost.copy_out = scenario.cost.copy_in = {Seconds(0.5)};
  GivenMemory memory;
  memory.activation = memory.weight_stash = {kGiB};
  scenario.memory = memory;
  return scenario;
}

// Moves to the nearest shape until the schedule accepts it; the last refusal when it never does.
std::optional<Refusal> find_shape(const Schedule& schedule, Scenario& scenario) {
  ScheduleChoice& choice = scenario.schedules.front();
  for (int shapes = 0;; ++shapes) {
    const auto shared = std::make_shared<const Scenario>(scenario);
    const Problem problem = make_case(outline_of(shared, choice)).problem;
    auto refusal = schedule.refusal(problem);
    if (!refusal || shapes == kMostShapes || refusal->nearest == problem.shape) return refusal;
    scenario.parallel.pipeline = refusal->nearest.devices;
    scenario.batch.microbatches = refusal->nearest.microbatches;
    choice.chunks = refusal->nearest.chunks;
  }
}

}  // namespace

GalleryEntry gallery_entry(const Schedule& schedule) {
  GalleryEntry entry{&schedule, std::nullopt, ""};
  Scenario scenario = example(schedule);
  try {
    if (const auto refusal = find_shape(schedule, scenario)) {
      entry.why = refusal->reason;
    } else {
      entry.answer.emplace(answer(prepare_first(std::move(scenario))));
    }
  } catch (const InfeasibleError& error) {
    entry.why = error.what();
  }
  return entry;
}

std::string gallery_page(const std::vector<GalleryEntry>& gallery) {
  std::string page =
      "# Gallery\n\n"
      "Every schedule that is registered, made by `pipesim gallery -o docs/reference`. Each device "
      "has the same work: F = B = W = 1 s for a microbatch on a whole device, whatever its chunks; "
      "an "
      "overlapped block takes as long as its two passes, messages are free, a copy to the host or "
      "back takes half a second, and an activation is held until its W. A schedule that does not "
      "accept 4 devices and 8 microbatches is shown on the nearest shape that it accepts.\n\n"
      "| schedule | p | m | v | first to last pass | bubble | peak, microbatches |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const GalleryEntry& entry : gallery) {
    if (!entry.answer) continue;
    const Shape& shape = entry.answer->made.problem.shape;
    const Report& report = entry.answer->result.report;
    page += fmt::format("| [{0}](#{0}) | {1} | {2} | {3} | {4:.4g} s | {5:.2f}% | {6:.4g} |\n",
                        title_of(*entry.schedule), shape.devices, shape.microbatches, shape.chunks,
                        report.makespan.value(), 100 * report.bubble_rate,
                        report.peak_activation / entry.answer->made.problem.device_activation());
  }
  for (const GalleryEntry& entry : gallery) {
    const std::string title = title_of(*entry.schedule);
    page += fmt::format("\n## {}\n\n{}; {}.\n\n", title, entry.schedule->summary,
                        origin_text(*entry.schedule));
    page +=
        fmt::format("Bubble {}; in flight on device d {}.\n\n",
                    to_text(entry.schedule->claims.bubble), to_text(entry.schedule->claims.peak));
    page += entry.answer ? fmt::format("![{0}](gallery/{0}.svg)\n\n{1}\n", title,
                                       headline(entry.answer->made, entry.answer->result, false))
                         : fmt::format("No picture: {}.\n", entry.why);
  }
  return page;
}

}  // namespace pipesim
