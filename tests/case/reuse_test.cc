#include "sim/case/reuse.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/execution/evaluate.h"
#include "sim/planning/schedule.h"
#include "tests/case/cases.h"

namespace pipesim::reuse_test {
namespace {

Scenario scenario_of(const char* schedule, int microbatches, double forward_ms) {
  Scenario scenario;
  scenario.parallel.pipeline = 4;
  scenario.batch.microbatches = microbatches;
  scenario.cost.forward = {Seconds(1e-3 * forward_ms)};
  scenario.cost.backward_input = {Seconds(12e-3)};
  scenario.cost.backward_weight = {Seconds(8e-3)};
  scenario.cost.transfer = Seconds(0.3e-3);
  ScheduleChoice choice;
  choice.name = schedule;
  scenario.schedules = {choice};
  return scenario;
}

Case case_at(const char* schedule, int microbatches, double forward_ms) {
  return prepare_first(scenario_of(schedule, microbatches, forward_ms));
}

TEST(Reuse, ChangesNoBit) {
  Reuse reuse;
  for (const char* schedule : {"1f1b", "zb-h1", "zb-1p", "v-half", "interleaved-1f1b"}) {
    for (const double forward : {10.0, 7.3, 13.1}) {
      const Case made = case_at(schedule, 16, forward);
      const Result alone = simulate(made);
      const Result again = simulate(made, nullptr, &reuse);
      EXPECT_EQ(alone.timeline.end, again.timeline.end) << schedule;
      EXPECT_EQ(alone.report.iteration, again.report.iteration);
      EXPECT_EQ(alone.report.peak_activation, again.report.peak_activation);
      EXPECT_EQ(alone.report.devices.back().idle_by_cause,
                again.report.devices.back().idle_by_cause);
    }
  }
}

TEST(Reuse, SeesThatAGraphHasOtherBytes) {
  Reuse reuse;
  for (const char* schedule : {"1f1b", "v-half"}) {
    for (const double bytes : {3e9, 3e9, 5e9, 2e9, 3e9}) {
      Scenario scenario = scenario_of(schedule, 16, 10);
      scenario.memory.emplace().activation = {Bytes(bytes)};
      scenario.memory->weight_stash = {Bytes(1e9)};
      const Case made = prepare_first(scenario);
      const Report alone = simulate(made, nullptr, nullptr, Detail::kNumbers).report;
      const Report again = simulate(made, nullptr, &reuse, Detail::kNumbers).report;
      EXPECT_GT(alone.peak_activation, Bytes(bytes));
      EXPECT_EQ(alone.peak_activation, again.peak_activation) << schedule << " " << bytes;
    }
  }
}

TEST(Reuse, ChangesNoOrderOfFewMicrobatches) {
  Reuse reuse;
  for (const char* schedule : {"v-half", "v-min", "1f1b-v", "v-search", "best"}) {
    for (const int microbatches : {2, 3, 4, 5}) {
      for (const double forward : {10.0, 3.3, 31.0}) {
        const Case made = case_at(schedule, microbatches, forward);
        const Result alone = simulate(made);
        const Result again = simulate(made, nullptr, &reuse);
        EXPECT_EQ(alone.timeline.end, again.timeline.end) << schedule << " " << microbatches;
        for (int d = 0; d < alone.program->shape().devices; ++d) {
          EXPECT_TRUE(std::ranges::equal(alone.program->passes(d), again.program->passes(d)));
        }
      }
    }
  }
}

TEST(Reuse, KeepsTheFixedOrdersThatASchedulePicksFrom) {
  Reuse reuse;
  const Schedule& v_half = *find_schedule("v-half");
  const Case cheap = case_at("v-half", 3, 5);
  const Case dear = case_at("v-half", 3, 30);
  const auto order = reuse.order(v_half, for_planning(cheap.problem, v_half));
  EXPECT_EQ(reuse.order(v_half, for_planning(dear.problem, v_half)), order);
  EXPECT_GT(reuse.bytes(), 0U);
  Reuse small(1);
  const auto first = small.order(v_half, for_planning(cheap.problem, v_half));
  const auto other = for_planning(case_at("v-half", 2, 5).problem, v_half);
  EXPECT_NE(small.order(v_half, other), first);
  EXPECT_NE(small.order(v_half, for_planning(cheap.problem, v_half)), first);
}

TEST(Reuse, TimesAnOrderAsItsEvaluationDoesOnceItHasAGraph) {
  Reuse reuse;
  const Schedule& v_half = *find_schedule("v-half");
  const Case first = case_at("v-half", 3, 5);
  const auto order = reuse.order(v_half, for_planning(first.problem, v_half));
  EXPECT_FALSE(reuse.time(*order, first.problem));
  for (const double forward : {5.0, 7.3, 30.0}) {
    const Case made = case_at("v-half", 3, forward);
    EXPECT_EQ(reuse.time(*order, made.problem),
              plan_time(evaluate(*order, made.problem), made.problem.objective))
        << forward;
  }
  EXPECT_FALSE(reuse.time(*simulate(first).program, first.problem)) << "of nobody's order";
}

TEST(Reuse, KeepsOneProgramAndOneGraphOfAnOrder) {
  for (const auto& [schedule, microbatches] : {std::pair("zb-h1", 16), std::pair("v-half", 3)}) {
    Reuse reuse;
    const TaskGraph* graph = nullptr;
    const Program* program = nullptr;
    for (const double forward : {10.0, 10.3, 13.1}) {
      const Result result = simulate(case_at(schedule, microbatches, forward), nullptr, &reuse);
      EXPECT_TRUE(graph == nullptr || result.graph.get() == graph) << schedule << forward;
      EXPECT_TRUE(program == nullptr || result.program.get() == program) << schedule << forward;
      graph = result.graph.get();
      program = result.program.get();
      EXPECT_TRUE(reuse.keeps(program)) << schedule;
    }
  }
  Reuse reuse;
  const Result result = simulate(case_at("zb-h1", 16, 10), nullptr, &reuse);
  const Result other = simulate(case_at("zb-h1", 17, 10), nullptr, &reuse);
  EXPECT_NE(other.program.get(), result.program.get());
}

TEST(Reuse, LeavesAGraphThatSomeoneHoldsAsItIs) {
  Reuse reuse;
  const Result first = simulate(case_at("zb-h1", 16, 10), nullptr, &reuse);
  const Seconds before = first.graph->classes().back().seconds;
  const Result second = simulate(case_at("zb-h1", 16, 20), nullptr, &reuse);
  EXPECT_NE(first.graph.get(), second.graph.get());
  EXPECT_EQ(first.graph->classes().back().seconds, before);
}

TEST(Reuse, PlansAnewWhereTheOrderFollowsCosts) {
  Reuse reuse;
  const Result first = simulate(case_at("zb-1p", 16, 10), nullptr, &reuse);
  const Result second = simulate(case_at("zb-1p", 16, 10), nullptr, &reuse);
  EXPECT_NE(first.program.get(), second.program.get());
  EXPECT_EQ(reuse.bytes(), 0U);
}

TEST(Reuse, StaysWithinItsBytes) {
  Reuse reuse(20'000);
  for (int m = 4; m < 64; ++m) {
    (void)simulate(case_at("1f1b", m, 10), nullptr, &reuse);
    const Result latest = simulate(case_at("1f1b", 4, 10), nullptr, &reuse);
    EXPECT_LE(reuse.bytes(), 20'000 + 40 * latest.graph->size()) << m;
  }
}

TEST(SimulateAll, GivesWhatEveryCaseGivesAlone) {
  std::vector<Case> cases;
  for (const double forward : {10.0, 7.3, 13.1, 9.9}) {
    for (const char* schedule : {"1f1b", "zb-h1", "zb-1p", "interleaved-1f1b"}) {
      cases.push_back(case_at(schedule, 16, forward));
    }
  }
  cases.push_back(case_at("zb-h1", 17, 10));
  Scenario jittered = *cases.front().scenario;
  jittered.perturb.jitter = 0.05;
  jittered.perturb.runs = 3;
  cases.push_back(prepare_first(jittered));
  Reuse reuse;
  const std::vector<Simulated> all = simulate_all(cases, reuse);
  ASSERT_EQ(all.size(), cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    const Report alone = simulate(cases[i]).report;
    const Report& beside = all[i].get().report;
    EXPECT_EQ(alone.iteration, beside.iteration) << i;
    EXPECT_EQ(alone.bubble_rate, beside.bubble_rate) << i;
    EXPECT_EQ(alone.bubble_over_ideal, beside.bubble_over_ideal) << i;
    EXPECT_EQ(alone.peak_activation, beside.peak_activation) << i;
    EXPECT_EQ(alone.devices.back().busy, beside.devices.back().busy) << i;
  }
}

TEST(SimulateAll, KeepsTheErrorOfACaseBesideTheOthers) {
  const std::vector<Case> cases{case_at("1f1b", 16, 10), case_at("interleaved-1f1b", 3, 10)};
  Reuse reuse;
  const std::vector<Simulated> all = simulate_all(cases, reuse);
  EXPECT_EQ(all[0].get().report.iteration, simulate(cases[0]).report.iteration);
  EXPECT_THROW((void)all[1].get(), InputError);
}

// All that follows from sums by device.
std::vector<double> numbers(const Report& report) {
  std::vector<double> all{
      report.iteration.value(), report.makespan.value(),        report.cost.value(),
      report.bubble_rate,       report.bubble_rate_busiest,     report.bubble_rate_makespan,
      report.bubble_over_ideal, report.peak_activation.value(), static_cast<double>(report.tasks)};
  for (const DeviceReport& device : report.devices) {
    all.insert(all.end(), {device.busy.value(), device.recompute.value(), device.span.value(),
                           device.idle.value(), device.peak_activation.value()});
  }
  if (const auto& ensemble = report.ensemble) {
    all.insert(all.end(), {static_cast<double>(ensemble->runs), ensemble->stddev.value(),
                           ensemble->p05.value(), ensemble->p95.value()});
  }
  return all;
}

TEST(Simulate, LeavesOutNothingButWhatItIsNotAskedFor) {
  std::vector<Scenario> scenarios(3, scenario_of("1f1b", 8, 10));
  scenarios[1].schedules.front().offload.emplace().chunks = 1;
  scenarios[1].cost.copy_out = scenarios[1].cost.copy_in = {Seconds(1e-3)};
  scenarios[2].sync = OptimizerSync::kPostValidation;
  for (size_t i = 0; i < scenarios.size(); ++i) {
    SCOPED_TRACE(i);
    for (const int runs : {0, 1, 11}) {
      if (runs > 0) scenarios[i].perturb.jitter = 0.05;
      if (runs > 0) scenarios[i].perturb.runs = runs;
      const Case made = prepare_first(scenarios[i]);
      const Result whole = simulate(made);
      ASSERT_EQ(whole.program->copies() != nullptr, i == 1);
      ASSERT_EQ(whole.report.ensemble.has_value(), runs > 0);
      for (const Detail detail : {Detail::kNumbers, Detail::kTimeline}) {
        const Result some = simulate(made, nullptr, nullptr, detail);
        EXPECT_EQ(numbers(whole.report), numbers(some.report)) << runs;
        if (detail == Detail::kNumbers) continue;
        EXPECT_EQ(whole.timeline.start, some.timeline.start);
        EXPECT_EQ(whole.timeline.end, some.timeline.end);
      }
    }
  }
}

}  // namespace
}  // namespace pipesim::reuse_test
