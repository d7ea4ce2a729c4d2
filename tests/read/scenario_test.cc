#include "sim/read/scenario.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/case/program.h"
#include "sim/case/ranks.h"
#include "sim/case/simulate.h"
#include "sim/execution/evaluate.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/prepare.h"
#include "tests/case/cases.h"

namespace pipesim::scenario_test {
namespace {

const std::string kBase =
    "schedule: 1f1b\n"
    "parallel: {pipeline_model_parallel_size: 4}\n"
    "batch: {num_microbatches: 8, micro_batch_size: 2}\n"
    "cost: {kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms, transfer: 1 "
    "ms}\n";

Scenario read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  std::vector<Override> parsed;
  for (const auto& each : overrides)
    parsed.push_back(parse_override(each, {"command line", 1, 1, ""}));
  return read_scenario(YamlSource("s.yaml", text, parsed));
}

std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    const Scenario scenario = read(text, overrides);
    for (const auto& choice : scenario.schedules) {
      (void)make_program(choice, case_of(scenario, choice).problem);
    }
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

Problem problem_of(const Scenario& scenario) { return prepare_first(scenario).problem; }

TEST(Scenario, QuestionsABatchOfTokensThatIsMeantInSamples) {
  const std::string many = refusal(kBase, {"batch={micro_batch_size: 1, seq_length: 4k, "
                                           "global_batch_size: 4000000}"});
  EXPECT_NE(many.find("batch.global_batch_size: 4000000 samples an iteration, 1.64e+10 tokens, are "
                      "more than any training run takes; if 4000000 are tokens, they are 976 "
                      "samples of 4096"),
            std::string::npos)
      << many;
  EXPECT_NE(refusal(kBase, {"batch={micro_batch_size: 1, global_batch_size: 2M}"})
                .find("2000000 samples an iteration are more than any training run takes"),
            std::string::npos);
  EXPECT_EQ(read(kBase, {"batch={micro_batch_size: 1, seq_length: 8k, global_batch_size: 2k}"})
                .batch.microbatches,
            2000);
}

TEST(Scenario, SharesACostPerDeviceAmongItsChunks) {
  const Problem problem = problem_of(read(kBase, {"schedule=interleaved-1f1b"}));
  ASSERT_EQ(problem.stages.size(), 8U);
  EXPECT_DOUBLE_EQ(problem.stage(3).forward.value(), 0.005);
  EXPECT_DOUBLE_EQ(problem.stage(3).transfer.value(), 0.001);
}

TEST(Scenario, TakesACostPerStageAsItIs) {
  const Problem problem = problem_of(read(kBase, {"schedule=interleaved-1f1b", "cost.per=stage"}));
  EXPECT_DOUBLE_EQ(problem.stage(3).forward.value(), 0.010);
}

TEST(Scenario, TakesListsPerDeviceAndPerStage) {
  const Problem devices = problem_of(read(kBase, {"cost.forward=[1 ms, 2 ms, 3 ms, 4 ms]"}));
  EXPECT_DOUBLE_EQ(devices.stage(2).forward.value(), 0.003);
  const Problem stages =
      problem_of(read(kBase, {"schedule={name: interleaved-1f1b}", "cost.per=stage",
                              "cost.forward=[1 ms, 2 ms, 3 ms, 4 ms, 5 ms, 6 ms, 7 ms, 8 ms]"}));
  EXPECT_DOUBLE_EQ(stages.stage(6).forward.value(), 0.007);
}

// The two copies of DualPipe's model share its stages.
TEST(Scenario, TakesOneCostPerStageOfTheModelWithTwoDirections) {
  const Problem problem =
      problem_of(read(kBase, {"schedule={name: dualpipe, overlap: false}", "cost.per=stage",
                              "cost.forward=[1 ms, 2 ms, 3 ms, 4 ms]"}));
  EXPECT_DOUBLE_EQ(problem.stage(2).forward.value(), 0.003);
  EXPECT_DOUBLE_EQ(problem.stage(6).forward.value(), 0.003);
}

TEST(Scenario, DerivesMicrobatchesFromTheGlobalBatch) {
  const Scenario scenario = read(kBase, {"batch={global_batch_size: 48, micro_batch_size: 2}",
                                         "parallel.data_parallel_size=3"});
  EXPECT_EQ(scenario.batch.microbatches, 8);
}

// kBase has 4 pipeline devices.
TEST(Scenario, DerivesDataParallelRanksFromTheWorldSize) {
  const std::vector<std::string> sizes{"parallel.tensor_model_parallel_size=2",
                                       "parallel.world_size=48"};
  EXPECT_EQ(read(kBase, sizes).parallel.data, 6);
  EXPECT_EQ(read(kBase, {sizes[0], sizes[1], "parallel.data_parallel_size=6"}).parallel.data, 6);
  EXPECT_EQ(read(kBase, {"parallel.world_size=null"}).parallel.data, 1);
  EXPECT_EQ(read(kBase, {"pipelines=2", "parallel.world_size=16"}).parallel.data, 4);
}

TEST(Scenario, AsksTheClusterWhatAMessageCosts) {
  const Scenario scenario =
      read(kBase +
               "cluster: {node: {gpus: 2, link_bandwidth: 200 GB/s, link_latency: 1 us}, "
               "network: {bandwidth: 80 Gbps, latency: 5 us}}\n",
           {"cost={kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms, "
            "message: 20 MB}"});
  const Problem problem = problem_of(scenario);
  EXPECT_DOUBLE_EQ(problem.stage(0).transfer.value(), 1e-6 + 20e6 / 200e9);  // within node 0
  EXPECT_DOUBLE_EQ(problem.stage(1).transfer.value(), 5e-6 + 20e6 / 10e9);   // node 0 to node 1
}

TEST(Scenario, RanksReplicasOfOnePositionTogether) {
  const Scenario scenario = read(kBase, {"pipelines=3"});
  EXPECT_EQ(rank_of(scenario, 0, 0), 0);
  EXPECT_EQ(rank_of(scenario, 2, 0), 2);
  EXPECT_EQ(rank_of(scenario, 0, 1), 3);
  EXPECT_EQ(scenario.parallel.data, 3);
}

TEST(Scenario, LimitsMemoryInMultiplesAndInBytes) {
  Scenario scenario =
      read(kBase + "memory: {kind: given, activation: 2 GiB, weight_stash: 1 GiB}\n");
  scenario.schedules.front().memory_limit = 1.5;
  EXPECT_DOUBLE_EQ(problem_of(scenario).activation_limit->value(), 1.5 * 4 * 2 * 1073741824.0);
  scenario.schedules.front().memory_limit = Bytes(5e9);
  EXPECT_DOUBLE_EQ(problem_of(scenario).activation_limit->value(), 5e9);
}

// Without a memory section a limit counts chunks: of 1 it is 1F1B's memory, the default of best and
// v-search, whatever their number of chunks; of 0.5 they need longer.
TEST(Scenario, LimitsMemoryInMultiplesWithoutBytes) {
  for (const char* name : {"zb-1p", "best", "v-search"}) {
    const auto cost_at = [name](std::optional<double> limit) {
      Scenario scenario = read(kBase, {fmt::format("schedule={}", name)});
      ScheduleChoice& choice = scenario.schedules.front();
      if (choice.name == "zb-1p" && limit) choice.name = "zb";
      if (limit) choice.memory_limit = *limit;
      const Problem problem = case_of(scenario, choice).problem;
      return evaluate(*make_program(choice, problem), problem).cost;
    };
    EXPECT_EQ(cost_at(1), cost_at(std::nullopt)) << name;
    EXPECT_GT(cost_at(0.5), cost_at(1)) << name;
  }
}

TEST(Scenario, ChoosesThePlacementOfBest) {
  const auto placed = [](const std::string& options) {
    const Scenario scenario = read(kBase, {fmt::format("schedule={{name: best{}}}", options)});
    return placement_of(scenario.schedules.front(), 4);
  };
  EXPECT_EQ(placed(""), Placement::vee(4));
  EXPECT_EQ(placed(", placement: linear"), Placement::looped(4, 1));
  EXPECT_EQ(placed(", placement: looped, virtual_pipeline_model_parallel_size: 3"),
            Placement::looped(4, 3));
  EXPECT_THROW((void)placed(", placement: wave"), InputError);
  EXPECT_THROW((void)read(kBase, {"schedule={name: zb, placement: vee}"}), InputError);
}

TEST(Scenario, DividesAMicrobatchIntoItsSplits) {
  const std::string text =
      kBase +
      "memory: {kind: given, activation: 4 GiB, weight_stash: 2 GiB, checkpoint: 1 GiB}\n"
      "cluster: {network: {bandwidth: 1 GB/s, latency: 1 ms}}\n";
  const Problem constant =
      problem_of(read(text, {"schedule={name: seq-1f1b, splits: 2}", "cost.recompute=6 ms"}));
  EXPECT_EQ(constant.shape, (Shape{4, 1, 8, 2}));
  EXPECT_DOUBLE_EQ(constant.stage(1).forward.value(), 0.005);
  EXPECT_DOUBLE_EQ(constant.stage(1).backward_weight.value(), 0.004);
  EXPECT_DOUBLE_EQ(constant.stage(1).recompute->value(), 0.003);
  EXPECT_DOUBLE_EQ(constant.stage(1).transfer.value(), 0.001) << "the time of one message";
  EXPECT_DOUBLE_EQ(constant.stage(1).weight_stash.value(), 1073741824.0);
  EXPECT_DOUBLE_EQ(constant.stage(1).checkpoint.value(), 0.5 * 1073741824.0);
  EXPECT_DOUBLE_EQ(constant.device_activation().value(), 4 * 1073741824.0) << "of a microbatch";
  EXPECT_EQ(problem_of(read(text, {"schedule=seq-1f1b"})).shape.splits, 4);
  const Scenario sized = read(
      text, {"schedule={name: seq-1f1b, splits: 2}",
             "cost={kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms, "
             "message: 4 MB}"});
  EXPECT_DOUBLE_EQ(problem_of(sized).stage(0).transfer.value(), 0.003);
  // 8 F and BW of 30 ms each, the bubble of splits, and messages of 3 ms there and back.
  const Report report = simulate(prepare_first(sized)).report;
  EXPECT_NEAR(report.iteration.value(),
              evaluate(*make_program(sized.schedules.front(), problem_of(sized)), problem_of(sized))
                  .makespan.value(),
              1e-12);
}

TEST(Scenario, RecomputesWhatTheScenarioSaysUnlessTheScheduleSaysOtherwise) {
  const Scenario scenario =
      read(kBase + "memory: {kind: given, activation: 4 GiB, weight_stash: 1 GiB}\n",
           {"schedule=[interleaved-1f1b, {name: 1f1b, recompute: none}, "
            "{name: interleaved-1f1b, recompute: {granularity: full, chunks: 1}}]",
            "recompute.granularity=full", "cost.recompute=9 ms", "memory.checkpoint=1 GiB"});
  const auto recomputing = [&scenario](size_t i) {
    const Problem problem = case_of(scenario, scenario.schedules[i]).problem;
    const auto program = make_program(scenario.schedules[i], problem);
    int stages = 0;
    for (int vs = 0; vs < program->placement().virtual_stages(); ++vs) {
      stages += program->recomputes(vs) ? 1 : 0;
    }
    return stages;
  };
  EXPECT_EQ(recomputing(0), 8);
  EXPECT_EQ(recomputing(1), 0);
  EXPECT_EQ(recomputing(2), 4);
  const Problem problem = problem_of(scenario);
  EXPECT_EQ(problem.recompute_chunks, 2);
  EXPECT_DOUBLE_EQ(problem.stage(0).recompute->value(), 0.0045);
  EXPECT_DOUBLE_EQ(problem.stage(0).checkpoint.value(), 0.5 * 1073741824.0);
}

TEST(Scenario, ComparesAScheduleWithItsRecomputedSelf) {
  const Scenario scenario =
      read(kBase + "memory: {kind: given, activation: 4 GiB, weight_stash: 0}\n",
           {"schedule=[1f1b, {name: 1f1b, recompute: full}]", "cost.transfer=0"});
  const Report plain = simulate(case_of(scenario, scenario.schedules[0])).report;
  const Report recomputed = simulate(case_of(scenario, scenario.schedules[1])).report;
  EXPECT_DOUBLE_EQ(recomputed.devices[3].busy.value(), plain.devices[3].busy.value() + 8 * 0.010);
  EXPECT_GT(recomputed.iteration, plain.iteration);
  EXPECT_DOUBLE_EQ(plain.peak_activation.value(), 4 * 4 * 1073741824.0);
  EXPECT_DOUBLE_EQ(recomputed.peak_activation.value(), 4 * 1073741824.0);
}

TEST(Scenario, TellsSchedulesOfOneNameApart) {
  const Scenario scenario =
      read(kBase, {"schedule=[1f1b, {name: zb, memory_limit: 1}, {name: zb, memory_limit: 1.5}, "
                   "{name: gis, group_size: 2}, {name: gis, recompute: full}, "
                   "{name: zb, memory_limit: 1.5}]"});
  std::vector<std::string> labels;
  const std::vector<std::string> apart = tell_apart(scenario.schedules);
  for (size_t i = 0; i < apart.size(); ++i) {
    labels.push_back(label_of(scenario.schedules[i], apart[i]));
  }
  EXPECT_EQ(labels,
            (std::vector<std::string>{"1f1b", "zb (memory_limit 1)", "zb (memory_limit 1.5)", "gis",
                                      "gis (recompute)", "zb (memory_limit 1.5, number 2)"}));
}

TEST(Scenario, LabelsSayWhatIsRecomputed) {
  const auto label = [](RecomputeGranularity granularity, const RecomputedLayers& layers) {
    ScheduleChoice choice;
    choice.name = "1f1b";
    choice.recompute = Recompute{.granularity = granularity, .layers = layers};
    return label_of(choice);
  };
  EXPECT_EQ(label(RecomputeModule::kMlpActivation, {.first = 2}),
            "1f1b (mlp_act recompute, 2 layers a stage)");
  EXPECT_EQ(label(RecomputeGranularity::kFull, {.decoder = false}),
            "1f1b (recompute of the encoder)");
}

TEST(Scenario, IsOneStageWhereItSaysNothingOfAPipeline) {
  EXPECT_EQ(read(kBase, {"parallel={tensor_model_parallel_size: 2}"}).parallel.pipeline, 1);
}

struct Bad {
  std::vector<std::string> overrides;
  const char* expected;
};

class RefusedScenario : public ::testing::TestWithParam<Bad> {};

TEST_P(RefusedScenario, SaysWhy) {
  const std::string message = refusal(kBase, GetParam().overrides);
  EXPECT_NE(message.find(GetParam().expected), std::string::npos)
      << "got: " << message << "\nexpected: " << GetParam().expected;
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios, RefusedScenario,
    ::testing::Values(
        Bad{{"schedule=1f1"}, "did you mean '1f1b'?"},
        Bad{{"schedule={file:my.yaml}"}, "a space is missing behind ':'"},
        Bad{{"schedule={fil: my.yaml}"}, "schedule.fil: unknown key; did you mean 'file'?"},
        Bad{{"schedule={csvs: my.csv}"}, "schedule.csvs: unknown key; did you mean 'csv'?"},
        Bad{{"schedule={}"}, "the name of a schedule, or 'file' or 'csv' instead"},
        Bad{{"batch.factors={distribution: uniform, min: 1, max: 3, mean: 2}"},
            "batch.factors.mean: is of distribution lognormal"},
        Bad{{"schedule=[]"}, "expected at least one schedule"},
        Bad{{"schedule={name: 1f1b, group: 3}"}, "schedule.group: unknown key"},
        Bad{{"schedule={name: interleaved-1f1b, microbatch_group_size_per_vp_stage: 0}"},
            "from 1 to"},
        Bad{{"schedule={csv: missing.csv}"}, "cannot read 'missing.csv'"},
        Bad{{"schedule=interleaved-1f1b", "batch.num_microbatches=3"}, "num_microbatches 4"},
        Bad{{"schedule={name: 1f1b, virtual_pipeline_model_parallel_size: 2}"},
            "virtual_pipeline_model_parallel_size 1"},
        Bad{{"parallel.pipeline_model_parallel_size=0"}, "whole number from 1"},
        Bad{{"parallel.pipline=2"}, "unknown key"},
        Bad{{"parallel={tensor_model_parallel_sise: 2}"},
            "did you mean 'tensor_model_parallel_size'?"},
        Bad{{"batch={micro_batch_size: 2}"}, "'num_microbatches' is missing"},
        Bad{{"batch.global_batch_size=7"}, "expected a multiple of"},
        Bad{{"batch.global_batch_size=32"}, "makes 16 microbatches, but num_microbatches is 8"},
        Bad{{"cost.kind=simulated"}, "'simulated' is not known"},
        Bad{{"cost.kind=measured"}, "needs a 'model'"}, Bad{{"cost.forward=18.5"}, "has no unit"},
        Bad{{"cost.forward=0 ms"}, "must be greater than 0"},
        Bad{{"cost.forward=[1 ms, 2 ms]"}, "one per device (4), not 2"},
        Bad{{"cost.per=stage", "cost.forward=[1 ms, 2 ms]"}, "one per stage (4 for 1f1b), not 2"},
        Bad{{"cost.message=1 MB"}, "stands beside 'transfer'"},
        Bad{{"memory={kind: given, activation: 1 GiB, weight_stash: 2 GiB}"}, "must not be larger"},
        Bad{{"memory={kind: given, activation: 1 GiB}"}, "'weight_stash' is missing"},
        Bad{{"memory={kind: given, activation: 1 GiB, weight_stash: 0, checkpoint: 2 GiB}"},
            "must not be larger"},
        Bad{{"schedule={name: seq-1f1b, splits: 0}"}, "from 1 to"},
        Bad{{"schedule={name: seq-1f1b, splits: [2, 0]}"}, "from 1 to"},
        Bad{{"schedule={name: seq-1f1b, splits: []}"}, "the length of at least one slice"},
        Bad{{"schedule={name: terapipe, splits: optmal}"}, "did you mean 'optimal'?"},
        Bad{{"schedule={name: terapipe, splits: {optimal: 1000}}"}, "from 1 to 128"},
        Bad{{"schedule={name: terapipe, splits: {optmal: 8}}"}, "did you mean 'optimal'?"},
        Bad{{"schedule={name: seq-1f1b, splits: 1000}", "batch.num_microbatches=1000000"},
            "at most"},
        Bad{{"recompute=selective"}, "needs a model"},
        Bad{{"recompute=some"}, "'some' is not known"},
        Bad{{"recompute=[mlp, moe_acts]"}, "'moe_acts' is not known; did you mean 'moe_act'?"},
        Bad{{"recompute=[mlp]"}, "needs a model"},
        Bad{{"recompute={chunks: 1}"}, "'granularity' is missing"},
        Bad{{"recompute={granularity: none, chunks: 1}"}, "is of granularity 'full'"},
        Bad{{"recompute={granularity: full, chunks: 2}"}, "but 1f1b has 1 per device"},
        Bad{{"schedule={name: 1f1b, recompute: {granularity: full, chunk: 1}}"},
            "did you mean 'chunks'?"},
        Bad{{"engine=simgird"}, "did you mean 'simgrid'?"},
        Bad{{"engine={name: replay, gpu: host}"}, "option of the simgrid engine"},
        Bad{{"optimizer={sync: all_reduc}"}, "did you mean 'all_reduce'?"},
        Bad{{"framework={transfers: overlaped}"}, "did you mean 'overlapped'?"},
        Bad{{"framework={}"}, "transfers"},
        Bad{{"schedule=dualpipe"}, "cost.overlapped must say how long they take"},
        Bad{{"schedule=dualpipe", "cost.overlapped=20 ms",
             "parallel.pipeline_model_parallel_size=3"},
            "pipeline_model_parallel_size 2"},
        Bad{{"cost.optimizer=1 ms", "optimizer={sync: none}"}, "costs without an optimizer"},
        Bad{{"perturb={stragglers: [{rank: 4, factor: 2}]}"}, "from 0 to 3"},
        Bad{{"perturb={jitter: 2}"}, "a number from 0 to 1"},
        Bad{{"perturb={jitter: 0.1, runs: 10000}", "batch.num_microbatches=1000000"},
            "000000 passes in 10000 runs of 1f1b; at most 17179869184 can be simulated"},
        Bad{{"batch.factors={distribution: lognormal, mean: 1, sigma: 0.1, runs: 10000}",
             "batch.num_microbatches=1000000"},
            "000000 passes in 10000 runs of 1f1b; at most 17179869184 can be simulated"},
        Bad{{"pipelines=4", "parallel.data_parallel_size=2"}, "data_parallel_size is 2"},
        Bad{{"pipelines=4", "parallel.world_size=4"}, "data_parallel_size is 1 by world_size"},
        Bad{{"parallel.world_size=6"}, "a multiple of tensor x context x pipeline ranks = 4"},
        Bad{{"parallel.world_size=8", "parallel.data_parallel_size=4"},
            "makes 2 data-parallel ranks of 4 GPUs each, but data_parallel_size is 4"},
        Bad{{"parallel.world_size=0"}, "whole number from 1"},
        Bad{{"batch.num_microbatches=1000000", "parallel.pipeline_model_parallel_size=65536"},
            "at most"},
        Bad{{"cluster={network: {latency: 1 us}}"}, "'bandwidth' is missing"},
        Bad{{"cluster={node: {gpus: 8}, network: {bandwidth: 1 GB/s}}"},
            "'link_bandwidth' is missing"},
        Bad{{"cost.collective=1 ms", "optimizer={sync: post_validation}"},
            "waits for no collective"},
        Bad{{"perturb={stragglers: [{rank: 1, factor: 2}, {rank: 1, factor: 2}]}"},
            "slows down already"},
        Bad{{"perturb={links: [{from: 1, to: 1, factor: 2}]}"}, "no message to itself"},
        Bad{{"foo=1"}, "unknown key"}));

TEST(Scenario, RefusesKeysRepeatedWhereNoRanksDivideHeads) {
  const auto said = [](const std::string& keys) {
    return refusal(kBase, {"parallel={pipeline_model_parallel_size: 4, context_parallel_size: 2, " +
                           keys + "}"});
  };
  const std::string repeat = "kv_head_repeat: true";
  const std::string refused = "kv_head_repeat: is of cp_comm_type a2a and a2a+p2p";
  EXPECT_NE(said(repeat).find(refused + ", not of all_gather"), std::string::npos) << said(repeat);
  EXPECT_NE(said("cp_comm_type: p2p, " + repeat).find(refused + ", not of p2p"), std::string::npos);
  EXPECT_NE(said("cp_comm_type: [p2p, all_gather], " + repeat).find(refused), std::string::npos);
  for (const std::string taken : {"cp_comm_type: a2a, ", "cp_comm_type: [p2p, a2a], "}) {
    EXPECT_EQ(said(taken + repeat).find("kv_head_repeat"), std::string::npos);
  }
  EXPECT_EQ(said("cp_comm_type: p2p, kv_head_repeat: false").find("kv_head_repeat"),
            std::string::npos);
}

TEST(Scenario, RefusesAnEmptyFile) {
  EXPECT_NE(refusal("").find("this file is empty"), std::string::npos);
}

TEST(Simulate, GivesThroughputOfAllReplicas) {
  const Scenario scenario =
      read(kBase, {"parallel.data_parallel_size=2", "parallel.tensor_model_parallel_size=2"});
  const Result simulation = simulate(prepare_first(scenario));
  const double rate = 8 * 2 * 2 / simulation.report.iteration.value();
  EXPECT_DOUBLE_EQ(simulation.throughput->samples_per_second, rate);
  EXPECT_DOUBLE_EQ(simulation.throughput->samples_per_second_per_gpu, rate / 16);
}

TEST(Simulate, MakesAnEnsembleOfJitterThatItsSeedDecides) {
  const std::vector<std::string> jitter{"perturb={jitter: 0.05, runs: 8, seed: 7}"};
  const Scenario scenario = read(kBase, jitter);
  const Report first = simulate(prepare_first(scenario)).report;
  const Report second = simulate(prepare_first(scenario)).report;
  ASSERT_TRUE(first.ensemble.has_value());
  EXPECT_EQ(first.ensemble->runs, 8);
  EXPECT_EQ(first.iteration, second.iteration);
  EXPECT_GT(first.ensemble->stddev, Seconds(0));
  EXPECT_LT(first.ensemble->p05, first.ensemble->mean);
  const Scenario other = read(kBase, {"perturb={jitter: 0.05, runs: 8, seed: 8}"});
  EXPECT_NE(simulate(prepare_first(other)).report.iteration, first.iteration);
}

TEST(Simulate, SlowsDownAStragglerAndADegradedLink) {
  const auto iteration = [](const std::vector<std::string>& overrides) {
    const Scenario scenario = read(kBase, overrides);
    return simulate(prepare_first(scenario)).report;
  };
  const Report nominal = iteration({});
  const Report slow = iteration({"perturb={stragglers: [{rank: 2, factor: 1.5}]}"});
  EXPECT_DOUBLE_EQ(slow.devices[2].busy.value(), 1.5 * nominal.devices[2].busy.value());
  EXPECT_DOUBLE_EQ(slow.devices[1].busy.value(), nominal.devices[1].busy.value());
  EXPECT_GT(slow.iteration, nominal.iteration);
  EXPECT_GT(iteration({"perturb={links: [{from: 1, to: 2, factor: 10}]}"}).iteration,
            nominal.iteration);
}

// Replicas reduce their gradients: one that is slow holds up its position in the others.
TEST(Simulate, LetsReplicasWaitForEachOtherUnderPostValidation) {
  const std::vector<std::string> slow{"pipelines=2",
                                      "perturb={stragglers: [{rank: 1, factor: 2}]}"};
  auto post = slow;
  post.emplace_back("optimizer={sync: post_validation}");
  const Scenario barrier = read(kBase, slow);
  const Scenario overlapping = read(kBase, post);
  const Report all = simulate(prepare_first(barrier)).report;
  const Report ramps = simulate(prepare_first(overlapping)).report;
  EXPECT_LE(ramps.iteration, all.iteration);
  EXPECT_GE(ramps.iteration, ramps.devices[4].busy);
  for (const DeviceReport& device : ramps.devices) {
    EXPECT_NEAR((device.busy + device.idle).value(), ramps.iteration.value(), 1e-9);
  }
}

TEST(Simulate, HoldsDevicesInBlockingTransfersWhereTheirFrameworkDoes) {
  const auto iteration = [](const std::vector<std::string>& overrides) {
    const Scenario scenario = read(kBase, overrides);
    return simulate(prepare_first(scenario)).report.iteration.value();
  };
  const std::string blocking = "framework={transfers: blocking}";
  for (const char* schedule : {"schedule=1f1b", "schedule=gpipe", "schedule=interleaved-1f1b",
                               "schedule={name: dualpipe, overlap: false}",
                               "schedule={name: dualpipev, overlap: false}"}) {
    EXPECT_GT(iteration({schedule, blocking}), iteration({schedule})) << schedule;
    EXPECT_EQ(iteration({schedule, "framework={transfers: overlapped}"}), iteration({schedule}));
  }
  EXPECT_EQ(iteration({"schedule=zb-h1", blocking}), iteration({"schedule=zb-h1"}))
      << "Zero Bubble's runtime sends asynchronously";
  // One graph serves both engines.
  EXPECT_NEAR(iteration({blocking, "engine=simgrid"}), iteration({blocking}), 1e-11);
}

TEST(Simulate, SharesNothingWithoutACluster) {
  const auto iteration = [](const std::string& engine) {
    const Scenario scenario = read(kBase, {"cost.transfer=30 ms", "engine=" + engine});
    return simulate(prepare_first(scenario)).report;
  };
  const Report shared = iteration("simgrid");
  EXPECT_FALSE(shared.ensemble.has_value());
  EXPECT_NEAR(shared.iteration.value(), iteration("replay").iteration.value(), 1e-11);
}

TEST(MakeProgram, WordsALimitAsItIsGivenWhereNoBytesAreKnown) {
  const Scenario scenario = read(kBase, {"schedule={name: zb, memory_limit: 0.1}"});
  const ScheduleChoice& choice = scenario.schedules.front();
  try {
    (void)make_program(choice, case_of(scenario, choice).problem);
    FAIL() << "fits";
  } catch (const InfeasibleError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("zb needs memory_limit 0."), std::string::npos) << text;
    EXPECT_NE(text.find("; it is 0.1"), std::string::npos) << text;
    EXPECT_EQ(text.find(" B"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace pipesim::scenario_test
