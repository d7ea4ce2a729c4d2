// Says where a peak hangs on the exact bandwidth of the host link.
#include "sim/prepare/knife_edge.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim::knife_edge_test {
namespace {

std::string edge_of(const std::vector<std::string>& overrides) {
  std::vector<Override> parsed;
  for (const auto& each : overrides) parsed.push_back(parse_override(each, {"", 1, 1, ""}));
  return knife_edge_of(prepare_first(read_scenario(YamlSource("test", R"(
schedule: po-f
parallel: {pipeline_model_parallel_size: 8}
batch: {num_microbatches: 64}
cost: {kind: given, forward: 10 ms, backward_input: 10 ms, backward_weight: 10 ms, copy_out: 6 ms, copy_in: 6 ms}
memory: {kind: given, activation: 2 GiB, weight_stash: 1 GiB}
)",
                                                              parsed))));
}

TEST(KnifeEdge, IsSaidWhereASlowerLinkKeepsMuchMore) {
  EXPECT_EQ(edge_of({"schedule=1f1b"}), "") << "nothing is copied";
  EXPECT_EQ(edge_of({}), "") << "copies take 0.4 of the passes";
  EXPECT_NE(edge_of({"cost.copy_out=14 ms", "cost.copy_in=14 ms"}).find("have no plan"),
            std::string::npos)
      << "0.93 of them, 1.04 over the slower link";
  const std::string ours = edge_of({"offload={plan: best, devices_per_link: 2}",
                                    "cost.copy_out=14.2 ms", "cost.copy_in=14.2 ms"});
  EXPECT_NE(ours.find("over a link 10% slower at"), std::string::npos) << ours;
}

}  // namespace
}  // namespace pipesim::knife_edge_test
