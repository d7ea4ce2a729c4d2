#include "sim/planning/schedule.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <utility>

#include "sim/core/error.h"
#include "sim/core/text.h"
#include "sim/pipeline/unequal_units.h"

namespace pipesim {
namespace {

std::vector<std::unique_ptr<const Schedule>>& registered() {
  static std::vector<std::unique_ptr<const Schedule>> all;
  return all;
}

std::string fault_of_texts(const Schedule& schedule) {
  const bool plain = std::ranges::all_of(schedule.name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
  if (schedule.name.empty()) return "no name";
  if (!plain) return "name: expected small letters, digits and '-' alone";
  if (schedule.summary.empty()) return "no summary: expected a line that says what its order is";
  if (schedule.summary.find('\n') != std::string::npos) return "summary: expected one line";
  if (schedule.source.empty()) return "no source: expected its paper, section or repository";
  return "";
}

std::string fault_of_sizes(const Schedule& schedule) {
  if (schedule.min_chunks < 1 || schedule.default_chunks < schedule.min_chunks ||
      schedule.max_chunks < schedule.default_chunks) {
    return fmt::format(
        "min_chunks {}, default_chunks {} and max_chunks {}: expected 1 or more, each at least the "
        "one before",
        schedule.min_chunks, schedule.default_chunks, schedule.max_chunks);
  }
  if (schedule.default_splits < 1) {
    return fmt::format("default_splits {}: expected 1 or more", schedule.default_splits);
  }
  for (const OptionSpec& option : schedule.options) {
    if (option.name.empty()) return "an option without a name";
    if (option.help.empty()) return fmt::format("no help for the option {}", option.name);
    const bool number =
        option.type == OptionSpec::Type::kInteger || option.type == OptionSpec::Type::kNumber;
    if (number && option.maximum < option.minimum) {
      return fmt::format("maximum {} below minimum {} for the option {}", option.maximum,
                         option.minimum, option.name);
    }
  }
  return "";
}

// A claim is made as a whole or not at all.
template <class Claim>
std::string fault_of_claim(std::string_view what, const Claim& claim, bool has_value) {
  const auto say = [&](std::string_view fault) {
    return fmt::format("the {} claim {}", what, fault);
  };
  const bool has_holds = claim.holds != nullptr && claim.holds != nowhere;
  if (!claim.is_made()) {
    if (has_holds || has_value || !claim.domain.empty()) {
      return say("has no formula: expected one, or nothing but no_closed_form");
    }
    return claim.holds == nullptr ? say("has a `holds` that is null: leave it out") : "";
  }
  if (!claim.no_closed_form.empty()) return say("has both a formula and no_closed_form");
  if (claim.domain.empty()) return say("has no domain: expected where it holds, in words");
  if (!has_holds) return say("has no `holds`: expected the function that decides its domain");
  if (!has_value) return say("has a formula, but no function that computes it");
  return "";
}

std::string fault_of_claims(std::string_view where, const Claims& claims) {
  const BubbleClaim& bubble = claims.bubble;
  const PeakClaim& peak = claims.peak;
  std::string fault =
      fault_of_claim(fmt::format("{}bubble", where), bubble, bubble.bubble != nullptr);
  if (!fault.empty()) return fault;
  return fault_of_claim(fmt::format("{}peak", where), peak, peak.in_flight != nullptr);
}

std::string place_of(const Schedule& schedule) {
  return fmt::format("{}: schedule '{}'", schedule.file, schedule.name);
}

std::vector<const Schedule*> sorted() {
  std::vector<const Schedule*> all;
  for (const auto& schedule : registered()) {
    if (const std::string fault = fault_of(*schedule); !fault.empty()) {
      throw LogicError(fmt::format("{}: {}", place_of(*schedule), fault));
    }
    all.push_back(schedule.get());
  }
  const auto called = [](const Schedule* schedule) {
    return std::pair(schedule->name, schedule->placement ? schedule->placement->name : "");
  };
  std::ranges::stable_sort(all, {}, called);
  const auto twin = std::ranges::adjacent_find(all, {}, called);
  if (twin != all.end()) {
    throw LogicError(fmt::format("two schedules named '{}': in {} and in {}", (*twin)->name,
                                 (*twin)->file, twin[1]->file));
  }
  for (const Schedule* schedule : all) {
    const std::string& without = schedule->without_offload;
    if (without.empty() || std::ranges::binary_search(all, without, {}, &Schedule::name)) continue;
    std::vector<std::string> names;
    for (const Schedule* each : all) names.push_back(each->name);
    throw LogicError(fmt::format("{}: without_offload names '{}', which is no schedule{}",
                                 place_of(*schedule), without, suggestion(without, names)));
  }
  return all;
}

template <class Claim>
std::string text_of(const Claim& claim) {
  if (claim.is_made()) return fmt::format("{} [{}]", claim.formula, claim.domain);
  return fmt::format("no closed form: {}",
                     claim.no_closed_form.empty() ? "none is claimed" : claim.no_closed_form);
}

// The last two parts of the path, as the record's author knows it.
std::string file_in_tree(std::string_view path) {
  size_t from = path.rfind('/');
  if (from != std::string_view::npos && from > 0) from = path.rfind('/', from - 1);
  return std::string(from == std::string_view::npos ? path : path.substr(from + 1));
}

}  // namespace

OptionSpec splits_option() {
  return {.name = "splits",
          .help =
              "parts that the sequence of a microbatch is cut into: so many equal ones, a list "
              "of their lengths to one another, optimal, or of equal FLOPs",
          .minimum = 1,
          .maximum = kMostSplits,
          .cuts_sequence = true,
          .default_text = "4"};
}

std::string to_text(const BubbleClaim& claim) { return text_of(claim); }
std::string to_text(const PeakClaim& claim) { return text_of(claim); }

ScheduleOptions options_of(const Schedule& schedule) {
  if (!schedule.placement) return {};
  return {{"placement", schedule.placement->name}};
}

std::string title_of(const Schedule& schedule) {
  return schedule.placement ? fmt::format("{}-{}", schedule.name, schedule.placement->name)
                            : schedule.name;
}

std::string origin_text(const Schedule& schedule) {
  return schedule.origin == Origin::kOurs ? "ours"
                                          : fmt::format("as published ({})", schedule.source);
}

std::string fault_of(const Schedule& schedule) {
  if (std::string fault = fault_of_texts(schedule); !fault.empty()) return fault;
  if (schedule.plan == nullptr) return "no plan: expected a function from Problem to Program";
  if (schedule.place == nullptr) return "no place: expected a function that makes its Placement";
  if (schedule.runs_on != Runtime::kNone && !schedule.no_flags.empty()) {
    return "both runs_on and no_flags: expected one of them";
  }
  if (std::string fault = fault_of_sizes(schedule); !fault.empty()) return fault;
  if (schedule.versions && (schedule.versions->kept == nullptr || schedule.max_chunks > 1)) {
    return "versions: expected `kept`, and one chunk per device";
  }
  if (std::string fault = fault_of_claims("", schedule.claims); !fault.empty()) return fault;
  for (const VocabularySupport& support : schedule.vocabulary) {
    const std::string of = fmt::format("vocabulary {} ", to_text(support.placement));
    if (std::string fault = fault_of_claims(of, support.claims); !fault.empty()) return fault;
  }
  return "";
}

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
    if (refuse == nullptr) return refusal;
    // Costs are those of other stages: the shape alone is asked for.
    Problem other;
    other.shape = refusal.nearest;
    other.placement = place(other.shape.devices, other.shape.chunks);
    other.stages.assign(static_cast<size_t>(other.placement.virtual_stages()), StageCost{});
    other.options = problem.options;
    other.vocabulary = problem.vocabulary;
    if (const auto further = refuse(other)) refusal.nearest = further->nearest;
    return refusal;
  }
  if (is_sharded(problem.vocabulary) &&
      std::ranges::find(vocabulary, problem.vocabulary, &VocabularySupport::placement) ==
          vocabulary.end()) {
    return Refusal{fmt::format("{} has no order for the passes of vocabulary placement {}", name,
                               to_text(problem.vocabulary)),
                   problem.shape};
  }
  if (memory_limit && problem.activation_limit) {
    const Bytes least = for_planning(problem).device_activation();
    if (*problem.activation_limit < least) {
      return Refusal{
          fmt::format("{} needs a memory limit of at least {}, what one microbatch keeps "
                      "on the device that keeps most; the limit is {}",
                      name, human(least), human(*problem.activation_limit)),
          problem.shape};
    }
  }
  return refuse == nullptr ? std::nullopt : refuse(problem);
}

