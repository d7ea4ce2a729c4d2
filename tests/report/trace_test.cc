#include "sim/report/json/trace.h"

#include <gtest/gtest.h>
#include <sstream>

#include "sim/case/simulate.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "tests/report/trace_format.h"

namespace pipesim::trace_test {
namespace {

using testing::TraceFormat;

std::string trace_of(const std::string& text, const std::string& name = "a schedule") {
  const Scenario scenario = read_scenario(YamlSource("s.yaml", text));
  std::ostringstream out;
  write_trace(out, simulate(prepare_first(scenario)), name);
  return out.str();
}

const std::string kShape =
    "parallel: {pipeline_model_parallel_size: 4}\nbatch: {num_microbatches: 8}\n"
    "memory: {kind: given, activation: 1 GiB, weight_stash: 0.5 GiB}\n";
std::string cost(const std::string& more = "") {
  return "cost: {kind: given, forward: 1.2345678 ms, backward_input: 1.1111111 ms, "
         "backward_weight: 0.7 ms, overlapped: 2 ms, transfer: 33.3 us, copy_out: 1 ms, copy_in: 1 "
         "ms, optimizer: 0.1 ms" +
         more + "}\n";
}
const std::string kVocabulary =
    ", output_forward: 0.3 ms, output_backward: 0.3 ms, input_forward: 0.1 ms, input_backward: 0.1 "
    "ms, collective: 50 us";

TEST(TraceFormat, HoldsForEveryKindOfRun) {
  struct Case {
    const char* what;
    std::string text;
    std::string more = "";
  };
  for (const Case& each : std::vector<Case>{
           {"interleaved", "schedule: interleaved-1f1b\n"},
           {"weight gradients apart", "schedule: zb-h1\n"},
           {"overlapped blocks", "schedule: dualpipe\n"},
           {"recomputation", "schedule: {name: 1f1b, recompute: full}\n"},
           {"copies to the host", "schedule: po-f\n"},
           {"a sharded vocabulary", "schedule: 1f1b\nvocabulary: {placement: vocab-1}\n",
            kVocabulary},
           {"several iterations", "schedule: zb-h2\noptimizer: {sync: post_validation}\n"},
           {"blocking calls", "schedule: interleaved-1f1b\nframework: {transfers: blocking}\n"},
           {"several pipelines", "schedule: 1f1b\npipelines: 2\n"},
           {"jitter", "schedule: 1f1b\nperturb: {jitter: 0.05, runs: 2}\n"}}) {
    SCOPED_TRACE(each.what);
    const TraceFormat trace(trace_of(each.text + kShape + cost(each.more)));
    EXPECT_EQ(trace.faults(), std::vector<std::string>());
    EXPECT_GE(trace.count("X"), 64U);
    EXPECT_GT(trace.count("b"), 0U);
    EXPECT_GE(trace.count("C"), 64U);
    EXPECT_GT(trace.count("s"), 24U);
  }
}

TEST(TraceFormat, HoldsForTimesBelowANanosecondAndAboveADay) {
  for (const char* unit : {"ns", "s"}) {
    const std::string costs = fmt::format(
        "cost: {{kind: given, forward: {0} {1}, backward_input: {0} {1}, backward_weight: {0} {1}, "
        "transfer: {0} {1}}}\n",
        std::string(unit) == "ns" ? "0.37" : "7654.321", unit);
    const TraceFormat trace(trace_of("schedule: zb-h1\n" + kShape + costs));
    EXPECT_EQ(trace.faults(), std::vector<std::string>());
  }
}

// Shows that the checks see each fault.
TEST(TraceFormat, IsRefusedWhereARuleIsBroken) {
  const std::string good = trace_of("schedule: 1f1b\n" + kShape + cost());
  const auto broken = [&good](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return TraceFormat(text.replace(at, from.size(), to)).faults().size();
  };
  EXPECT_EQ(broken("a schedule", "another"), 0U);
  EXPECT_GT(broken("\"dur\":1234.568", "\"dur\":1234.5681"), 0U);
  EXPECT_GT(broken("\"dur\":1234.568", "\"dur\":1234.569"), 0U);
  EXPECT_GT(broken("\"ph\":\"e\"", "\"ph\":\"b\""), 0U);
  EXPECT_GT(broken("\"ph\":\"f\"", "\"ph\":\"s\""), 0U);
  EXPECT_GT(broken("\"process_name\"", "\"process_label\""), 0U);
  EXPECT_GT(broken("\"bp\":\"e\",", ""), 0U);
  EXPECT_GT(broken("\"pid\":1,", "\"pid\":0,"), 0U);
  EXPECT_GT(broken("\"bytes\":", "\"bytes\":\"x\",\"y\":"), 0U);
}

TEST(Trace, HasAnArrowForEveryMessage) {
  for (const char* schedule : {"1f1b", "zb-v", "dualpipe"}) {
    const TraceFormat trace(trace_of(fmt::format("schedule: {}\n", schedule) + kShape + cost()));
    EXPECT_EQ(trace.count("s"), trace.count("b")) << schedule;
  }
}

TEST(Trace, CountsMemoryOverAllIterationsTogether) {
  const TraceFormat trace(
      trace_of("schedule: zb-h2\noptimizer: {sync: post_validation}\n" + kShape + cost()));
  std::map<int, double> level;
  for (const auto& event : trace.events()) {
    if (event["ph"] != "C") continue;
    level[event["pid"]] = event["args"]["bytes"];
    EXPECT_GE(level[event["pid"]], 0);
  }
  EXPECT_EQ(level.size(), 4U);
  for (const auto& [pid, bytes] : level) EXPECT_EQ(bytes, 0);
}

TEST(Trace, QuotesTheNameOfItsSchedule) {
  const std::string text =
      trace_of("schedule: 1f1b\n" + kShape + cost(), "a \"b\"\\\n</script>\xff.csv");
  EXPECT_EQ(nlohmann::json::parse(text)["otherData"]["schedule"],
            "a \"b\"\\\n</script>\xEF\xBF\xBD.csv");
}

}  // namespace
}  // namespace pipesim::trace_test
