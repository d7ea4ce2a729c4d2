// The `offload` section, the schedules that offload, and what copies cost.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/prepare/advice.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "tests/case/cases.h"

namespace pipesim::offload_test {
namespace {

const std::string kGiven = R"(
schedule: 1f1b
parallel: {pipeline_model_parallel_size: 4}
batch: {num_microbatches: 12}
cost: {kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms,
       copy_out: 6 ms, copy_in: 6 ms, copy_solo_factor: 0.7}
memory: {kind: given, activation: 2 GiB, weight_stash: 1 GiB}
)";
const std::string kModelled = R"(
schedule: {name: po-f, offload: {plan: best}}
model: llama3-8b
cluster: dgx-h100
parallel: {pipeline_model_parallel_size: 8, virtual_pipeline_model_parallel_size: 4}
batch: {num_microbatches: 16, micro_batch_size: 1, seq_length: 8192}
recompute: pointwise
)";

Case prepared(const std::string& text, const std::vector<std::string>& overrides = {}) {
  std::vector<Override> parsed;
  for (const auto& each : overrides) parsed.push_back(parse_override(each, {"", 1, 1, ""}));
  return prepare_first(read_scenario(YamlSource("test", text, parsed)));
}

Result run(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return simulate(prepared(text, overrides));
}

