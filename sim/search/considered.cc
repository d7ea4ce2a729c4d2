#include "sim/search/considered.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

#include "sim/case/program.h"
#include "sim/core/error.h"
#include "sim/planning/description.h"

namespace pipesim {
namespace {

constexpr size_t kMostChoices = 1000;  // of the parameters of a description

class Choices {
 public:
  Choices(const Scenario& scenario, const SearchOptions& options)
      : scenario_(scenario), options_(options) {}

  Considered make() {
    for (const Schedule* schedule : schedules()) {
      if (wanted(schedule->name)) add_registered(*schedule);
    }
    for (const ScheduleChoice& choice : scenario_.schedules) {
      if (choice.described && wanted(choice.name)) add_described(choice);
      if (choice.program && wanted(choice.name)) add_program(choice);
    }
    refuse_too_many_passes();
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool wanted(const std::string& schedule) const {
    return options_.schedules.empty() ||
           std::ranges::find(options_.schedules, schedule) != options_.schedules.end();
  }

  void add_registered(const Schedule& schedule) {
    if (schedule.versions) {
      result_.left_out.push_back(schedule.name + ": its iterations run into each other");
      return;
    }
    if (options_.schedules.empty() && !schedule.left_out_of_search.empty()) {
      result_.left_out.push_back(schedule.name + ": " + schedule.left_out_of_search);
      return;
    }
    if (schedule.min_chunks > options_.max_chunks) {
      result_.left_out.push_back(
          fmt::format("{}: holds {} chunks per device, more than the {} allowed", schedule.name,
                      schedule.min_chunks, options_.max_chunks));
    }
    const int most = std::min(schedule.max_chunks, options_.max_chunks);
    for (int chunks = schedule.min_chunks; chunks <= most; ++chunks) {
      ScheduleChoice choice;
      choice.name = schedule.name;
      choice.options = options_of(schedule);
      choice.chunks = chunks;
      const bool overlaps = std::ranges::find(schedule.options, "overlap", &OptionSpec::name) !=
                            schedule.options.end();
      const bool cost_known = scenario_.roofline || knows_blocks(scenario_.cost);
      if (overlaps && !cost_known) choice.options["overlap"] = false;
      result_.families.push_back(variants(choice, schedule));
    }
  }

  // An order is what it is: no other number of chunks, and nothing offloaded or recomputed.
  void add_program(const ScheduleChoice& order) {
    ScheduleChoice choice = order;
    choice.chunks = order.program->shape().chunks;
    result_.families.push_back({choice});
  }

  // With every choice of the parameters that it leaves open.
  void add_described(const ScheduleChoice& described) {
    const Schedule& schedule = described.described->schedule;
    if (schedule.versions) {
      result_.left_out.push_back(described.name + ": its iterations run into each other");
      return;
    }
    const int least = described.chunks.value_or(schedule.min_chunks);
    // A schedule also runs with the number of chunks in its record.
    const int usual = std::min(schedule.max_chunks, options_.max_chunks);
    const int most = described.chunks.value_or(std::max(schedule.default_chunks, usual));
    for (int chunks = least; chunks <= most; ++chunks) {
      ScheduleChoice choice = described;
      choice.chunks = chunks;
      const Shape shape{scenario_.parallel.pipeline, chunks, scenario_.batch.microbatches,
                        splits_of(described)};
      std::optional<std::vector<ScheduleOptions>> choices;
      try {
        choices =
            every_choice(*described.described->description, shape, described.options, kMostChoices);
      } catch (const InputError& error) {
        result_.left_out.push_back(fmt::format("{}: {}", described.name, error.what()));
        continue;
      }
      const std::string name = fmt::format("{} with {} chunks", described.name, chunks);
      if (!choices) {
        result_.left_out.push_back(fmt::format(
            "{}: more than {} choices of its parameters: set some of them", name, kMostChoices));
        continue;
      }
      if (choices->empty()) {
        result_.left_out.push_back(
            fmt::format("{}: its parameters have no values for {} devices and {} microbatches",
                        name, shape.devices, shape.microbatches));
      }
      for (const ScheduleOptions& options : *choices) {
        choice.options = options;
        result_.families.push_back(variants(choice, schedule));
      }
    }
  }

  [[nodiscard]] std::vector<ScheduleChoice> variants(const ScheduleChoice& choice,
                                                     const Schedule& schedule) const {
    std::vector<ScheduleChoice> all;
    const int chunks = *choice.chunks;
    const int most_recomputed = options_.recompute ? chunks : 0;
    const int most_offloaded = options_.offload && !schedule.copies() ? chunks : 0;
    for (int recomputed = 0; recomputed <= most_recomputed; ++recomputed) {
      for (int offloaded = 0; offloaded <= most_offloaded; ++offloaded) {
        ScheduleChoice variant = choice;
        if (recomputed > 0) {
          variant.recompute =
              Recompute{.granularity = RecomputeGranularity::kFull, .chunks = recomputed};
        }
        if (offloaded > 0 || schedule.copies()) {
          variant.offload = scenario_.offload.value_or(Offload{});
          variant.offload->which.clear();
          variant.offload->chunks = offloaded;
        }
        all.push_back(std::move(variant));
      }
    }
    return all;
  }

  // F and backward of every unit and stage.
  void refuse_too_many_passes() const {
    double passes = 0;
    for (const auto& variants : result_.families) {
      for (const ScheduleChoice& choice : variants) {
        const int times = takes_limit(choice) ? options_.limits : 1;
        passes += 2.0 * scenario_.parallel.pipeline * *choice.chunks * splits_of(choice) *
                  scenario_.batch.microbatches * times;
      }
    }
    if (passes <= options_.max_passes) return;
    throw InfeasibleError(fmt::format(
        "search would plan {} families of {:.3g} passes in all, more than {:.3g}: name "
        "fewer (--schedules), ask for fewer limits (--points), or allow it (--max-passes)",
        result_.families.size(), passes, options_.max_passes));
  }

  const Scenario& scenario_;
  const SearchOptions& options_;
  Considered result_;
};

}  // namespace

bool takes_limit(const ScheduleChoice& choice) {
  return !choice.program && schedule_of(choice).memory_limit;
}

Considered families_considered(const Scenario& scenario, const SearchOptions& options) {
  return Choices(scenario, options).make();
}

void refuse_what_no_search_plans(const Scenario& scenario, const SearchOptions& options) {
  const auto refuse = [](const std::string& what) {
    throw InfeasibleError("search plans for " + what);
  };
  if (scenario.cost.per != CostBasis::kDevice ||
      (scenario.memory && scenario.memory->per != CostBasis::kDevice)) {
    refuse("families of different numbers of stages: give cost and memory per: device");
  }
  if (scenario.transfers != Transfers::kOverlapped) {
    refuse("transfers that overlap: leave out framework.transfers");
  }
  const auto recomputes = [](const ScheduleChoice& choice) {
    return recompute_chunks_of(choice) > 0;
  };
  if (std::ranges::any_of(scenario.schedules, recomputes)) {
    refuse("activations that are kept: leave out recompute (--recompute chooses it)");
  }
  if (scenario.offload && !options.offload) {
    refuse("activations that stay on their device: leave out offload (--offload chooses it)");
  }
  const bool copies_known =
      !scenario.cost.copy_out.empty() || (scenario.hardware.has_value() && knows_memory(scenario));
  if (options.offload && !copies_known) {
    refuse_unknown_copies(scenario.cost.where, "search with offload");
  }
  if (is_sharded(scenario.vocabulary)) {
    refuse("a vocabulary in the first and last stage: leave out vocabulary");
  }
}

}  // namespace pipesim
