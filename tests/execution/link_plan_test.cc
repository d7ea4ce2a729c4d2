#include "sim/execution/link_plan.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <span>

namespace pipesim::link_plan_test {
namespace {

struct Drawn {
  std::vector<Candidate> candidates;
  std::vector<DevicePasses> devices;
  std::vector<std::vector<double>> ends;
  double alone = 1;
};

// F of every chunk and microbatch, then as many B, each a second long but for gaps; on some links
// the chunks differ in bytes.
Drawn drawn(std::mt19937_64& random, int devices, int chunks) {
  const auto below = [&random](int end) { return static_cast<int>(random() % end); };
  Drawn link;
  link.ends.resize(devices);
  link.alone = 0.5 + 0.25 * below(3);
  const int passes = chunks * (4 + below(12));
  const int gap = 1 + below(3);
  const int more = below(2);
  const double copy = 0.25 * (1 + below(12));
  for (int device = 0; device < devices; ++device) {
    std::vector<HeldChange> held;
    double clock = below(4);
    for (int i = 0; i < passes; ++i, clock += 1 + below(gap)) {
      const int chunk = i % chunks;
      const double size = 1 + more * (chunk % 2);
      Candidate each;
      each.made = clock + 1;
      each.out = each.back = size * copy;
      each.bytes = size;
      each.copy.device = static_cast<std::uint32_t>(device);
      each.copy.chunk = static_cast<std::uint16_t>(chunk);
      each.copy.unit = static_cast<std::uint32_t>(i / chunks);
      each.rank = chunk;
      held.push_back({clock, size});
      link.ends[device].push_back(clock + 1);
      link.candidates.push_back(each);
    }
    const size_t first = link.candidates.size() - passes;
    for (int i = 0; i < passes; ++i, clock += 1 + below(gap)) {
      Candidate& each = link.candidates[first + i];
      each.needed = clock;
      held.push_back({clock + 1, -each.bytes});
      link.ends[device].push_back(clock + 1);
    }
    link.devices.push_back({std::move(held), {}});
  }
  for (int device = 0; device < devices; ++device) link.devices[device].ends = link.ends[device];
  std::erase_if(link.candidates,
                [](const Candidate& each) { return each.out + each.back > each.lifespan(); });
  return link;
}

// A search that ends when no rule can keep less finds what one of all rules finds.
TEST(LinkPlan, TheLeastOfAllRules) {
  std::mt19937_64 random(1);
  int useful = 0;
  for (int draw = 0; draw < 600; ++draw) {
    const int devices = 1 + draw % 3;
    const int chunks = 1 + draw % 4;
    const Drawn link = drawn(random, devices, chunks);
    constexpr size_t kAll = 1000;
    const auto rules = link_rules(chunks, devices, kAll);
    const auto first = link_rules(chunks, devices, 9);
    EXPECT_TRUE(std::ranges::equal(first, std::span(rules).first(first.size()))) << draw;
    LinkPlan all(link.candidates, link.devices, 0, link.alone, 1);
    LinkPlan least = all;
    std::vector<double> peaks;
    EXPECT_EQ(least.plan_least(rules, nullptr), all.plan_least(rules, &peaks)) << draw;
    ASSERT_EQ(peaks.size(), rules.size());
    EXPECT_LE(std::ranges::min(peaks), all.peak().most);
    EXPECT_EQ(least.peak(), all.peak());
    useful += all.out().empty() ? 0 : 1;
  }
  EXPECT_GT(useful, 400);
}

}  // namespace
}  // namespace pipesim::link_plan_test
