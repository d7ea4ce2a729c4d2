// Figures of a described block, against simulations of its schedule.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/execution/evaluate.h"
#include "sim/planning/block_figures.h"
#include "sim/read/description.h"
#include "tests/pipeline/problems.h"

namespace pipesim::description_claims_test {
namespace {

struct Block {
  const char* name;
  int chunks = 1;
  double pass = 1;  // slots of F, B and W
};

constexpr Block kBlocks[] = {
    {"1f1b"},      {"zb-h1"},     {"interleaved-1f1b", 2}, {"interleaved-1f1b", 3},
    {"gis", 2, 2}, {"gis", 3, 2}, {"1f1b-v", 2},           {"v-half", 2},
    {"v-min", 2},  {"1f1b-pairs"}};

// Every pass takes as long as its slots, and so does a block.
Problem problem_of(const Block& block, const Schedule& schedule, int p, int m) {
  const Shape shape{p, block.chunks, m, 1};
  Problem problem = testing::make_problem(shape, schedule.place(p, block.chunks),
                                          {block.pass, block.pass, block.pass, 0});
  for (StageCost& stage : problem.stages) stage.overlapped = Seconds(2 * block.pass);
  return problem;
}

template <class Check>
void for_every_block(const std::vector<int>& multiples, Check check) {
  for (const Block& block : kBlocks) {
    const auto described = read_description_file(
        fmt::format(PIPESIM_SOURCE_DIR "/schedules/descriptions/{}.yaml", block.name), {});
    for (int p = 2; p <= 16; ++p) {
      for (const int multiple : multiples) {
        SCOPED_TRACE(fmt::format("{} p {} v {} m {}", block.name, p, block.chunks, multiple * p));
        const Problem problem = problem_of(block, described->schedule, p, multiple * p);
        const Evaluation result = evaluate(described->schedule.plan(problem), problem);
        check(*described->description, result, figures_of(*described->description, problem));
      }
    }
  }
}

TEST(DescriptionClaims, PeaksFollowFromLifespansOverThePeriod) {
  int exact = 0;
  for_every_block({4, 8}, [&](const Description& description, const Evaluation& result,
                              const BlockFigures& figures) {
    for (size_t d = 0; d < figures.devices.size(); ++d) {
      const BlockFigures::Device& device = figures.devices[d];
      const int held = result.devices[d].peak_in_flight;
      EXPECT_LE(held, description.tightened.any() ? figures.most_in_flight() : device.in_flight);
      EXPECT_GE(device.in_flight * figures.period, device.lifespan) << "device " << d;
      if (description.tightened.any()) continue;
      EXPECT_EQ(held, device.in_flight) << "device " << d;
      ++exact;
    }
  });
  EXPECT_GT(exact, 1000);
}

TEST(DescriptionClaims, CountNoMoreChunksThanThereAre) {
  for (const Block& block : kBlocks) {
    const auto described = read_description_file(
        fmt::format(PIPESIM_SOURCE_DIR "/schedules/descriptions/{}.yaml", block.name), {});
    const Problem problem = problem_of(block, described->schedule, 8, 1);
    if (described->schedule.refusal(problem)) continue;
    for (const auto& device : figures_of(*described->description, problem).devices) {
      EXPECT_LE(device.in_flight, block.chunks) << block.name;
    }
  }
}

TEST(DescriptionClaims, BubblesAreNoLargerThanThoseOfTheSlots) {
  int exact = 0;
  for_every_block({1, 2, 4},
                  [&](const Description&, const Evaluation& result, const BlockFigures& figures) {
                    EXPECT_LE(result.cost, Seconds(static_cast<double>(figures.span)));
                    if (result.cost == Seconds(static_cast<double>(figures.span))) ++exact;
                  });
  EXPECT_GT(exact, 30);  // 1F1B and others of which nothing can begin before its slot
}

TEST(DescriptionClaims, OfPublishedBlocksAreThePublishedPeaks) {
  const auto most = [](const char* name, int p) {
    const auto described = read_description_file(
        fmt::format(PIPESIM_SOURCE_DIR "/schedules/descriptions/{}.yaml", name), {});
    const Block block{name, described->schedule.default_chunks};
    return figures_of(*described->description, problem_of(block, described->schedule, p, 8 * p))
        .most_in_flight();
  };
  for (int p = 2; p <= 16; ++p) {
    SCOPED_TRACE(p);
    EXPECT_EQ(most("1f1b", p), p);
    EXPECT_EQ(most("v-half", p), p / 2 * 2 + 2);        // of 2p chunks: half, and what is left
    EXPECT_EQ(most("v-min", p), 2 * ((p + 4) / 3));     // a third
    EXPECT_EQ(most("1f1b-v", p), 2 * (2 * p / 3 + 1));  // two thirds
  }
}

}  // namespace
}  // namespace pipesim::description_claims_test
