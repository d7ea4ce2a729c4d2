// Schedules with a fault each, for the words in which it is reported.
#include <utility>

#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

constexpr auto kF = PassKind::kF, kBW = PassKind::kBW;

bool everywhere(const Problem& /*problem*/) { return true; }

const RegisteredSchedule kWrongClaim{{
    .name = "faulty-claim",
    .summary = "GPipe, which claims to hold one microbatch less",
    .source = "tests/schedules/author/faulty.cc",
    .plan = [](const Problem& problem) { return find_schedule("gpipe")->plan(problem); },
    .claims = {.peak = {.formula = "m-1",
                        .domain = "everywhere",
                        .holds = everywhere,
                        .in_flight = [](const Problem& problem,
                                        int) { return problem.shape.microbatches - 1; }}},
}};

// F and BW of every microbatch in turn, with `change` made to the list of the last device.
template <class Change>
Program in_turn(const Problem& problem, Change change) {
  PassLists lists(static_cast<size_t>(problem.shape.devices));
  for (auto& list : lists) {
    for (int i = 0; i < problem.shape.microbatches; ++i) {
      list.push_back(make_pass(kF, i));
      list.push_back(make_pass(kBW, i));
    }
  }
  change(lists.back());
  return {problem.shape, problem.placement, std::move(lists)};
}

const RegisteredSchedule kMissing{{
    .name = "faulty-missing",
    .summary = "its last device forgets its last backward",
    .source = "tests/schedules/author/faulty.cc",
    .plan =
        [](const Problem& problem) {
          return in_turn(problem, [](auto& list) { list.pop_back(); });
        },
}};

const RegisteredSchedule kTwice{{
    .name = "faulty-twice",
    .summary = "its last device runs its first forward twice",
    .source = "tests/schedules/author/faulty.cc",
    .plan =
        [](const Problem& problem) {
          return in_turn(problem, [](auto& list) { list.push_back(list.front()); });
        },
}};

const RegisteredSchedule kDeadlock{{
    .name = "faulty-deadlock",
    .summary = "its last device begins with a backward",
    .source = "tests/schedules/author/faulty.cc",
    .plan =
        [](const Problem& problem) {
          return in_turn(problem, [](auto& list) { std::swap(list[0], list[1]); });
        },
}};

}  // namespace
}  // namespace pipesim
