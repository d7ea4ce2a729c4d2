// Zero Bubble's automatic schedule against the authors' public code and its integer program
// (data/automatic/zb_heuristic.json): the same cost or less, with the same memory or less.
#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/pipeline/evaluate.h"
#include "sim/pipeline/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim {
namespace {

using nlohmann::json;

const json& data() {
  static const json all = [] {
    json read;
    std::ifstream(PIPESIM_SOURCE_DIR "/tests/golden/data/automatic/zb_heuristic.json") >> read;
    return read;
  }();
  return all;
}

double of_device(const json& values, int device) {
  return values.is_array() ? values.at(static_cast<size_t>(device)).get<double>()
                           : values.get<double>();
}

// The data's bytes are changes: B adds M_B = -(activation - weight_stash), W adds M_W.
Problem problem_of(const json& instance) {
  const json& params = instance.at("params");
  const Shape shape{params.at("p").get<int>(), 1, params.at("m").get<int>(), 1};
  Problem problem = testing::make_problem(shape);
  for (int device = 0; device < shape.devices; ++device) {
    StageCost& cost = problem.stages[static_cast<size_t>(device)];
    cost.forward = Seconds(of_device(params.at("TF"), device));
    cost.backward_input = Seconds(of_device(params.at("TB"), device));
    cost.backward_weight = Seconds(of_device(params.at("TW"), device));
    cost.activation = Bytes(of_device(params.at("M_F"), device));
    cost.weight_stash = Bytes(-of_device(params.at("M_W"), device));
  }
  testing::set_transfers(problem, params.at("Tcomm").get<double>());
  problem.activation_limit = Bytes(params.at("mem_limit").get<double>());
  return problem;
}

// Reads "F0.0 B0.0 W0.0 ...", one text per device.
Program reference_of(const json& instance, const Problem& problem) {
  PassLists lists;
  for (const json& order : instance.at("order")) {
    std::istringstream text(order.get<std::string>());
    auto& list = lists.emplace_back();
    for (std::string token; text >> token;) {
      const PassKind kind = token[0] == 'F'   ? PassKind::kF
                            : token[0] == 'B' ? PassKind::kB
                                              : PassKind::kW;
      list.push_back(make_pass(kind, std::stoi(token.substr(1))));
    }
  }
  return {problem.shape, problem.placement, std::move(lists)};
}

Bytes peak(const Evaluation& result) {
  Bytes largest;
  for (const DeviceEvaluation& device : result.devices) {
    largest = std::max(largest, device.peak_activation);
  }
  return largest;
}

Program plan(std::string_view name, const Problem& problem) {
  const Schedule& schedule = *find_schedule(name);
  EXPECT_FALSE(schedule.refusal(problem).has_value());
  return schedule.plan(problem);
}

TEST(ZeroBubbleAutomatic, CostsNoMoreTimeOrMemoryThanTheReference) {
  ASSERT_EQ(data().at("heuristic").size(), 11);
  int equal = 0;
  for (const json& instance : data().at("heuristic")) {
    SCOPED_TRACE(instance.at("id"));
    const Problem problem = problem_of(instance);
    const Program program = plan("zb", problem);
    const Program reference = reference_of(instance, problem);
    const Evaluation ours = evaluate(program, problem);
    const Evaluation theirs = evaluate(reference, problem);
    EXPECT_EQ(theirs.cost.value(), instance.at("cost").get<double>());
    EXPECT_LE(ours.cost, theirs.cost);
    EXPECT_LE(peak(ours), peak(theirs));
    EXPECT_LE(peak(ours), *problem.activation_limit);
    bool same = true;
    for (int device = 0; device < problem.shape.devices; ++device) {
      same = same && std::ranges::equal(program.passes(device), reference.passes(device));
    }
    equal += same ? 1 : 0;
  }
  fmt::print("{} of 11 instances have the reference's order\n", equal);
}

TEST(ZeroBubbleAutomatic, IsOptimalWhereTheOptimumIsKnown) {
  ASSERT_FALSE(data().at("optimum").empty());
  for (const json& instance : data().at("optimum")) {
    SCOPED_TRACE(instance.at("id"));
    const Problem problem = problem_of(instance);
    const Evaluation ours = evaluate(plan("zb", problem), problem);
    EXPECT_EQ(ours.cost.value(), instance.at("cost").get<double>());
    EXPECT_LE(peak(ours), *problem.activation_limit);
  }
}

// Any stages, boundaries, bytes and limits: evaluate throws where a program deadlocks.
TEST(ZeroBubbleAutomatic, KeepsEveryLimitThatOneMicrobatchKeeps) {
  testing::Random random(5);
  for (int round = 0; round < 2000; ++round) {
    const Shape shape{random.integer(1, 9), 1, random.integer(1, 30), 1};
    Problem problem =
        testing::random_problem(random, shape, Placement::looped(shape.devices, 1), random.coin());
    const Bytes one = problem.device_activation();
    problem.activation_limit = random.real(1, 2.5 * shape.devices) * one;
    SCOPED_TRACE(fmt::format("round {}: p {} m {}", round, shape.devices, shape.microbatches));
    EXPECT_LE(peak(evaluate(plan("zb", problem), problem)), *problem.activation_limit);
    EXPECT_LE(peak(evaluate(plan("zb-1p", problem), problem)), shape.devices * one);
    EXPECT_LE(peak(evaluate(plan("zb-2p", problem), problem)), 2 * shape.devices * one);
  }
}

TEST(ZeroBubbleAutomatic, FitsPMicrobatchesOfABrokenNumberOfBytesIntoPTimesThat) {
  Problem problem = testing::make_problem({7, 1, 21, 1}, {10, 12, 8, 0});
  for (StageCost& cost : problem.stages) cost.activation = cost.weight_stash = 3.7 * kGiB;
  for (const DeviceEvaluation& device : evaluate(plan("zb-1p", problem), problem).devices) {
    EXPECT_EQ(device.peak_in_flight, 7);
  }
}

TEST(ZeroBubbleAutomatic, RefusesALimitBelowOneMicrobatchAndSaysTheLeast) {
  Problem problem = testing::make_problem({4, 1, 8, 1});
  problem.stages[2].activation = problem.stages[2].weight_stash = 3 * kGiB;
  problem.activation_limit = 2.5 * kGiB;
  const auto refusal = find_schedule("zb")->refusal(problem);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_NE(refusal->reason.find("at least 3.00 GiB"), std::string::npos) << refusal->reason;
  EXPECT_NE(refusal->reason.find("2.50 GiB"), std::string::npos) << refusal->reason;
  EXPECT_EQ(refusal->nearest, problem.shape);
  problem.activation_limit = 3 * kGiB;
  EXPECT_FALSE(find_schedule("zb")->refusal(problem).has_value());
}

// The public code lets device 1 warm up with every microbatch where device 0 does not, and stops at
// an assertion.
TEST(ZeroBubbleAutomatic, DoesNotRunAForwardThatTheDeviceBeforeHasNotRun) {
  Problem problem = testing::make_problem({3, 1, 2, 1});
  const double seconds[3][3] = {{6, 2, 1}, {1, 1, 6}, {1, 1, 6}};
  for (size_t device = 0; device < 3; ++device) {
    problem.stages[device].forward = Seconds(seconds[device][0]);
    problem.stages[device].backward_input = Seconds(seconds[device][1]);
    problem.stages[device].backward_weight = Seconds(seconds[device][2]);
  }
  EXPECT_EQ(evaluate(plan("zb-2p", problem), problem).cost, Seconds(24));
}

TEST(ZeroBubbleAutomatic, CountsEveryMicrobatchOnceWhereNoBytesAreGiven) {
  const Problem counted = testing::make_problem({4, 1, 12, 1}, {10, 12, 8, 1});
  Problem unknown = counted;
  for (StageCost& cost : unknown.stages) cost.activation = cost.weight_stash = Bytes(0);
  for (const char* name : {"zb", "zb-1p", "zb-2p"}) {
    const Program a = plan(name, counted);
    const Program b = plan(name, unknown);
    for (int device = 0; device < 4; ++device) {
      EXPECT_TRUE(std::ranges::equal(a.passes(device), b.passes(device))) << name;
    }
  }
}

TEST(ZeroBubbleAutomatic, DoesWhatItClaimsUnderEveryLimit) {
  const Schedule& zb = *find_schedule("zb");
  int exact = 0;
  for (const testing::Times& times : {testing::Times{1, 1, 1, 0}, {10, 12, 8, 0}, {4, 10, 8, 0}}) {
    for (int p = 1; p <= 8; ++p) {
      for (int limit = 1; limit <= 3 * p; ++limit) {
        Problem problem = testing::make_problem({p, 1, 3 * p, 1}, times);
        problem.activation_limit = Bytes(limit);
        if (!zb.claims.bubble.holds(problem)) continue;
        ++exact;
        const Evaluation result = evaluate(zb.plan(problem), problem);
        SCOPED_TRACE(fmt::format("p {} limit {} F {}", p, limit, times.forward));
        EXPECT_EQ(result.cost - result.work, zb.claims.bubble.bubble(problem));
        EXPECT_EQ(result.devices[0].peak_in_flight, zb.claims.peak.in_flight(problem, 0));
      }
    }
  }
  EXPECT_GT(exact, 150);
}

}  // namespace
}  // namespace pipesim
