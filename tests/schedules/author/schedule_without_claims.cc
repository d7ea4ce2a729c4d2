// A schedule whose record says no more than it must: GPipe in another name.
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

const RegisteredSchedule kWithoutClaims{{
    .name = "without-claims",
    .summary = "all forwards, then all backwards, and nothing claimed",
    .source = "tests/schedules/author/schedule_without_claims.cc",
    .plan = [](const Problem& problem) { return find_schedule("gpipe")->plan(problem); },
}};

}  // namespace
}  // namespace pipesim
