#include "sim/search/considered.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "sim/case/program.h"
#include "sim/core/error.h"
#include "sim/planning/description.h"

namespace pipesim {
namespace {

constexpr size_t kMostChoices = 1000;  // of the parameters of a description

bool same_recompute(const std::optional<Recompute>& a, const std::optional<Recompute>& b) {
  if (!a || !b) return !a && !b;
  return a->granularity == b->granularity && a->chunks == b->chunks && a->layers == b->layers;
}

// The choice's recomputation and offload, less what the options choose in their place.
FixedRelief fixed_relief_of(const ScheduleChoice& choice, const SearchOptions& options) {
  FixedRelief fixed{choice.recompute, choice.offload};
  const RecomputeGranularity granularity = granularity_of(choice);
  const bool chosen = options.recompute && granularity == RecomputeGranularity::kFull;
  if (granularity == RecomputeGranularity::kNone || chosen) fixed.recompute.reset();
  if (options.offload) fixed.offload.reset();
  return fixed;
}

class Choices {
 public:
  Choices(const Scenario& scenario, const SearchOptions& options)
      : scenario_(scenario),
        options_(options),
        reliefs_(fixed_reliefs(scenario, options)),
        stages_(stages_of_costs(scenario)) {}

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
      for (const FixedRelief& fixed : reliefs_) add_variants(choice, schedule, fixed);
    }
  }

  // An order is what it is: no other number of chunks, and what the scenario says of it.
  void add_program(const ScheduleChoice& order) {
    ScheduleChoice choice = order;
    choice.chunks = order.program->shape().chunks;
    if (fits_costs(choice)) result_.families.push_back({choice});
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
        add_variants(choice, schedule, fixed_relief_of(described, options_));
      }
    }
  }

  // Each number of chunks that the options let it recompute or offload, beside what is fixed.
  void add_variants(const ScheduleChoice& choice, const Schedule& schedule,
                    const FixedRelief& fixed) {
    const int chunks = *choice.chunks;
    if (!fits_costs(choice) || !fits_relief(choice, fixed)) return;
    std::vector<ScheduleChoice>& all = result_.families.emplace_back();
    const int most_recomputed = options_.recompute ? chunks : 0;
    const int most_offloaded = options_.offload && !schedule.copies() ? chunks : 0;
    for (int recomputed = 0; recomputed <= most_recomputed; ++recomputed) {
      for (int offloaded = 0; offloaded <= most_offloaded; ++offloaded) {
        ScheduleChoice& variant = all.emplace_back(choice);
        variant.recompute = fixed.recompute;
        variant.offload = fixed.offload;
        if (recomputed > 0) {
          variant.recompute =
              Recompute{.granularity = RecomputeGranularity::kFull, .chunks = recomputed};
        }
        const bool by_itself = schedule.copies() && (options_.offload || fixed.offload);
        if (offloaded == 0 && !by_itself) continue;
        if (!variant.offload) variant.offload = scenario_.offload.value_or(Offload{});
        variant.offload->which.clear();
        variant.offload->chunks = offloaded;
      }
    }
  }

  // False, and left out, where costs of single stages are those of another number of them.
  bool fits_costs(const ScheduleChoice& choice) {
    if (!stages_) return true;
    const int stages = placement_of(choice, scenario_.parallel.pipeline).model_stages();
    if (stages == *stages_) return true;
    result_.left_out.push_back(
        fmt::format("{} with {} chunks: has {} stages, and costs or memory are given per stage, of "
                    "{}",
                    choice.name, *choice.chunks, stages, *stages_));
    return false;
  }

  // False, and left out, where more chunks are to recompute or to offload than there are.
  bool fits_relief(const ScheduleChoice& choice, const FixedRelief& fixed) {
    const int chunks = *choice.chunks;
    const auto check = [&](int most, const char* what) {
      if (most <= chunks) return true;
      result_.left_out.push_back(fmt::format("{}: {} chunks are to {}, and it has {} per device",
                                             choice.name, most, what, chunks));
      return false;
    };
    int copied = fixed.offload ? fixed.offload->chunks.value_or(0) : 0;
    if (fixed.offload && !fixed.offload->which.empty()) {
      copied = std::ranges::max(fixed.offload->which) + 1;
    }
    return check(fixed.recompute ? fixed.recompute->chunks.value_or(0) : 0, "recompute") &&
           check(copied, "offload");
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
  std::vector<FixedRelief> reliefs_;  // of registered schedules
  std::optional<int> stages_;         // that costs or memory are given of
  Considered result_;
};

}  // namespace

bool takes_limit(const ScheduleChoice& choice) {
  return !choice.program && schedule_of(choice).memory_limit;
}

Considered families_considered(const Scenario& scenario, const SearchOptions& options) {
  return Choices(scenario, options).make();
}

bool FixedRelief::keeps_all() const {
  return !offload && !(recompute && recompute->granularity == RecomputeGranularity::kFull);
}

std::vector<FixedRelief> fixed_reliefs(const Scenario& scenario, const SearchOptions& options) {
  std::vector<FixedRelief> all;
  for (const ScheduleChoice& choice : scenario.schedules) {
    FixedRelief fixed = fixed_relief_of(choice, options);
    fixed.offload = options.offload ? std::nullopt : scenario.offload;
    const auto is_same = [&fixed](const FixedRelief& other) {
      return same_recompute(fixed.recompute, other.recompute);
    };
    if (std::ranges::none_of(all, is_same)) all.push_back(std::move(fixed));
  }
  return all;
}

std::optional<int> stages_of_costs(const Scenario& scenario) {
  const bool per_stage = scenario.cost.per == CostBasis::kStage ||
                         (scenario.memory && scenario.memory->per == CostBasis::kStage);
  if (!per_stage) return std::nullopt;
  return placement_of(scenario.schedules.front(), scenario.parallel.pipeline).model_stages();
}

void refuse_what_no_search_plans(const Scenario& scenario, const SearchOptions& options) {
  const bool copies_known =
      !scenario.cost.copy_out.empty() || (scenario.hardware.has_value() && knows_memory(scenario));
  if (options.offload && !copies_known) {
    refuse_unknown_copies(scenario.cost.where, "search with offload");
  }
  if (is_sharded(scenario.vocabulary)) {
    throw InfeasibleError(
        "search plans for a vocabulary in the first and last stage: leave out vocabulary");
  }
}

}  // namespace pipesim
