// Every number of every output is a metric of the table, under its name and with its unit.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/app/command.h"

namespace pipesim::metrics_test {
namespace {

using nlohmann::json;

// Columns that tell rows apart or say what was asked, and a metric less that of the baseline.
const std::set<std::string> kNoMetrics{"point",
                                       "rank",
                                       "rank_by_replay",
                                       "refined",
                                       "chunks",
                                       "offload_chunks",
                                       "recompute_chunks",
                                       "activations_on_host",
                                       "factor",
                                       "applied",
                                       "memory_limit",
                                       "tasks",
                                       "first_difference_device",
                                       "tensor_model_parallel_size",
                                       "context_parallel_size",
                                       "expert_model_parallel_size",
                                       "expert_tensor_parallel_size",
                                       "pipeline_model_parallel_size",
                                       "virtual_pipeline_model_parallel_size",
                                       "data_parallel_size",
                                       "micro_batch_size",
                                       "offload",
                                       "overlap_moe_expert_parallel_comm",
                                       "tied_with_first",
                                       "difference_memory_bytes",
                                       "batch.num_microbatches"};

class Metrics : public testing::Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    for (const json& each : json::parse(run("list metrics --json -").output)) {
      units_[each.at("name")] = each.at("unit");
      labels_.insert(each.at("label"));
    }
  }

  void expect_known(const std::string& name, const std::string& output) const {
    if (kNoMetrics.contains(name) || name.starts_with("share_")) return;
    EXPECT_TRUE(units_.contains(name)) << output << " names '" << name << "'";
  }
  // Columns whose cells are numbers or empty, and not all are empty.
  void expect_csv(const std::string& file) const {
    std::istringstream lines(read(file));
    std::string line;
    std::getline(lines, line);
    const std::vector<std::string> names = split(line);
    std::vector<int> numbers(names.size());
    std::vector<int> texts(names.size());
    while (std::getline(lines, line)) {
      const std::vector<std::string> cells = split(line);
      ASSERT_EQ(cells.size(), names.size()) << file << ": " << line;
      for (size_t i = 0; i < cells.size(); ++i) {
        if (cells[i].empty()) continue;
        ++(json::parse(cells[i], nullptr, false).is_number() ? numbers : texts)[i];
      }
    }
    for (size_t i = 0; i < names.size(); ++i) {
      if (numbers[i] > 0 && texts[i] == 0) expect_known(names[i], file);
    }
  }
  void expect_json(const json& object, const std::string& file) const {
    ASSERT_TRUE(object.is_object()) << file;
    for (const auto& [name, value] : object.items()) {
      if (value.is_number() || units_.contains(name)) expect_known(name, file);
      if (units_.contains(name) && units_.at(name) == "flag") {
        EXPECT_TRUE(value.is_boolean() || value.is_null()) << file << ' ' << name;
      } else if (units_.contains(name) && units_.at(name) == "fit") {
        EXPECT_TRUE(value.is_string() || value.is_null()) << file << ' ' << name;
      } else if (units_.contains(name)) {
        EXPECT_TRUE(value.is_number() || value.is_null()) << file << ' ' << name;
      }
    }
  }

  std::map<std::string, std::string> units_;  // by name
  std::set<std::string> labels_;

 private:
  // Cells of a row; commas within quotes are none.
  static std::vector<std::string> split(const std::string& line) {
    std::vector<std::string> cells{""};
    bool quoted = false;
    for (const char c : line) {
      if (c == '"') quoted = !quoted;
      if (c == ',' && !quoted) {
        cells.emplace_back();
      } else {
        cells.back() += c;
      }
    }
    return cells;
  }
};

TEST_F(Metrics, SayTheirUnitInTheirNames) {
  EXPECT_GT(units_.size(), 30U);
  EXPECT_EQ(labels_.size(), units_.size()) << "two metrics stand under one head of a table";
  for (const auto& [name, unit] : units_) {
    EXPECT_EQ(name.ends_with("_seconds"), unit == "s") << name;
    EXPECT_EQ(name.ends_with("_bytes"), unit == "B") << name;
    const bool rate = name.find("_per_second") != std::string::npos;
    EXPECT_EQ(rate, unit == "1/s") << name;
  }
}

TEST_F(Metrics, AreAllThatOutputsName) {
  const std::string small = quickstart_ + " batch.num_microbatches=8";
  ASSERT_EQ(run("run " + small + " --csv run.csv --json run.json").code, 0);
  expect_csv("run.csv");
  const json results = json::parse(read("run.json"))["results"];
  for (const json& result : results) expect_json(result, "run.json");
  ASSERT_EQ(run("search " + small + " --memory-limit 1 --no-refinement --csv search.csv").code, 0);
  expect_csv("search.csv");
  ASSERT_EQ(run("sensitivity " + small + " schedule=1f1b --csv moves.csv --json moves.json").code,
            0);
  expect_csv("moves.csv");
  const json moves = json::parse(read("moves.json"))["sensitivity"][0];
  expect_json(moves["base"], "moves.json");
  expect_json(moves["effects"][0]["outcome"], "moves.json");
  ASSERT_EQ(run("compare " + small + " 'schedule=[1f1b, zb-h1]' --json compare.json").code, 0);
  expect_json(json::parse(read("compare.json"))["a"], "compare.json");
}

TEST_F(Metrics, AreAllThatSweepsAndPlansName) {
  write("s.yaml",
        testing::read_file(quickstart_) + "sweep: {grid: {batch.num_microbatches: [8, 16]}}\n");
  ASSERT_EQ(run("sweep s.yaml -o out --json out.json").code, 0);
  expect_csv("out/results.csv");
  expect_json(json::parse(read("out.json"))["results"][0], "out.json");
  ASSERT_EQ(run("plan --model zb-1.5b --cluster dgx-a100 --gpus 8 --global-batch-size 32 "
                "--seq-length 1024 --tensor 1 --micro-batch-size 2 --schedules 1f1b --no-offload "
                "--tokens 1e9 --csv plan.csv --json plan.json")
                .code,
            0);
  expect_csv("plan.csv");
  const json plan = json::parse(read("plan.json"))["plans"][0];
  ASSERT_FALSE(plan["layouts"].empty());
  expect_json(plan["layouts"][0], "plan.json");
}

}  // namespace
}  // namespace pipesim::metrics_test
