// DynaPipe's order of passes for unequal microbatches: what its public scheduler recorded, with and
// without a limit, and the times and peaks of these orders (data/unequal/dynapipe.json; times and
// activations by microbatch and device, messages that only take their latency).
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <numeric>

#include "sim/execution/evaluate.h"
#include "sim/pipeline/unequal_units.h"
#include "sim/planning/schedule.h"
#include "tests/golden/data.h"
#include "tests/pipeline/problems.h"

namespace pipesim::dynapipe_test {
namespace {

using nlohmann::json;

Problem problem_of(const json& instance, const Schedule& schedule) {
  const int devices = instance.at("p");
  const int microbatches = instance.at("m");
  Problem problem =
      testing::make_problem({devices, 1, microbatches, 1}, schedule.place(devices, 1));
  std::vector<UnitKind> kinds(microbatches);
  for (int i = 0; i < microbatches; ++i) {
    for (int d = 0; d < devices; ++d) {
      StageCost cost;
      cost.forward = Seconds(instance.at("TF")[i][d].get<double>());
      cost.backward_input = Seconds(instance.at("TBW")[i][d].get<double>());
      cost.activation = Bytes(instance.at("activation")[i][d].get<double>());
      if (d + 1 < devices) cost.transfer = Seconds(instance.at("Tcomm").get<double>());
      kinds[i].stages.push_back(cost);
    }
  }
  std::vector<std::uint32_t> numbers(microbatches);
  std::iota(numbers.begin(), numbers.end(), 0U);
  set_kinds(problem, kinds, numbers);
  const json& limit = instance.at("memory_limit");
  if (!limit.is_null()) problem.activation_limit = Bytes(limit.get<double>());
  return problem;
}

TEST(DynaPipe, OrdersPassesAsItsAuthorsDo) {
  const Schedule& schedule = *find_schedule("dynapipe");
  const json data = golden::read_json(golden::data_folder("unequal") / "dynapipe.json");
  ASSERT_EQ(data.at("instances").size(), 4U);
  for (const json& instance : data.at("instances")) {
    SCOPED_TRACE(instance.at("id").get<std::string>());
    const Problem problem = problem_of(instance, schedule);
    ASSERT_FALSE(schedule.refusal(problem).has_value());
    const Program program = schedule.plan(problem);
    const Evaluation result = evaluate(program, problem);
    EXPECT_EQ(result.makespan, Seconds(instance.at("makespan").get<double>()));
    for (int d = 0; d < problem.shape.devices; ++d) {
      std::string text;
      for (const Pass& pass : program.passes(d)) {
        text +=
            fmt::format("{}{}{}.0", text.empty() ? "" : " ", to_text(pass.kind), pass.microbatch);
      }
      EXPECT_EQ(text, instance.at("order")[d].get<std::string>());
      EXPECT_NEAR(result.devices[d].peak_activation.value(), instance.at("peak")[d].get<double>(),
                  1e-9);
    }
  }
}

// With a bound k an F is at most k microbatches ahead of the newest backward, counted from 0.
TEST(DynaPipe, StartsNoMoreMicrobatchesThanItsBoundSays) {
  const Schedule& schedule = *find_schedule("dynapipe");
  for (const long bound : {1L, 2L, 3L, 20L}) {
    Problem problem = testing::make_problem({4, 1, 12, 1});
    problem.options["max_otf_microbatches"] = bound;
    const Program program = schedule.plan(problem);
    const Program unbounded = schedule.plan(testing::make_problem({4, 1, 12, 1}));
    for (int device = 0; device < 4; ++device) {
      long newest = 0;
      long most = 0;
      for (const Pass& pass : program.passes(device)) {
        const auto microbatch = static_cast<long>(pass.microbatch);
        if (pass.kind == PassKind::kBW) newest = microbatch;
        if (pass.kind == PassKind::kF) most = std::max(most, microbatch - newest);
      }
      EXPECT_LE(most, bound) << "device " << device;
      if (device == 0) {
        EXPECT_EQ(most, std::min(bound, 7L));
      }
      if (bound == 20) {
        EXPECT_TRUE(std::ranges::equal(program.passes(device), unbounded.passes(device)));
      }
    }
  }
}

TEST(DynaPipe, RefusesALimitBelowItsLargestMicrobatch) {
  const Schedule& schedule = *find_schedule("dynapipe");
  Problem problem = testing::make_problem({4, 1, 8, 1});
  problem.activation_limit = Bytes(0.5);
  EXPECT_TRUE(schedule.refusal(problem).has_value());
  problem.activation_limit = Bytes(1);
  EXPECT_FALSE(schedule.refusal(problem).has_value());
  EXPECT_EQ(evaluate(schedule.plan(problem), problem).peak_activation(), Bytes(1));
}

}  // namespace
}  // namespace pipesim::dynapipe_test
