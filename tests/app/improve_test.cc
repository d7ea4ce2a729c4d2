// pipesim improve and prove.
#include <cstdlib>
#include <gtest/gtest.h>
#include <regex>

#include "tests/app/command.h"

namespace pipesim::improve_test {
namespace {

using testing::Outcome;

class Improve : public testing::Command {
 protected:
  [[nodiscard]] bool solver() const { return shell("command -v cbc").code == 0; }
  const std::string small_ = quickstart_ +
                             " zb-h1 parallel.pipeline_model_parallel_size=3 "
                             "batch.num_microbatches=4 --memory-limit 0.7";
};

bool has(const Outcome& outcome, const std::string& what) {
  return outcome.output.find(what) != std::string::npos;
}

TEST_F(Improve, WritesAnOrderThatRunsAsItSays) {
  const Outcome improved = run("improve " + quickstart_ + " 1f1b --effort 1e6 -o better.csv");
  ASSERT_EQ(improved.code, 0) << improved.output;
  EXPECT_TRUE(has(improved, "1f1b: iteration 1.457 s, peak 27.63 GiB")) << improved.output;
  EXPECT_TRUE(has(improved, "gained: ")) << improved.output;
  EXPECT_TRUE(has(improved, "held by memory: device 0")) << improved.output;
  const size_t at = improved.output.find("improved: iteration ") + 20;
  const std::string seconds = improved.output.substr(at, improved.output.find(',', at) - at);
  const Outcome runs = run("run " + quickstart_ + " 'schedule={csv: better.csv}'");
  EXPECT_TRUE(has(runs, seconds)) << runs.output;
  EXPECT_EQ(run("improve " + quickstart_ + " 1f1b --effort 1e6 -o -").output, read("better.csv"));
}

// Orders that PyTorch's runtime does not know are written too: pipesim reads them.
TEST_F(Improve, WritesOrdersOfEveryKindThatRunAsItSays) {
  for (const std::string order : {"chimera", "seq-1f1b", "1f1b recompute=full"}) {
    SCOPED_TRACE(order);
    const Outcome improved =
        run("improve " + quickstart_ + " " + order + " --effort 3e5 -o better.csv");
    ASSERT_EQ(improved.code, 0) << improved.output;
    EXPECT_TRUE(has(improved, "gained: ")) << improved.output;
    EXPECT_TRUE(has(improved, "the CSV is for pipesim alone: it ")) << improved.output;
    const size_t at = improved.output.find("improved: iteration ") + 20;
    const std::string seconds = improved.output.substr(at, improved.output.find(',', at) - at);
    const size_t more = order.find(' ');
    const Outcome runs = run("run " + quickstart_ + " 'schedule={csv: better.csv}'" +
                             (more == std::string::npos ? "" : order.substr(more)));
    EXPECT_TRUE(has(runs, seconds)) << runs.output;
  }
  const Outcome ahead =
      run("improve " + quickstart_ +
          " 'schedule={name: interleaved-1f1b, zero_bubble_table5_dependencies: true}' -o no.csv");
  EXPECT_EQ(ahead.code, 1);
  EXPECT_TRUE(has(ahead, "does not wait for every message")) << ahead.output;
}

// A CSV does not say how microbatches stand, so what writes one prints it.
TEST_F(Improve, OrdersOfUnequalMicrobatchesRunAsTheySay) {
  const std::string of = quickstart_ +
                         " parallel.pipeline_model_parallel_size=4 batch.num_microbatches=8 "
                         "'batch.factors={distribution: lognormal, mean: 1, sigma: 0.7, seed: 1}' ";
  const auto field = [](const std::string& text, const std::string& before, char end) {
    const size_t at = text.find(before);
    EXPECT_NE(at, std::string::npos) << text;
    return text.substr(at + before.size(), text.find(end, at + before.size()) - at - before.size());
  };
  for (const std::string order : {"longest_first", "dynapipe", "search"}) {
    for (const std::string command : {"improve 1f1b", "search"}) {
      SCOPED_TRACE(command + " " + order);
      const Outcome found = run(command.substr(0, command.find(' ')) + " " + of +
                                (command == "search" ? "" : "1f1b ") + "batch.order=" + order +
                                " --effort 1e6 -o found.csv");
      ASSERT_EQ(found.code, 0) << found.output;
      const std::string given = "batch.order=" + field(found.output, "stand by batch.order=", '\n');
      const Outcome ran = run("run " + of + given + " 'schedule={csv: found.csv}'");
      ASSERT_EQ(ran.code, 0) << ran.output;
      const std::string milliseconds = field(ran.output, "found.csv  ", ' ') + " ms";
      EXPECT_TRUE(has(found, (command == "search" ? "  " : "improved: iteration ") + milliseconds))
          << found.output << ran.output;
    }
  }
}

TEST_F(Improve, TakesACsvAndRefusesWhatItDoesNotKnow) {
  ASSERT_EQ(run("export " + quickstart_ + " schedule=zb-h1 -o order.csv").code, 0);
  EXPECT_EQ(run("improve " + quickstart_ + " order.csv --effort 1e5").code, 0);
  EXPECT_EQ(run("improve " + quickstart_ + " --effort 1e5").code, 2);  // five schedules
  EXPECT_EQ(run("improve order.csv").code, 2);
  EXPECT_EQ(run("improve " + quickstart_ + " 1f1b --memory-limit many").code, 2);
  const Outcome tight = run("improve " + quickstart_ + " 1f1b --memory-limit '1 GiB'");
  EXPECT_EQ(tight.code, 1);
  EXPECT_TRUE(has(tight, "one microbatch takes 3.45 GiB")) << tight.output;
}

// Four copies of the model, of which some have a microbatch more.
TEST_F(Improve, HoldsBackCopiesOfUnequalMicrobatches) {
  std::string text =
      read(std::string(PIPESIM_SOURCE_DIR) + "/schedules/descriptions/chimera-4.yaml");
  text = std::regex_replace(text, std::regex("\nrequire:[^\n]*"), "");
  write("four.yaml", text);
  for (const char* microbatches : {"5", "6", "7"}) {
    const Outcome held = run("improve " + quickstart_ +
                             " four.yaml pp=4 --effort 1e5 --memory-limit 0.3 "
                             "batch.num_microbatches=" +
                             microbatches);
    EXPECT_LE(held.code, 1) << held.output;
  }
}

TEST_F(Improve, WritesNoCsvThatRunsWorseThanTheOrderThatStays) {
  const Outcome stays = run("improve " + quickstart_ +
                            " looped-bfs framework.transfers=blocking --effort 1e4 -o stays.csv");
  EXPECT_EQ(stays.code, 1) << stays.output;
  EXPECT_TRUE(has(stays, "no CSV is written")) << stays.output;
  EXPECT_EQ(run("run " + quickstart_ + " stays.csv").code, 2);
}

TEST_F(Improve, ProvesSmallOrdersAndSaysWhyTheSearchEnded) {
  const Outcome bound = run("prove " + quickstart_ +
                            " zb-h1 parallel.pipeline_model_parallel_size=2 "
                            "batch.num_microbatches=3");
  EXPECT_EQ(bound.code, 0) << bound.output;
  EXPECT_TRUE(has(bound, "no longer than the lower bound")) << bound.output;
  if (!solver()) GTEST_SKIP() << "there is no cbc";
  const Outcome proven = run("prove " + small_ + " -o best.csv");
  EXPECT_EQ(proven.code, 0) << proven.output;
  EXPECT_TRUE(has(proven, "optimum: makespan 289.075 ms")) << proven.output;
  EXPECT_TRUE(has(proven, "CBC excludes every order that is 1.000 us faster")) << proven.output;
  const Outcome runs = run("run " + quickstart_ +
                           " 'schedule={csv: best.csv}' parallel.pipeline_model_parallel_size=3 "
                           "batch.num_microbatches=4");
  EXPECT_TRUE(has(runs, "289.075 ms")) << runs.output;
  const Outcome large = run("prove " + quickstart_ +
                            " 1f1b --memory-limit 0.75 --effort 1e5 "
                            "batch.num_microbatches=40");
  EXPECT_EQ(large.code, 0) << large.output;
  EXPECT_TRUE(has(large, "CBC was not asked: the order of up to ")) << large.output;
}

// In a model, a fused backward is shorter than B and W apart: no bound may exceed such an order.
TEST_F(Improve, BoundsFusedBackwardsByTheirOwnSeconds) {
  const std::string fused = std::string(PIPESIM_SOURCE_DIR) +
                            "/scenarios/llama3-70b-h100.yaml 1f1b "
                            "parallel.pipeline_model_parallel_size=2 batch.global_batch_size=12";
  const Outcome proven = run("prove " + fused + " --effort 1e5 -o apart.csv");
  EXPECT_TRUE(has(proven, solver() ? "optimum: makespan 2.291 s" : "best makespan 2.291 s"))
      << proven.output;
  EXPECT_TRUE(has(proven, "1f1b itself: makespan 2.253 s, with fused backwards")) << proven.output;
  std::string apart = fused;
  apart.replace(apart.find(" 1f1b "), 6, " 'schedule={csv: apart.csv}' ");
  const Outcome runs = run("run " + apart + " --csv -");
  EXPECT_TRUE(has(runs, ",2.2908")) << runs.output;
  const Outcome kept = run("improve " + fused + " --effort 1e5");
  EXPECT_TRUE(has(kept, "has a makespan below 2.129 s; this one has 2.253 s")) << kept.output;
}

TEST_F(Improve, RefinesWhereDevicesHoldUnequalNumbersOfStages) {
  write("uneven.yaml",
        "placement: [0, 1, 2, 1, 0, 1]\n"
        "order: {F: \"i // m\", B: \"(1 if d==0 else 2 if d==1 else 0) - i//m\"}\n"
        "rules: [{passes: [F]}, {passes: [BW]}]\n");
  const Outcome improved =
      run("improve " + quickstart_ +
          " uneven.yaml parallel.pipeline_model_parallel_size=3 "
          "batch.num_microbatches=5 'cost={kind: given, per: device, forward: 1 s, "
          "backward_input: 1 s, backward_weight: 1 s}' 'memory={kind: given, activation: 2 GiB, "
          "weight_stash: 1 GiB}' --effort 1e6 -o uneven.csv");
  EXPECT_EQ(improved.code, 0) << improved.output;
  EXPECT_TRUE(has(improved, "this one has 15.833 s, 0.00% more")) << improved.output;
}

TEST_F(Improve, KeepsWhatIsKnownWhereTheSolverSaysNothing) {
  ASSERT_EQ(shell("printf '#!/bin/sh\\nkill -SEGV $$\\n' > cbc && chmod +x cbc").code, 0);
  const Outcome bounded = shell("PATH=$PWD:$PATH " PIPESIM_EXECUTABLE " prove " + small_);
  EXPECT_EQ(bounded.code, 0) << bounded.output;
  EXPECT_TRUE(has(bounded, "not proven: best makespan 289.075 ms")) << bounded.output;
  EXPECT_TRUE(has(bounded, "and found nothing")) << bounded.output;
}

TEST_F(Improve, FallsBackToTheBoundWhereThereIsNoSolver) {
  const Outcome none =
      shell("PATH=/nowhere " + std::string(PIPESIM_EXECUTABLE) + " prove " + small_);
  EXPECT_EQ(none.code, 1);
  EXPECT_TRUE(has(none, "not proven: best makespan 289.075 ms")) << none.output;
  EXPECT_TRUE(has(none, "install Debian's package coinor-cbc")) << none.output;
}

}  // namespace
}  // namespace pipesim::improve_test
