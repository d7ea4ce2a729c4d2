// Offload as its user meets it: what is printed, what the documents say, and exit codes.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/app/command.h"

namespace pipesim::offload_test {
namespace {

using testing::Command;
using testing::Outcome;

constexpr const char* kOffloadScenario = R"(
schedule: [1f1b, {name: gis-h, offload: auto}]
parallel: {pipeline_model_parallel_size: 4}
batch: {num_microbatches: 12}
cost: {kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms, copy_out: 6 ms,
       copy_in: 6 ms}
memory: {kind: given, activation: 2 GiB, weight_stash: 1 GiB}
cluster: {node: {gpus: 2, link_bandwidth: 300 GB/s}, network: {bandwidth: 400 Gbps}}
)";

class OffloadCommand : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    write("s.yaml", kOffloadScenario);
  }
};

TEST_F(OffloadCommand, RunNamesWhatIsOffloadedAndWhyAndWhatTheHostKeeps) {
  const Outcome outcome = run("run s.yaml --devices --json out.json");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  for (const char* part : {"gis-h (offload)", "offload auto: 2 of 2 chunks at no cost in time",
                           "on the host of a node", "on the host\n"}) {
    EXPECT_NE(outcome.output.find(part), std::string::npos) << part << '\n' << outcome.output;
  }
  const auto results = nlohmann::json::parse(read("out.json"))["results"];
  EXPECT_FALSE(results[0].contains("host_memory"));
  EXPECT_TRUE(results[1]["host_memory"]["fits"]);
  EXPECT_EQ(results[1]["host_memory"]["peak_bytes_of_device"].size(), 4U);
  EXPECT_GT(results[1]["host_memory"]["peak_bytes_of_node"], 0);
  EXPECT_TRUE(results[1].contains("offload_choice"));
}

TEST_F(OffloadCommand, RunFailsWhereAHostIsTooSmallAndNamesWhatWouldFit) {
  const Outcome outcome =
      run("run s.yaml schedule='{name: gis-h, offload: true}' cluster.host.memory='1 "
          "GiB'");
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_NE(outcome.output.find("does not fit in its 1.00 GiB; nearest that fits: no offload"),
            std::string::npos)
      << outcome.output;
}

TEST_F(OffloadCommand, SearchSaysWhatItChoseAgainstWhat) {
  const Outcome outcome =
      run("search s.yaml --memory-limit 0.5 --effort 1e4 --offload --csv out.csv");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("chosen: "), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("activations wait on the host"), std::string::npos)
      << outcome.output;
  EXPECT_NE(outcome.output.find("the best that keeps every activation"), std::string::npos)
      << outcome.output;
  EXPECT_NE(read("out.csv").find(",offload_chunks,recompute_chunks,activations_on_host\n"),
            std::string::npos);
  const Outcome plain = run("search s.yaml --memory-limit 0.5 --effort 1e4");
  EXPECT_EQ(plain.output.find("chosen: "), std::string::npos) << "not unasked";
}

TEST_F(OffloadCommand, SearchOffersOnlyWhatTheHostHasRoomFor) {
  const std::string search = "search s.yaml --memory-limit 0.5 --no-refinement --offload ";
  const Outcome free = run(search + "-o found.yaml");
  ASSERT_EQ(free.code, 0) << free.output;
  EXPECT_NE(free.output.find("chosen: dualpipev (offload)"), std::string::npos) << free.output;
  const std::string full = "cluster.host.memory='9 GiB'";
  EXPECT_EQ(run("run found.yaml " + full).code, 1) << "what is found without it";

  const Outcome limited = run(search + full + " -o found.yaml");
  ASSERT_EQ(limited.code, 0) << limited.output;
  for (const char* part :
       {"chosen: best (offload 1 of 2, placement looped)",
        "8.00 GiB on the host of a node, which has 9.00 GiB",
        "no room on the host: dualpipev (offload) would take 381.000 ms, but 16.00 GiB"}) {
    EXPECT_NE(limited.output.find(part), std::string::npos) << part << '\n' << limited.output;
  }
  const Outcome again = run("run found.yaml");
  EXPECT_EQ(again.code, 0) << again.output;

  // Nothing that keeps all fits.
  const Outcome none =
      run("search s.yaml --memory-limit 0.4 --schedules gis-h,1f1b --offload "
          "cluster.host.memory='1 GiB'");
  EXPECT_EQ(none.code, 1) << none.output;
  EXPECT_NE(none.output.find("no room on the host: "), std::string::npos) << none.output;
}

TEST_F(OffloadCommand, SearchWritesAScenarioOfADescriptionWithCopies) {
  write("c.yaml",
        "placement: linear\nperiod: 3\nblock:\n  - {pass: F, stage: s, at: s}\n"
        "  - {pass: BW, stage: s, at: 3*p - 2 - 2*s}\ncopies:\n  - {stage: s, room: 1}\n");
  const Outcome found =
      run("search s.yaml schedule='{file: c.yaml}' --schedules c.yaml --memory-limit 0.9 "
          "--offload -o found.yaml");
  ASSERT_EQ(found.code, 0) << found.output;
  EXPECT_NE(found.output.find("chosen: c.yaml, "), std::string::npos) << found.output;
  EXPECT_EQ(run("run found.yaml").code, 0) << read("found.yaml");
  const Outcome block = run("show s.yaml schedule='{file: c.yaml}' --format block");
  EXPECT_NE(block.output.find("in flight: with what waits on the host (copies)\n"),
            std::string::npos)
      << block.output;
}

TEST_F(OffloadCommand, SearchNamesTheKeysThatCopiesNeed) {
  write("unknown.yaml", R"(
schedule: 1f1b
parallel: {pipeline_model_parallel_size: 4}
batch: {num_microbatches: 12}
cost: {kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms}
)");
  const Outcome outcome = run("search unknown.yaml --offload");
  EXPECT_EQ(outcome.code, 2) << outcome.output;
  EXPECT_NE(outcome.output.find("unknown.yaml:5:7: search with offload copies activations to the "
                                "host: cost.copy_out and cost.copy_in"),
            std::string::npos)
      << outcome.output;
}

// `run` of the scenario that search wrote gives search's numbers, with and without copies to the
// host.
TEST_F(OffloadCommand, SearchWritesAScenarioThatRunsWhatItFound) {
  const std::string recompute =
      "--memory-limit 0.4 --recompute --no-refinement memory.checkpoint='0.1 GiB'";
  for (const auto& [arguments, chosen] :
       {std::pair<std::string, std::string>{"--memory-limit 0.5 --offload --no-refinement",
                                            "activations wait on the host"},
        {"--memory-limit 0.5 --offload --effort 1e4", "activations wait on the host"},
        {"--memory-limit 0.5 --effort 1e4", "(refined)"},
        {recompute, "(recompute"}}) {
    const Outcome outcome = run("search s.yaml " + arguments + " -o found.yaml --csv out.csv");
    ASSERT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_NE(outcome.output.find(chosen), std::string::npos) << outcome.output;
    const Outcome again = run("run found.yaml --json found.json");
    ASSERT_EQ(again.code, 0) << again.output << read("found.yaml");
    const auto result = nlohmann::json::parse(read("found.json"))["results"][0];
    std::istringstream row(read("out.csv").substr(read("out.csv").find('\n') + 1));
    std::vector<std::string> cells;
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    EXPECT_DOUBLE_EQ(result["makespan_seconds"], std::stod(cells.at(6))) << read("found.yaml");
    EXPECT_DOUBLE_EQ(result["peak_activation_bytes"], std::stod(cells.at(9)));
  }
}

}  // namespace
}  // namespace pipesim::offload_test
