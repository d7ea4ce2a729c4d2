// Search, refinement and the lower bound: never worse than what they start from, never below what
// is proven, always within the limit.
#include "sim/search/search.h"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/case/program.h"
#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/execution/evaluate.h"
#include "sim/execution/with_offload.h"
#include "sim/execution/with_recompute.h"
#include "sim/planning/least_overlap.h"
#include "sim/planning/room.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "sim/search/bound.h"
#include "sim/search/refine.h"
#include "tests/case/cases.h"
#include "tests/exact/instance.h"
#include "tests/pipeline/problems.h"
#include "tests/sanitized.h"

namespace pipesim::search_test {
namespace {

TEST(Refine, IsNeverLongerAndKeepsTheLimit) {
  testing::Random random(11);
  int shorter = 0;
  for (int round = 0; round < 60; ++round) {
    const Shape shape{random.integer(1, 6), 1, random.integer(1, 24), 1};
    Problem problem =
        testing::random_problem(random, shape, Placement::looped(shape.devices, 1), random.coin());
    problem.activation_limit = random.real(1, 2 * shape.devices) * problem.device_activation();
    const Program start = find_schedule("zb")->plan(problem);
    const Program refined = refine(start, problem, *problem.activation_limit, {1, 1e5});
    const Evaluation before = evaluate(start, problem);
    const Evaluation after = evaluate(refined, problem);
    SCOPED_TRACE(fmt::format("round {}: p {} m {}", round, shape.devices, shape.microbatches));
    EXPECT_LE(after.cost.value(), before.cost.value() * (1 + 1e-12));
    EXPECT_LE(after.peak_activation(), *problem.activation_limit * (1 + 1e-9));
    EXPECT_GE(after.cost.value() * (1 + 1e-9),
              lower_bound(problem, *problem.activation_limit).value());
    shorter += after.cost < before.cost ? 1 : 0;
  }
  EXPECT_GT(shorter, 5);
}

TEST(Refine, FindsTheSameProgramAgain) {
  Problem problem = testing::make_problem({4, 1, 40, 1}, {10, 12, 8, 1});
  problem.activation_limit = Bytes(6);
  const Program start = find_schedule("zb")->plan(problem);
  const Program a = refine(start, problem, Bytes(6), {3, 1e5});
  const Program b = refine(start, problem, Bytes(6), {3, 1e5});
  for (int device = 0; device < 4; ++device) {
    EXPECT_TRUE(std::ranges::equal(a.passes(device), b.passes(device)));
  }
}

TEST(Refine, EndsWithWhatItHasWhenItIsStopped) {
  Problem problem = testing::make_problem({4, 1, 40, 1}, {10, 12, 8, 1});
  problem.activation_limit = Bytes(6);
  const Program start = find_schedule("zb")->plan(problem);
  int asked = 0;
  RefineOptions options{.effort = 1e15};  // days
  options.stop = [&asked] { return ++asked > 10; };
  const Program refined = refine(start, problem, Bytes(6), options);
  EXPECT_LE(evaluate(refined, problem).cost, evaluate(start, problem).cost);
}

TEST(Refine, LeavesAProgramAboveTheLimitAlone) {
  const Problem problem = testing::make_problem({3, 1, 6, 1});
  const Program start = find_schedule("1f1b")->plan(problem);
  const Program same = refine(start, problem, Bytes(2), {1, 1e4});
  for (int device = 0; device < 3; ++device) {
    EXPECT_TRUE(std::ranges::equal(start.passes(device), same.passes(device)));
  }
}

Scenario scenario_of(const std::string& batch, const std::string& sync = "post_validation") {
  return read_scenario(YamlSource("test", R"(
schedule: 1f1b
parallel: {pipeline_model_parallel_size: 4}
batch: {num_microbatches: )" + batch + R"(}
optimizer: {sync: )" + sync + R"(}
cost: {kind: given, per: device, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms,
       transfer: 0.4 ms}
)"));
}

TEST(Search, IsNeverWorseThanAnyFamilyThatFits) {
  SearchOptions options;
  options.refinement.effort = 3e5;
  const Search search(scenario_of("12"), options);
  for (const double times : {0.25, 0.5, 1.0, 1.5, 2.0}) {
    const Bytes limit = times * search.unit();
    const SearchResult result = search.at(limit);
    ASSERT_TRUE(result.best.has_value()) << times;
    EXPECT_LE(result.best->peak, limit * (1 + 1e-9));
    EXPECT_LE(result.best->cost, result.registered->cost);
    EXPECT_GE(result.best->cost.value() * (1 + 1e-9), result.bound.value());
    for (const Schedule* schedule : schedules()) {
      ScheduleChoice choice;
      choice.name = schedule->name;
      choice.memory_limit = times;
      if (schedule->max_chunks > 1 && schedule->min_chunks > 2) continue;
      try {
        const Scenario scenario = scenario_of("12");
        Problem problem = case_of(scenario, choice).problem;
        if (problem.placement.directions() > 1) continue;
        for (StageCost& stage : problem.stages) {
          stage.activation = stage.weight_stash = Bytes(1.0 / problem.shape.chunks);
        }
        const Evaluation one = evaluate(*make_program(choice, problem), problem);
        if (one.peak_activation() > limit * (1 + 1e-9)) continue;
        EXPECT_LE(result.best->cost, one.cost * (1 + 1e-9));
      } catch (const InputError&) {  // refuses the shape
        continue;
      } catch (const InfeasibleError&) {  // or the limit
        continue;
      }
    }
  }
}

TEST(Search, MakesAFrontierOnWhichMoreMemoryNeverCostsTime) {
  SearchOptions options;
  options.refinement.effort = 1e5;
  const Search search(scenario_of("16"), options);
  const auto results = search.frontier(6);
  ASSERT_EQ(results.size(), 6);
  for (size_t i = 0; i < results.size(); ++i) {
    ASSERT_TRUE(results[i].best.has_value());
    EXPECT_LE(results[i].best->peak, results[i].limit * (1 + 1e-9));
    if (i == 0) continue;
    EXPECT_LE(results[i].best->cost, results[i - 1].best->cost);
  }
  EXPECT_LT(results.back().best->cost, results.front().best->cost);
}

// Stages for which a plan in V-shape within 1F1B's memory may take longer than within three
// quarters of it.
TEST(Search, IsNotSlowerThanAtARungBelowTheLimit) {
  const Scenario scenario = read_scenario(YamlSource("test", R"(
schedule: 1f1b
parallel: {pipeline_model_parallel_size: 4}
batch: {num_microbatches: 5}
cost: {kind: given, forward: [26.8 ms, 24.8 ms, 17.4 ms, 4.18 ms],
       backward_input: [28 ms, 45.5 ms, 14.2 ms, 24.9 ms],
       backward_weight: [30.2 ms, 11.6 ms, 23.3 ms, 7.85 ms]}
memory: {kind: given, activation: 3.93 MiB, weight_stash: 0 MiB}
)"));
  SearchOptions options;
  options.refine = false;
  const Search search(scenario, options);
  Seconds before(1);
  for (const double times : {0.25, 0.5, 0.75, 1.0, 1.25, 2.0, 3.0}) {
    const SearchResult result = search.at(times * search.unit());
    ASSERT_TRUE(result.best.has_value()) << times;
    EXPECT_LE(result.best->makespan, before) << times;
    before = result.best->makespan;
  }
}

TEST(Search, SaysOfEveryFamilyOnceWhyItIsLeftOut) {
  SearchOptions options;
  options.max_chunks = 1;
  options.schedules = {"v-half"};
  try {
    const Search search(scenario_of("12"), options);
    FAIL() << "nothing is left";
  } catch (const InfeasibleError& error) {
    EXPECT_NE(std::string(error.what()).find("v-half: holds 2 chunks per device"),
              std::string::npos);
  }
  options.max_chunks = 3;
  options.schedules = {"interleaved-1f1b", "po-h"};
  auto of_two = scenario_of("2");
  try {
    const Search search(of_two, options);
    FAIL() << "nothing is left";
  } catch (const InfeasibleError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("interleaved-1f1b with 2 chunks: "), std::string::npos) << text;
    EXPECT_NE(text.find("interleaved-1f1b with 3 chunks: "), std::string::npos) << text;
    EXPECT_EQ(text.find("po-h"), text.rfind("po-h")) << text;
  }
}

// Where iterations do not overlap the makespan is the iteration time.
TEST(Search, SeeksTheMakespanWhereIterationsDoNotOverlap) {
  SearchOptions options;
  options.refinement.effort = 3e5;
  const Search apart(scenario_of("12", "none"), options);
  const Search together(scenario_of("12"), options);
  for (const double times : {0.5, 1.0, 1.5}) {
    const SearchResult one = apart.at(times * apart.unit());
    const SearchResult other = together.at(times * together.unit());
    EXPECT_EQ(one.best->time, one.best->makespan);
    EXPECT_EQ(other.best->time, other.best->cost);
    EXPECT_LE(one.best->makespan, one.registered->makespan);
    EXPECT_GE(one.best->makespan.value() * (1 + 1e-9), one.bound.value());
    EXPECT_GE(one.bound, other.bound) << "a makespan is as long as the longest span";
    for (const std::string name : {"zb", "best"}) {
      SearchOptions only = options;
      only.schedules = {name};
      only.refine = false;
      const SearchResult family = Search(scenario_of("12", "none"), only).at(one.limit);
      EXPECT_LE(one.best->makespan, family.best->makespan) << name;
    }
  }
}

TEST(Refine, IsNeverLongerInMakespan) {
  testing::Random random(5);
  for (int round = 0; round < 30; ++round) {
    const Shape shape{random.integer(1, 6), 1, random.integer(1, 24), 1};
    Problem problem =
        testing::random_problem(random, shape, Placement::looped(shape.devices, 1), random.coin());
    const Bytes limit = random.real(1, 2 * shape.devices) * problem.device_activation();
    problem.activation_limit = limit;
    problem.objective = Objective::kMakespan;
    const Program start = find_schedule("zb")->plan(problem);
    const Program refined = refine(start, problem, limit, {1, 1e5});
    const double makespan = evaluate(refined, problem).makespan.value();
    EXPECT_LE(makespan, evaluate(start, problem).makespan.value() * (1 + 1e-12));
    EXPECT_GE(makespan * (1 + 1e-9), lower_bound(problem, limit).value());
  }
}

TEST(Search, OverlapsBlocksWhereTheModelSaysHowLongTheyTake) {
  SearchOptions options;
  options.schedules = {"dualpipev"};
  options.refine = false;
  const Search search(read_scenario(YamlSource("test", R"(
schedule: 1f1b
model: llama3-8b
cluster: dgx-h100
parallel: {tensor_model_parallel_size: 8, pipeline_model_parallel_size: 4}
batch: {global_batch_size: 16, micro_batch_size: 1, seq_length: 4096}
)")),
                      options);
  const SearchResult result = search.at(2 * search.unit());
  ASSERT_TRUE(result.registered.has_value());
  EXPECT_FALSE(result.registered->program->pairs().empty());
}

TEST(Search, SaysWhenNothingFits) {
  const Search search(scenario_of("8"), {});
  EXPECT_FALSE(search.at(0.1 * search.unit()).best.has_value());
}

// Bytes so small that a limit holds more of them than an integer counts, and blocks that overlap.
TEST(Search, FindsNothingBelowItsBound) {
  SearchOptions options;
  options.refinement.effort = 1e5;
  const auto look = [&options](const std::string& overrides, double limit) {
    const Search search(read_scenario(YamlSource("test", R"(
schedule: 1f1b
parallel: {pipeline_model_parallel_size: 4}
batch: {num_microbatches: 24}
optimizer: {sync: post_validation}
)" + overrides)),
                        options);
    return search.at(limit * search.unit());
  };
  const std::string cost =
      "cost: {kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms,"
      " transfer: 0.4 ms";
  const SearchResult tiny = look(
      cost + "}\nmemory: {kind: given, activation: [1 B, 80 GiB, 1 GiB, 1 B], weight_stash: 0}", 1);
  EXPECT_LE(tiny.bound, tiny.best->cost * (1 + 1e-9));
  EXPECT_LT(tiny.bound.value(), 24 * 0.030 * 4);
  const SearchResult blocks = look(cost + ", overlapped: 20 ms}", 1.25);
  EXPECT_LE(blocks.bound, blocks.best->cost * (1 + 1e-9));
  EXPECT_EQ(blocks.best->choice.name, "dualpipev");
  const SearchResult weightless =
      look(cost + "}\nmemory: {kind: given, activation: 0, weight_stash: 0}", 1);
  EXPECT_EQ(weightless.limit, Bytes(4));
}

TEST(LeastOverlap, BoundsProgramsWhoseBlocksAreOfUnlikeStages) {
  testing::Random random(5);
  for (int round = 0; round < 40; ++round) {
    const Shape shape{random.integer(2, 5), 2, random.integer(4, 20), 1};
    Problem problem = testing::random_problem(random, shape, Placement::vee(shape.devices), false);
    for (StageCost& stage : problem.stages) {
      const Seconds bw = stage.backward_input + stage.backward_weight;
      stage.overlapped =
          std::max(std::max(stage.forward, bw), random.real(0.5, 1) * (stage.forward + bw));
    }
    const Program program = find_schedule("dualpipev")->plan(problem);
    Problem shorter = problem;
    shorter.objective = Objective::kMakespan;
    const double least = least_overlap(problem);
    EXPECT_LT(least, 1);
    for (StageCost& stage : shorter.stages) {
      stage.forward = least * stage.forward;
      stage.backward_input = least * stage.backward_input;
      stage.backward_weight = least * stage.backward_weight;
    }
    const Evaluation result = evaluate(program, problem);
    const Seconds bound = lower_bound(shorter, Bytes(1e30));
    SCOPED_TRACE(fmt::format("round {}: p {} m {}", round, shape.devices, shape.microbatches));
    EXPECT_LE(bound.value(), result.makespan.value() * (1 + 1e-9));
    for (int d = 0; d < shape.devices; ++d) {
      for (const Pass& pass : program.passes(d)) {
        if (pass.kind != PassKind::kFB) continue;
        const OverlappedPair& pair = program.pair(pass);
        const Seconds block = pass_seconds(problem, program, d, pass);
        EXPECT_GE(block, pass_seconds(problem, program, d, pair.forward));
        EXPECT_GE(block, pass_seconds(problem, program, d, pair.backward));
      }
    }
  }
}

TEST(Search, MakesTheSameFrontierEveryTime) {
  SearchOptions options;
  options.refinement.effort = 1e4;
  const Search search(scenario_of("12"), options);
  const auto once = search.frontier(24);
  for (int round = 0; round < 3; ++round) {
    const auto again = search.frontier(24);
    for (size_t i = 0; i < once.size(); ++i) {
      EXPECT_EQ(once[i].best->choice.name, again[i].best->choice.name);
      EXPECT_EQ(once[i].best->peak, again[i].best->peak);
      EXPECT_EQ(once[i].best->cost, again[i].best->cost);
      EXPECT_EQ(once[i].registered.has_value(), again[i].registered.has_value());
    }
  }
}

TEST(Search, RefusesWhatItDoesNotConsider) {
  const auto refusal = [](const std::string& text, SearchOptions options = {}) -> std::string {
    try {
      const Search search(read_scenario(YamlSource("test", text)), std::move(options));
    } catch (const InfeasibleError& error) {
      return error.what();
    }
    return "";
  };
  const std::string base =
      "parallel: {pipeline_model_parallel_size: 4}\nbatch: {num_microbatches: 8}\n"
      "cost: {kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms";
  EXPECT_EQ(refusal(base + "}\nschedule: 1f1b"), "");
  EXPECT_NE(refusal(base + ", output_forward: 2 ms, output_backward: 4 ms, input_forward: 0, "
                           "input_backward: 0}\nschedule: 1f1b\nvocabulary: vocab-2")
                .find("leave out vocabulary"),
            std::string::npos);
  SearchOptions few;
  few.max_passes = 2 * 4 * 8 * 3;  // three families of one chunk
  few.schedules = {"1f1b", "gpipe", "zb"};
  EXPECT_EQ(refusal(base + "}\nschedule: 1f1b", few), "");
  few.limits = 2;  // only zb follows them
  EXPECT_NE(refusal(base + "}\nschedule: 1f1b", few).find("3 families of 256 passes in all"),
            std::string::npos);
  few.max_passes = 256;
  EXPECT_EQ(refusal(base + "}\nschedule: 1f1b", few), "");
  SearchOptions none;
  none.schedules = {"dualpipe"};
  EXPECT_NE(refusal(base + "}\nschedule: 1f1b", none).find("2 copies"), std::string::npos);
}

TEST(LowerBound, IsNeverAboveAProvenOptimum) {
  double worst = 0;
  int near = 0;
  int count = 0;
  for (const auto& data : exact::proven_optima()) {
    const exact::Instance instance = exact::read_instance(data);
    const double optimum = data.at("cost").get<double>();
    const double bound = lower_bound(instance.problem, *instance.problem.activation_limit).value();
    EXPECT_LE(bound, optimum * (1 + 1e-9)) << data.at("id");
    const double gap = optimum / bound - 1;
    worst = std::max(worst, gap);
    near += gap <= 0.05 ? 1 : 0;
    ++count;
  }
  fmt::print("the bound is within 5% of {} of {} optima, at worst {:.1f}% below\n", near, count,
             100 * worst);
  EXPECT_EQ(count, 104);
  EXPECT_GE(near, 95);
}

// From best's program to the optimum that an exact solver has proven.
TEST(Refine, ReachesEveryProvenOptimum) {
  int count = 0;
  const nlohmann::json& all = exact::proven_optima();
  for (const auto& data : testing::some(std::vector(all.begin(), all.end()))) {
    const exact::Instance instance = exact::read_instance(data);
    const Bytes limit = *instance.problem.activation_limit;
    const bool vee = instance.problem.shape.chunks == 2;
    const Program start = find_schedule("best", vee ? "vee" : "linear")->plan(instance.problem);
    const Program refined = refine(start, instance.problem, limit, {1, 1e7});
    const double cost = evaluate(refined, instance.problem).cost.value();
    const double optimum = data.at("cost").get<double>();
    EXPECT_GE(cost * (1 + 1e-9), optimum) << data.at("id");
    EXPECT_LE(cost, optimum * (1 + 1e-9)) << data.at("id");
    ++count;
  }
  EXPECT_EQ(count, testing::kSanitized ? 11 : 104);
}

TEST(Search, BalancesTheLayersOfEveryFamily) {
  const Scenario scenario = read_scenario(YamlSource("s.yaml", R"(
model: {family: llama, num_layers: 7, hidden_size: 2048, num_attention_heads: 16,
        ffn_hidden_size: 5632, vocab_size: 64000}
cluster: dgx-a100
schedule: 1f1b
parallel: {pipeline_model_parallel_size: 4, balance: auto}
batch: {num_microbatches: 8, micro_batch_size: 2, seq_length: 4096}
memory: {kind: model, capacity: 9 GiB}
)"));
  SearchOptions options;
  options.schedules = {"1f1b"};
  options.refine = false;
  const Search search(scenario, options);
  const SearchResult result = search.at(10 * search.unit());
  ASSERT_TRUE(result.best);
  const Problem wanted = prepare_first(scenario).problem;
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(result.best->problem.stage(stage).forward, wanted.stage(stage).forward);
  }
}

// A model whose W needs more than F kept, and whose backwards in one pass hide a collective: search
// counts what a run does, and refines what costs that where B and W run apart.
TEST(Search, CountsTheBytesAndSecondsOfARun) {
  const auto scenario = std::make_shared<const Scenario>(read_scenario(YamlSource("s.yaml", R"(
model: llama3-70b
cluster: dgx-h100
schedule: [1f1b, interleaved-1f1b, 1f1b-v, zb-h1, v-half, hanayo, dynapipe]
parallel: {pipeline_model_parallel_size: 8, tensor_model_parallel_size: 8, sequence_parallel: true}
batch: {num_microbatches: 16, micro_batch_size: 1, seq_length: 8192}
)")));
  for (const ScheduleChoice& asked : scenario->schedules) {
    SCOPED_TRACE(asked.name);
    SearchOptions options;
    options.schedules = {asked.name};
    options.refinement.effort = 1e5;
    const Search search(*scenario, options);
    for (const double part : {0.3, 1.0}) {
      const SearchResult result = search.at(part * search.unit());
      if (!result.best) continue;
      EXPECT_LE(result.best->peak, kRounding * result.limit);
      for (const Found* found : {&*result.best, &*result.registered}) {
        ScheduleChoice choice = found->choice;
        choice.program = found->program;
        const Result run = simulate(prepare(scenario, choice));
        EXPECT_NEAR(run.report.makespan.value(), found->makespan.value(), 1e-9);
        EXPECT_EQ(run.report.peak_activation, found->peak);
      }
    }
  }
}

Scenario with_copies(const std::string& out = "3 ms") {
  return read_scenario(YamlSource("test", R"(
schedule: 1f1b
parallel: {pipeline_model_parallel_size: 4}
batch: {num_microbatches: 12}
cost: {kind: given, per: device, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms,
       transfer: 0.4 ms, copy_in: 3 ms, copy_out: )" +
                                              out + R"(}
memory: {kind: given, activation: 2 GiB, weight_stash: 1 GiB, checkpoint: 0.1 GiB}
)"));
}

TEST(Search, OffloadsAndRecomputesOnlyWhereAllowedAndNeverTakesLongerFor) {
  SearchOptions plain;
  plain.refinement.effort = 1e5;
  SearchOptions both = plain;
  both.offload = both.recompute = true;
  const Search without(with_copies(), plain);
  const Search with(with_copies(), both);
  for (const double times : testing::some(std::vector{0.5, 0.3, 0.75, 1.0})) {
    const Bytes limit = times * without.unit();
    const SearchResult kept = without.at(limit);
    const SearchResult relieved = with.at(limit);
    SCOPED_TRACE(fmt::format("{} of the unit", times));
    EXPECT_FALSE(kept.kept.has_value());
    ASSERT_TRUE(relieved.best.has_value());
    EXPECT_LE(relieved.best->peak.value(), limit.value() * (1 + 1e-12));
    EXPECT_GE(relieved.best->time.value() * (1 + 1e-9), relieved.bound.value());
    EXPECT_LE(relieved.bound.value(), kept.bound.value() * (1 + 1e-12));
    if (!kept.best) continue;
    EXPECT_TRUE(keeps_all(*kept.best));
    EXPECT_LE(relieved.best->time.value(), kept.best->time.value());
    ASSERT_TRUE(relieved.kept.has_value());
    EXPECT_EQ(relieved.kept->time, kept.best->time);
  }
}

TEST(Search, FindsAScheduleWhereNoneThatKeepsEveryActivationFits) {
  SearchOptions options;
  options.refinement.effort = 1e5;
  const Bytes limit(1.6 * (1 << 30));  // less than a microbatch keeps, more than one of two chunks
  EXPECT_FALSE(Search(with_copies(), options).at(limit).best.has_value());
  options.recompute = true;
  const SearchResult result = Search(with_copies(), options).at(limit);
  ASSERT_TRUE(result.best.has_value());
  EXPECT_GT(recompute_chunks_of(result.best->choice), 0);
  EXPECT_FALSE(result.kept.has_value());
}

TEST(Search, KeepsEverythingWhereCopiesAreTooSlowAndMemoryIsNotShort) {
  SearchOptions options;
  options.refinement.effort = 1e5;
  options.offload = true;
  const Search search(with_copies("10 s"), options);
  const SearchResult result = search.at(2 * search.unit());
  ASSERT_TRUE(result.best.has_value());
  EXPECT_TRUE(keeps_all(*result.best));
}

TEST(Search, NeedsTheSecondsOfCopiesToOffload) {
  SearchOptions options;
  options.offload = true;
  EXPECT_THROW((void)Search(scenario_of("8"), options), InputError);
}

// Copies and recomputation of any length: no program that has some takes less than the bound.
TEST(LowerBound, HoldsForProgramsThatOffloadAndRecompute) {
  testing::Random random(17);
  int below_plain = 0;
  for (int round = 0; round < 200; ++round) {
    const Shape shape{random.integer(1, 5), random.integer(1, 3), random.integer(1, 12), 1};
    Problem problem = testing::random_problem(
        random, shape, Placement::looped(shape.devices, shape.chunks), random.coin());
    for (StageCost& cost : problem.stages) {
      cost.weight_stash = std::min(cost.weight_stash, cost.activation);
      cost.checkpoint = random.real(0, 0.5) * cost.activation;
      cost.copy_out = random.real(0.01, 1) * cost.forward;
      cost.copy_in = random.real(0.01, 1) * cost.forward;
    }
    problem.copy_alone_factor = random.real(0.5, 1);
    const int recomputed = random.integer(0, shape.chunks);
    problem.recompute_chunks = recomputed;
    const Schedule& schedule = *find_schedule(shape.chunks == 1 ? "1f1b" : "interleaved-1f1b");
    if (schedule.refusal(problem)) continue;
    const Program plain = schedule.plan(problem);
    const Program again = recomputed > 0 ? with_recompute(plain, recomputed) : plain;
    const Program program = with_offload(again, problem, shape.chunks);
    const Evaluation result = evaluate(program, problem);
    const Bytes limit = result.peak_activation();
    if (!(limit > Bytes(0))) continue;
    SCOPED_TRACE(fmt::format("round {}", round));
    EXPECT_LE(lower_bound(problem, limit, {recomputed, true}).value(),
              result.cost.value() * (1 + 1e-9));
    problem.objective = Objective::kMakespan;
    EXPECT_LE(lower_bound(problem, limit, {recomputed, true}).value(),
              result.makespan.value() * (1 + 1e-9));
    Bytes one;  // the plain bound speaks of limits that hold a microbatch
    for (int d = 0; d < shape.devices; ++d) {
      Bytes held;
      for (int c = 0; c < shape.chunks; ++c) {
        held += problem.stage(problem.placement.virtual_stage(d, c)).activation;
      }
      one = std::max(one, held);
    }
    if (limit < one) continue;
    below_plain += lower_bound(problem, limit).value() > result.cost.value() * (1 + 1e-9) ? 1 : 0;
  }
  EXPECT_GT(below_plain, 0) << "what copies and R bring below the bound of those that keep all";
}

}  // namespace
}  // namespace pipesim::search_test
