#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "sim/case/simulate.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "sim/report/json/json.h"
#include "sim/report/json/trace.h"
#include "sim/report/text/picture.h"
#include "sim/report/text/table.h"

namespace pipesim::report_test {
namespace {

using nlohmann::json;

const std::string kScenario =
    "schedule: [1f1b, zb-h1]\n"
    "parallel: {pipeline_model_parallel_size: 4}\n"
    "batch: {num_microbatches: 8, micro_batch_size: 2}\n"
    "cost: {kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms, transfer: 1 "
    "ms}\n"
    "memory: {kind: given, activation: 1 GiB, weight_stash: 0.5 GiB}\n";

struct Simulated {
  std::vector<Answer> answers;

  explicit Simulated(const std::string& text) {
    const auto scenario =
        std::make_shared<const Scenario>(read_scenario(YamlSource("s.yaml", text)));
    for (const Prepared& each : prepare_all(scenario)) answers.push_back(answer(each.get()));
  }
  [[nodiscard]] std::string devices(size_t i) const {
    return device_table(answers[i].made, answers[i].result);
  }
  [[nodiscard]] std::string json_text(bool timings = false) const {
    std::ostringstream out;
    write_json(out, answers, {"1.2.3", timings});
    return out.str();
  }
};

TEST(Json, HasEveryNameThatScriptsDependOn) {
  const json document = json::parse(Simulated(kScenario).json_text());
  EXPECT_EQ(document["pipesim"],
            (json{{"version", "1.2.3"}, {"engine", "replay"}, {"cost", "given"}}));
  EXPECT_TRUE(document["scenario"].is_object());
  ASSERT_EQ(document["results"].size(), 2U);
  const json& result = document["results"][1];
  for (const char* name :
       {"schedule", "iteration_seconds", "makespan_seconds", "cost_seconds", "bubble_rate",
        "bubble_rate_busiest", "bubble_rate_makespan", "bubble_over_ideal", "samples_per_second",
        "samples_per_second_per_gpu", "tokens_per_second_per_gpu", "model_tflops_per_gpu", "mfu",
        "hfu", "peak_activation_bytes", "peak_memory_bytes", "devices", "ensemble", "tasks"}) {
    EXPECT_TRUE(result.contains(name)) << name;
  }
  for (const char* name :
       {"device", "busy_seconds", "recompute_seconds", "span_seconds", "peak_activation_bytes",
        "peak_memory_bytes", "peak_memory_by_category", "idle_seconds_by_cause"}) {
    EXPECT_TRUE(result["devices"][0].contains(name)) << name;
  }
  EXPECT_FALSE(result.contains("seconds"));
  EXPECT_EQ(result["schedule"], "zb-h1");
  EXPECT_EQ(result["tasks"], 4 * 8 * 3 + 2 * 3 * 8 + 1);
}

TEST(Json, SaysWhichSchedulesAreAsynchronous) {
  std::string text = kScenario;
  text.replace(text.find("zb-h1"), 5, "pipedream");
  const json schedules = json::parse(Simulated(text).json_text())["scenario"]["schedule"];
  EXPECT_FALSE(schedules[0].contains("optimizer_sync"));
  EXPECT_EQ(schedules[1].at("optimizer_sync"), "asynchronous");
}

TEST(Json, HoldsNullForWhatDoesNotApply) {
  const json with = json::parse(Simulated(kScenario).json_text())["results"][0];
  EXPECT_TRUE(with["mfu"].is_null());
  EXPECT_TRUE(with["peak_memory_bytes"].is_null());
  EXPECT_TRUE(with["ensemble"].is_null());
  EXPECT_DOUBLE_EQ(with["peak_activation_bytes"], 4 * 1073741824.0);
  const std::string bare = kScenario.substr(0, kScenario.find("memory:"));
  const json without = json::parse(Simulated(bare).json_text())["results"][0];
  EXPECT_TRUE(without["peak_activation_bytes"].is_null());
  EXPECT_TRUE(without["devices"][0]["peak_memory_by_category"].empty());
}

const std::string kModelled =
    "schedule: [1f1b, zb-v]\n"
    "model: zb-1.5b\n"
    "parallel: {pipeline_model_parallel_size: 4, account_for_embedding_in_pipeline_split: true, "
    "account_for_loss_in_pipeline_split: true}\n"
    "batch: {num_microbatches: 8, micro_batch_size: 6}\n"
    "cost: {kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms}\n"
    "memory: {kind: model, flash_attention: false, dropout: true, capacity: 40 GiB}\n";

TEST(Json, SumsCategoriesToThePeakMemoryOfAModel) {
  const json result = json::parse(Simulated(kModelled).json_text())["results"][0];
  double largest = 0;
  for (const json& device : result["devices"]) {
    double sum = 0;
    EXPECT_EQ(device["peak_memory_by_category"].size(), 7U);
    for (const auto& [name, bytes] : device["peak_memory_by_category"].items()) {
      sum += bytes.get<double>();
    }
    EXPECT_NEAR(device["peak_memory_bytes"].get<double>(), sum, 1);
    largest = std::max(largest, sum);
  }
  EXPECT_NEAR(result["peak_memory_bytes"].get<double>(), largest, 1);
  EXPECT_EQ(result["pipeline_model_parallel_layout"], "Et*5|(t*6|)*2t*5L");
  EXPECT_DOUBLE_EQ(result["tokens_per_second_per_gpu"],
                   1024 * result["samples_per_second_per_gpu"].get<double>());
  EXPECT_EQ(result["fits"], "yes");
  EXPECT_TRUE(result["nearest_change"].is_null());
}

TEST(Table, ShowsPeakMemoryOfAModelAndWhatWouldMakeItFit) {
  const Simulated fits(kModelled);
  const std::string table = comparison_table(fits.answers);
  EXPECT_NE(table.find("peak memory"), std::string::npos);
  EXPECT_EQ(table.find("does not fit"), std::string::npos);
  std::string small = kModelled;
  small.replace(small.find("40 GiB"), 6, "25 GiB");
  const Simulated unfit(small);
  EXPECT_NE(comparison_table(unfit.answers)
                .find("1f1b: does not fit in 25.00 GiB; nearest change: recompute: selective ("),
            std::string::npos);
  EXPECT_NE(fits.devices(0).find("beside it"), std::string::npos);
}

TEST(Json, IsTheSameBytesForTheSameInputButForTimings) {
  EXPECT_EQ(Simulated(kScenario).json_text(), Simulated(kScenario).json_text());
  const json timed = json::parse(Simulated(kScenario).json_text(true))["results"][0];
  for (const char* step : {"plan", "build", "run", "metrics"}) EXPECT_GE(timed["seconds"][step], 0);
}

TEST(Csv, HasARowPerScheduleAndEmptyCellsWhereNothingApplies) {
  const Simulated run(kScenario.substr(0, kScenario.find("memory:")));
  std::istringstream lines(comparison_csv(run.answers));
  std::string header, first, second, rest;
  std::getline(lines, header);
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_TRUE(header.starts_with(
      "schedule,options,recompute,offload,memory_limit,gpus,iteration_seconds,"));
  EXPECT_TRUE(first.starts_with("1f1b,"));
  EXPECT_TRUE(second.starts_with("zb-h1,"));
  EXPECT_TRUE(second.ends_with(","));
  EXPECT_FALSE(std::getline(lines, rest));
}

TEST(Trace, HasEveryTaskOnceAndEveryArrowBothEnds) {
  const Simulated run(kScenario);
  std::ostringstream out;
  write_trace(out, run.answers[0].result, "1f1b");
  const json trace = json::parse(out.str());
  std::map<std::string, int> phases;
  std::set<long> sent, received;
  for (const json& event : trace["traceEvents"]) {
    const std::string phase = event["ph"];
    ++phases[phase];
    if (phase == "s") sent.insert(event["id"].get<long>());
    if (phase == "f") received.insert(event["id"].get<long>());
    if (phase == "X") {
      EXPECT_GE(event["dur"], 0);
    }
    EXPECT_TRUE(event.contains("pid"));
  }
  EXPECT_EQ(phases["X"], 4 * 8 * 2);
  EXPECT_EQ(phases["b"], 2 * 3 * 8);
  EXPECT_EQ(phases["e"], 2 * 3 * 8);
  EXPECT_EQ(sent, received);
  EXPECT_EQ(sent.size(), 48U);
  EXPECT_EQ(phases["C"], 4 * 8 * 2);  // F acquires, BW releases
}

TEST(Picture, DrawsOneLinePerDeviceAndIdleTimeAsDots) {
  const Simulated run(kScenario);
  const std::string picture = draw(run.answers[0].result, {.columns = 60, .colour = false});
  std::istringstream lines(picture);
  std::string line;
  for (int device = 0; device < 4; ++device) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(line.size(), 60U + 4U);
    EXPECT_NE(line.find('.'), std::string::npos);
    EXPECT_NE(line.find('F'), std::string::npos);
  }
  EXPECT_EQ(picture.find("\033["), std::string::npos);
  EXPECT_NE(draw(run.answers[0].result, {.columns = 60, .colour = true}).find("\033["),
            std::string::npos);
}

const std::string kRecomputed =
    "schedule: [1f1b, {name: 1f1b, recompute: full}]\n"
    "parallel: {pipeline_model_parallel_size: 2}\nbatch: {num_microbatches: 2}\n"
    "cost: {kind: given, forward: 10 ms, backward_input: 10 ms, backward_weight: 10 ms, recompute: "
    "8 ms}\n"
    "memory: {kind: given, activation: 4 GiB, weight_stash: 1 GiB, checkpoint: 1 GiB}\n";

TEST(Json, ReportsRecomputeApart) {
  const json document = json::parse(Simulated(kRecomputed).json_text());
  EXPECT_FALSE(document["scenario"]["schedule"][0].contains("recompute"));
  EXPECT_EQ(document["scenario"]["schedule"][1]["recompute"],
            (json{{"granularity", "full"}, {"chunks", 1}}));
  EXPECT_EQ(document["scenario"]["cost"]["recompute_seconds"], 0.008);
  EXPECT_EQ(document["scenario"]["memory"]["checkpoint_bytes"], 1073741824.0);
  EXPECT_EQ(document["results"][0]["devices"][0]["recompute_seconds"], 0);
  const json& device = document["results"][1]["devices"][0];
  EXPECT_DOUBLE_EQ(device["recompute_seconds"], 0.016);
  EXPECT_DOUBLE_EQ(device["busy_seconds"], 0.076);
  EXPECT_EQ(device["peak_activation_bytes"], 5 * 1073741824.0);
}

TEST(Table, NamesAndShowsRecomputeWhereThereIsAny) {
  const Simulated run(kRecomputed);
  EXPECT_NE(comparison_table(run.answers).find("1f1b (recompute)"), std::string::npos);
  EXPECT_EQ(run.devices(0).find("recompute"), std::string::npos);
  EXPECT_NE(run.devices(1).find("recompute"), std::string::npos);
}

TEST(Trace, NamesRecomputedForwards) {
  const Simulated run(kRecomputed);
  std::ostringstream out;
  write_trace(out, run.answers[1].result, "1f1b");
  int recomputed = 0;
  const json trace = json::parse(out.str());
  for (const json& event : trace["traceEvents"]) recomputed += event.value("cat", "") == "R";
  EXPECT_EQ(recomputed, 4);
}

TEST(Picture, DrawsAndListsRecomputedForwards) {
  const Simulated run(kRecomputed);
  EXPECT_NE(draw(run.answers[1].result, {.columns = 60, .colour = false}).find("R0"),
            std::string::npos);
  EXPECT_EQ(pass_lists(*run.answers[1].result.program),
            "0F0 0F1 0R0 0BW0 0R1 0BW1\n1F0 1R0 1BW0 1F1 1R1 1BW1\n");
}

TEST(Picture, ListsThePassesOfADeviceInOrder) {
  const Simulated run(
      "schedule: zb-h1\nparallel: {pipeline_model_parallel_size: 2}\nbatch: {num_microbatches: 2}\n"
      "cost: {kind: given, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}\n");
  EXPECT_EQ(pass_lists(*run.answers[0].result.program),
            "0F0 0F1 0B0 0W0 0B1 0W1\n1F0 1B0 1F1 1B1 1W0 1W1\n");
}

}  // namespace
}  // namespace pipesim::report_test