std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    (void)run(text, overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(ScenarioOffload, LowersThePeakOfAnyScheduleAtNoCost) {
  for (const char* schedule : {"1f1b", "zb-h1", "interleaved-1f1b", "v-half"}) {
    const std::string name = std::string("schedule=") + schedule;
    const Report kept = run(kGiven, {name}).report;
    const Report offloaded = run(kGiven, {name, "offload=true"}).report;
    EXPECT_NEAR(offloaded.iteration / kept.iteration, 1, 1e-12) << schedule;
    EXPECT_LT(offloaded.peak_activation, kept.peak_activation) << schedule;
    const Report shared = run(kGiven, {name, "offload.devices_per_link=4"}).report;
    EXPECT_GE(shared.peak_activation, offloaded.peak_activation) << schedule;
  }
}

TEST(ScenarioOffload, CopiesTheAskedShareOfEachActivation) {
  const std::vector<std::string> some{"offload.chunks=1",
                                      "offload.microbatches={from: 0, every: 4}"};
  const auto with = [&](const std::string& ratio) {
    std::vector<std::string> all = some;
    all.push_back("offload.ratio=" + ratio);
    return run(kGiven, all);
  };
  const Result whole = run(kGiven, some);
  const Result half = with("0.5");
  const Result none = with("0");
  EXPECT_DOUBLE_EQ(half.host->devices[0].value(), whole.host->devices[0].value() / 2);
  EXPECT_FALSE(none.host);
  EXPECT_DOUBLE_EQ(prepared(kGiven, {"offload.ratio=0.25"}).problem.stage(0).copy_out.value(),
                   0.006 / 4);
  EXPECT_EQ(prepared(kGiven, {"offload.ratio=0.25"}).label,
            "1f1b (offload, 25% of each activation)");
  // Copies of a share of all activations fit where copies of the whole do not.
  const std::vector<std::string> slow{"offload=true", "cost.copy_out=40 ms", "cost.copy_in=40 ms"};
  std::vector<std::string> share = slow;
  share[0] = "offload.ratio=0.5";
  EXPECT_LT(run(kGiven, share).report.peak_activation, run(kGiven, slow).report.peak_activation);
  EXPECT_NE(refusal(kGiven, {"offload.ratio=1.5"}).find("from 0 to 1"), std::string::npos);
}

TEST(ScenarioOffload, TakesBytesAndBandwidthFromModelAndCluster) {
  const Case made = prepared(kModelled);
  const Result offloaded = simulate(made);
  const Result kept = run(kModelled, {"schedule=gis-h"});
  EXPECT_LT(offloaded.report.peak_activation, kept.report.peak_activation);
  EXPECT_EQ(made.problem.devices_per_host_link, 2);
  const StageCost& stage = made.problem.stage(9);
  EXPECT_DOUBLE_EQ(stage.copy_out.value(), stage.activation.value() / 45e9);
  EXPECT_DOUBLE_EQ(made.problem.copy_alone_factor, 45.0 / 51);
  const Problem divided = prepared(kModelled, {"parallel.tensor_model_parallel_size=4"}).problem;
  EXPECT_EQ(divided.devices_per_host_link, 1) << "the GPUs of a switch hold parts of one stage";
  EXPECT_DOUBLE_EQ(divided.stage(9).copy_out.value(),
                   2 * divided.stage(9).activation.value() / 45e9)
      << "and copy at the same time";
  EXPECT_EQ(prepared(kModelled, {"optimizer.sync=post_validation"}).problem.copy_alone_factor, 1);
}

TEST(ScenarioOffload, NeedsTheSecondsOfCopies) {
  const std::string unknown =
      "cost={kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms}";
  EXPECT_NE(refusal(kGiven, {"schedule=po-h", unknown}).find("cost.copy_out and cost.copy_in"),
            std::string::npos);
  EXPECT_NE(refusal(kGiven, {"offload=true", unknown}).find("cost.copy_out and cost.copy_in"),
            std::string::npos);
  EXPECT_NE(refusal(kGiven, {"cost={kind: given, forward: 1 ms, backward_input: 1 ms, "
                             "backward_weight: 1 ms, copy_out: 1 ms}"})
                .find("needs both 'copy_out' and 'copy_in'"),
            std::string::npos);
  EXPECT_NE(refusal(kGiven, {"offload.chunk=1"}).find("chunks"), std::string::npos);
  EXPECT_NE(refusal(kGiven, {"offload.chunks=2"}).find("but 1f1b has 1 per device"),
            std::string::npos);
  EXPECT_NE(refusal(kGiven, {"schedule=po-h", "offload.chunks=1"}).find("offload_chunks"),
            std::string::npos);
  for (const char* list : {"[1 ms, 2 ms]", "[]"}) {
    EXPECT_NE(
        refusal(kGiven, {"cost.per=stage", std::string("cost.copy_in=") + list}).find("expected"),
        std::string::npos)
        << list;
  }
}

Scenario scenario_of(const std::string& text, const std::vector<std::string>& overrides) {
  std::vector<Override> parsed;
  for (const auto& each : overrides) parsed.push_back(parse_override(each, {"", 1, 1, ""}));
  return read_scenario(YamlSource("test", text, parsed));
}

// Microbatches that leave a device.
std::set<std::uint32_t> that_leave(const Result& simulation, std::uint32_t device) {
  std::set<std::uint32_t> units;
  for (const LinkCopies& link : simulation.program->copies()->links) {
    for (const Copy& copy : link.out) {
      if (copy.device == device) units.insert(copy.unit);
    }
  }
  return units;
}

TEST(ScenarioOffload, RefusesChunksThatADeviceHasNotAndOffloadBesideAScheduleOfItsOwn) {
  const auto refused = [](const std::string& schedule) {
    return refusal(kGiven, {"schedule={name: " + schedule + "}"});
  };
  EXPECT_NE(refused("po-f, offload_chunks: 7").find("expected a whole number from 0 to 2, not '7'"),
            std::string::npos);
  EXPECT_EQ(refused("po-f, offload_chunks: 4, virtual_pipeline_model_parallel_size: 4"), "");
  for (const char* word : {"true", "false", "auto"}) {
    EXPECT_NE(refused(std::string("po-f, offload: ") + word).find("did you mean 'offload_chunks'?"),
              std::string::npos)
        << word;
  }
  EXPECT_EQ(refused("po-f, offload: {prefetch: 2}"), "");
  EXPECT_EQ(refusal(kGiven, {"schedule=[1f1b, po-f]", "offload=true"}), "") << "of all schedules";
}

TEST(ScenarioOffload, HasThePlanOfItsPaperOrOurs) {
  const Report published = run(kGiven, {"schedule=po-f"}).report;
  const std::string named = "schedule={name: po-f, offload: {plan: published}}";
  EXPECT_EQ(run(kGiven, {named}).report.peak_activation, published.peak_activation);
  const Case best = prepared(kGiven, {"schedule=po-f", "offload.plan=best"});
  const Report ours = simulate(best).report;
  EXPECT_LE(ours.peak_activation, published.peak_activation);
  EXPECT_LE(ours.iteration, published.iteration);
  const Report kept = run(kGiven, {"schedule={name: gis, group_size: 1}"}).report;
  EXPECT_NEAR(ours.iteration / kept.iteration, 1, 1e-12);
  EXPECT_NE(refusal(kGiven, {"offload.plan=published"}).find("no paper says how 1f1b offloads"),
            std::string::npos);
  EXPECT_EQ(refusal(kGiven, {"offload.plan=best"}), "");
  EXPECT_NE(refusal(kGiven, {"offload.plan=beste"}).find("did you mean 'best'?"),
            std::string::npos);
}

TEST(ScenarioOffload, IsRefusedWhereTheRulesOfItsPaperHaveNoPlan) {
  const std::vector<std::string> odd{"schedule=po-h", "parallel.pipeline_model_parallel_size=5"};
  EXPECT_NE(refusal(kGiven, odd).find("in pairs"), std::string::npos);
  const std::vector<std::string> full{"schedule=po-h", "recompute=full"};
  EXPECT_NE(refusal(kGiven, full).find("recompute in full"), std::string::npos);
  for (std::vector<std::string> each : {odd, full}) {
    each.emplace_back("offload.plan=best");
    EXPECT_EQ(refusal(kGiven, each), "");
  }
  const std::vector<std::string> slow{"schedule=po-f", "parallel.pipeline_model_parallel_size=8",
                                      "batch.num_microbatches=64", "cost.copy_out=16 ms",
                                      "cost.copy_in=16 ms"};
  try {
    (void)run(kGiven, slow);
    FAIL() << "copies take longer than the passes";
  } catch (const InfeasibleError& error) {
    EXPECT_NE(std::string(error.what()).find("take 1.07 of the passes"), std::string::npos)
        << error.what();
  }
}

// Copies of 6 ms out and back take a tenth of compute.
TEST(ScenarioOffload, TakesItsShareOfCompute) {
  const auto with = [&](const std::string& share) {
    return run(kGiven, {"offload.microbatches={from: 0, to: 3}",
                        "cluster={node: {gpus: 4, link_bandwidth: 300 GB/s}, "
                        "network: {bandwidth: 400 Gbps}, gpu: {copy_share: " +
                            share + "}}"});
  };
  const Result none = with("0");
  const Result some = with("0.1");
  for (std::uint32_t d = 0; d < 3; ++d) {  // on the last device nothing waits long enough
    const double copies = static_cast<double>(that_leave(some, d).size());
    EXPECT_NEAR((some.report.devices[d].busy - none.report.devices[d].busy).value(),
                copies * 0.1 * 0.012, 1e-9);
  }
}

TEST(ScenarioOffload, TakesOnlyTheMicrobatchesAndChunksThatAreNamed) {
  const Result all = run(kGiven, {"offload=true"});
  EXPECT_GT(that_leave(all, 0).size(), 4U);
  EXPECT_EQ(that_leave(run(kGiven, {"offload.microbatches=[2, 5]"}), 0),
            (std::set<std::uint32_t>{2, 5}));
  for (const std::uint32_t unit :
       that_leave(run(kGiven, {"offload.microbatches={from: 1, every: 3}"}), 0)) {
    EXPECT_EQ(unit % 3, 1U);
  }
  const Result second = run(kGiven, {"schedule=gis-h", "offload.chunks=[1]"});
  size_t copies = 0;
  for (const LinkCopies& link : second.program->copies()->links) {
    for (const Copy& copy : link.out) EXPECT_EQ(copy.chunk, 1);
    copies += link.out.size();
  }
  EXPECT_GT(copies, 0U);
}

TEST(ScenarioOffload, PlansWithTheBandwidthOfOneDirectionWhereAsked) {
  const Case alone = prepared(kGiven, {"offload.bandwidth=alone"});
  EXPECT_DOUBLE_EQ(alone.problem.stage(0).copy_out.value(), 0.7 * 6e-3);
  EXPECT_EQ(alone.problem.copy_alone_factor, 1);
}

TEST(ScenarioOffload, StandsBesideAScheduleAndInItsName) {
  const Scenario scenario = scenario_of(
      kGiven, {"schedule=[1f1b, {name: 1f1b, offload: true}, {name: gis-h, offload: {chunks: 1}, "
               "recompute: full}]"});
  EXPECT_EQ(label_of(scenario.schedules[0]), "1f1b");
  EXPECT_EQ(label_of(scenario.schedules[1]), "1f1b (offload)");
  EXPECT_EQ(label_of(scenario.schedules[2]), "gis-h (recompute, offload 1 of 2)");
  const Report kept = simulate(case_of(scenario, scenario.schedules[0])).report;
  const Report offloaded = simulate(case_of(scenario, scenario.schedules[1])).report;
  EXPECT_LT(offloaded.peak_activation, kept.peak_activation);
}

TEST(ScenarioOffload, RefusesMicrobatchesThatAreNotThereOrAScheduleOfItsOwn) {
  EXPECT_NE(refusal(kGiven, {"offload.microbatches=[12]"}).find("there are 12, from 0"),
            std::string::npos);
  EXPECT_NE(refusal(kGiven, {"offload.microbatches=[1, 1]"}).find("twice"), std::string::npos);
  EXPECT_NE(refusal(kGiven, {"offload.microbatches={from: 3, to: 2}"}).find("expected"),
            std::string::npos);
  EXPECT_NE(
      refusal(kGiven, {"schedule=po-h", "offload.microbatches=[1]"}).find("gis with group_size 1"),
      std::string::npos);
  EXPECT_NE(refusal(kGiven, {"offload=auto", "batch.num_microbatches=1000000"})
                .find("say how many chunks"),
            std::string::npos);
  EXPECT_NE(refusal(kGiven, {"offload.chunks=[1]"}).find("but 1f1b has 1 per device"),
            std::string::npos);
}

// Without contention a plan costs no time, so that all chunks may go; of one whose copies are too
// long to come back the plan keeps what would be late.
TEST(ScenarioOffload, ChoosesTheMostChunksThatCostNoTime) {
  const Case free = prepared(kGiven, {"schedule=gis-h", "offload=auto"});
  EXPECT_EQ(free.problem.offload_chunks, 2);
  EXPECT_NE(free.offload_reason.find("2 of 2 chunks at no cost in time: copies take up to k = 0.4 "
                                     "of the passes"),
            std::string::npos)
      << free.offload_reason;
  // Where copies of four devices meet, they are late.
  const std::vector<std::string> contended{
      "schedule=gis-h",      "engine=simgrid",
      "perturb.runs=2",      "offload={chunks: auto, devices_per_link: 4, bandwidth: alone}",
      "cost.copy_out=24 ms", "cost.copy_in=24 ms"};
  const Scenario chosen = scenario_of(kGiven, contended);
  std::vector<std::string> forced = contended;
  forced[3] = "offload={devices_per_link: 4, bandwidth: alone}";
  const Scenario all = scenario_of(kGiven, forced);
  EXPECT_LE(simulate(case_of(chosen, chosen.schedules[0])).report.iteration,
            simulate(case_of(all, all.schedules[0])).report.iteration);
}

// No copies meet: one device per link, and directions that do not disturb each other.
TEST(ScenarioOffload, IsTheSameUnderBothEnginesWhereNoCopiesMeet) {
  for (const char* schedule : {"1f1b", "zb-h1", "v-half"}) {
    const std::vector<std::string> common{std::string("schedule=") + schedule, "offload=true",
                                          "cost.copy_solo_factor=1"};
    std::vector<std::string> shared = common;
    shared.emplace_back("engine=simgrid");
    const Result replayed = run(kGiven, common);
    const Result simulated = run(kGiven, shared);
    EXPECT_FALSE(simulated.timeline.shared_links);
    ASSERT_EQ(replayed.timeline.end.size(), simulated.timeline.end.size());
    for (size_t i = 0; i < replayed.timeline.end.size(); ++i) {
      EXPECT_NEAR(simulated.timeline.end[i], replayed.timeline.end[i],
                  1e-11 * replayed.timeline.end[i]);
    }
  }
}

TEST(ScenarioOffload, IsAnEnsembleWhereCopiesMeetAndPassesWaitForThoseThatAreLate) {
  const std::vector<std::string> common{"offload.devices_per_link=4", "cost.copy_out=9 ms",
                                        "cost.copy_in=9 ms", "perturb.runs=3"};
  std::vector<std::string> shared = common;
  shared.emplace_back("engine=simgrid");
  const Result simulated = run(kGiven, shared);
  EXPECT_TRUE(simulated.timeline.shared_links);
  ASSERT_TRUE(simulated.report.ensemble.has_value());
  EXPECT_EQ(simulated.report.ensemble->runs, 3);
  const TaskGraph& graph = *simulated.graph;
  for (TaskId task = 0; task < graph.size(); ++task) {
    for (const TaskId waited : graph.waits_for(task)) {
      EXPECT_LE(simulated.timeline.end[waited], simulated.timeline.start[task] * (1 + 1e-12))
          << graph.name(task) << " before " << graph.name(waited);
    }
  }
}

const std::string kNodes =
    "cluster={node: {gpus: 2, link_bandwidth: 300 GB/s}, network: {bandwidth: 400 Gbps}}";

// Bytes on the host by what leaves and comes back, added up by hand.
TEST(ScenarioOffload, CountsWhatTheFullestNodeKeepsOnItsHost) {
  const Result simulation = run(kGiven, {"offload=true", kNodes});
  ASSERT_TRUE(simulation.host.has_value());
  const TaskGraph& graph = *simulation.graph;
  std::vector<double> peaks(2, 0);
  for (const std::uint32_t node : {0U, 1U}) {
    std::vector<std::pair<double, double>> changes;
    for (TaskId task = 0; task < graph.size(); ++task) {
      const TaskClass& of = graph.task_class(task);
      if (of.device / 2 != node) continue;
      const double bytes = 2.0 * (1 << 30);
      if (of.kind == TaskKind::kCopyOut)
        changes.emplace_back(simulation.timeline.start[task], bytes);
      if (of.kind == TaskKind::kCopyIn) changes.emplace_back(simulation.timeline.end[task], -bytes);
    }
    std::ranges::sort(changes);
    double held = 0;
    for (const auto& change : changes) peaks[node] = std::max(peaks[node], held += change.second);
    EXPECT_EQ(held, 0) << "all come back";
  }
  EXPECT_GT(peaks[0], 0);
  EXPECT_DOUBLE_EQ(simulation.host->node->value(), std::max(peaks[0], peaks[1]));
  EXPECT_FALSE(simulation.host->capacity.has_value());
  EXPECT_TRUE(simulation.host->fits());
}

// The peak of activations, without offload where `choice` is nothing.
Bytes peak_of(const Scenario& scenario, const std::optional<ScheduleChoice>& choice) {
  ScheduleChoice tried = choice.value_or(scenario.schedules.front());
  if (!choice) tried.offload.reset();
  return simulate(case_of(scenario, tried)).report.peak_activation;
}

TEST(ScenarioOffload, NamesAPlanThatFitsAHostThatIsTooSmallAndChoosesIt) {
  const std::vector<std::string> common{"schedule=gis-h", "offload=true",
                                        "batch.num_microbatches=16", kNodes};
  const Result roomy = run(kGiven, common);
  std::vector<std::string> tight = common;
  int fewer = 0;
  for (const double share : {0.6, 0.7, 0.9, 0.999}) {
    SCOPED_TRACE(share);
    tight[1] = "offload=true";
    tight.resize(common.size());
    tight.push_back(fmt::format("cluster.host.memory={:.0f} B", share * roomy.host->node->value()));
    const Scenario scenario = scenario_of(kGiven, tight);
    const Answer refused = answer(prepare_first(scenario));
    EXPECT_FALSE(refused.result.host->fits());
    ASSERT_TRUE(refused.advice.offload.has_value());
    const HostPlan& plan = *refused.advice.offload;
    const Result nearest = simulate(plan.made);
    EXPECT_TRUE(nearest.host->fits());
    EXPECT_EQ(plan.node, *nearest.host->node);
    EXPECT_LT(nearest.report.peak_activation, peak_of(scenario, {}));
    if (!plan.made.choice.offload->microbatches.all()) ++fewer;
    tight[1] = "offload=auto";
    const Case chosen = prepared(kGiven, tight);
    EXPECT_EQ(simulate(chosen).report.peak_activation, nearest.report.peak_activation)
        << chosen.offload_reason;
  }
  EXPECT_GT(fewer, 0) << "microbatches that stay make room too";
  tight.back() = "cluster.host.memory=1 KiB";
  EXPECT_FALSE(run(kGiven, tight).host.has_value());
  tight[1] = "offload=true";
  EXPECT_FALSE(answer(prepared(kGiven, tight)).advice.offload.has_value());
}

// One chunk has no fewer.
TEST(ScenarioOffload, LeavesMicrobatchesOfASingleChunkWhereTheHostIsFull) {
  const Answer refused =
      answer(prepared(kGiven, {"offload=true", kNodes, "cluster.host.memory=9 GiB"}));
  ASSERT_TRUE(refused.advice.offload.has_value());
  const Case& nearest = refused.advice.offload->made;
  EXPECT_EQ(scope_text(*nearest.choice.offload), "microbatches: {count: 11}");
  EXPECT_EQ(nearest.label, "1f1b (offload, 11 microbatches)");
}

// po-h and po-f have no words for microbatches: gis does.
TEST(ScenarioOffload, SaysWhatOfAScheduleThatOffloadsByItselfFits) {
  const Result whole = run(kGiven, {"schedule=po-f", kNodes});
  const Answer refused = answer(prepared(
      kGiven, {"schedule=po-f", kNodes,
               fmt::format("cluster.host.memory={:.0f} B", 0.8 * whole.host->node->value())}));
  ASSERT_TRUE(refused.advice.offload.has_value());
  const ScheduleChoice& nearest = refused.advice.offload->made.choice;
  EXPECT_EQ(nearest.name, "gis");
  EXPECT_EQ(std::get<long>(nearest.options.at("group_size")), 1);
  EXPECT_TRUE(simulate(refused.advice.offload->made).host->fits());
}

TEST(ScenarioOffload, SpreadsACountOfMicrobatchesEvenly) {
  EXPECT_EQ(numbers_of({.count = 4}, 12), (std::vector<int>{0, 3, 6, 9}));
  EXPECT_EQ(numbers_of({.from = 1, .every = 2, .count = 3}, 12), (std::vector<int>{1, 5, 9}));
  for (int count = 1; count <= 12; ++count) {
    EXPECT_EQ(numbers_of({.count = count}, 12).size(), static_cast<size_t>(count));
  }
  EXPECT_EQ(numbers_of({.listed = {7, 2, 5}}, 12), (std::vector<int>{7, 2, 5}));
  EXPECT_NE(refusal(kGiven, {"offload.microbatches={count: 13}"}).find("13 microbatches"),
            std::string::npos);
  EXPECT_NE(refusal(kGiven, {"offload.microbatches={from: 10, count: 3}"}).find("of 2"),
            std::string::npos);
}

TEST(ScenarioOffload, KnowsTheHostsMemoryOfAClusterByNameAndThePartsOfItsGpus) {
  const Result one = run(kModelled);
  EXPECT_EQ(one.host->capacity, Bytes(2e12));
  // Its GPUs hold all devices, in which not all peak at once.
  Bytes sum;
  for (const Bytes& device : one.host->devices) sum += device;
  EXPECT_LE(*one.host->node, sum);
  EXPECT_GT(*one.host->node, std::ranges::max(one.host->devices));
  // A node for each device, eight GPUs that hold alike.
  const Result divided = run(kModelled, {"parallel.tensor_model_parallel_size=8"});
  EXPECT_DOUBLE_EQ(divided.host->node->value(),
                   8 * std::ranges::max(divided.host->devices).value());
  const Result small = run(kModelled, {"cluster={name: dgx-h100, host: {memory: 1 GB}}"});
  EXPECT_FALSE(small.host->fits());
  EXPECT_NE(refusal(kModelled, {"cluster={name: dgx-h100, host: {duplex: 60 GB/s}}"})
                .find("must not be more than alone"),
            std::string::npos);
}

}  // namespace
}  // namespace pipesim::offload_test