const std::vector<const Schedule*>& schedules() {
  static const std::vector<const Schedule*> kAll = sorted();
  return kAll;
}

const Schedule* find_schedule(std::string_view name, std::string_view placement) {
  const auto found = std::ranges::find_if(schedules(), [&](const Schedule* schedule) {
    if (schedule->name != name) return false;
    const auto& own = schedule->placement;
    return placement.empty() ? !own || own->is_default : own && own->name == placement;
  });
  return found == schedules().end() ? nullptr : *found;
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const Schedule* schedule : schedules()) {
    if (names.empty() || names.back() != schedule->name) names.push_back(schedule->name);
  }
  return names;
}

std::vector<const Schedule*> records_of(std::string_view name) {
  std::vector<const Schedule*> records;
  for (const Schedule* schedule : schedules()) {
    if (schedule->name == name) records.push_back(schedule);
  }
  return records;
}

RegisteredSchedule::RegisteredSchedule(Schedule schedule, const char* file) {
  schedule.file = file_in_tree(file);
  registered().push_back(std::make_unique<const Schedule>(std::move(schedule)));
}

Problem with_bytes(Problem problem) {
  if (problem.device_activation() > Bytes(0)) return problem;
  const Bytes each(1.0 / problem.shape.splits);
  for_all_stages(problem,
                 [each](StageCost& stage) { stage.activation = stage.weight_stash = each; });
  return problem;
}

Problem for_planning(Problem problem) {
  Problem counted = with_bytes(std::move(problem));
  for_all_stages(counted, [](StageCost& stage) {
    stage.activation = std::max(stage.activation, stage.weight_stash);
  });
  return counted;
}

Problem for_planning(Problem problem, const Schedule& schedule) {
  if (!schedule.each_unit) problem.kinds.clear();
  return schedule.backward_acquires ? with_bytes(std::move(problem))
                                    : for_planning(std::move(problem));
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
