// pipesim plan as a person meets it.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <regex>
#include <tuple>

#include "tests/app/command.h"

namespace pipesim::plan_test {
namespace {

using testing::Outcome;

class PlanCommand : public testing::Command {
 protected:
  // Few points, quickly.
  const std::string plan_ =
      "plan --model zb-1.5b --cluster dgx-a100 --gpus 8 --global-batch-size 32 --seq-length 1024 "
      "--tensor 1 --micro-batch-size 2 --schedules 1f1b,zb-h1 --no-offload ";
};

TEST_F(PlanCommand, WritesAScenarioThatRunsAsPlanned) {
  const Outcome planned = run(plan_ + "-o best.yaml --json plan.json --csv plan.csv");
  EXPECT_EQ(planned.code, 0) << planned.output;
  EXPECT_EQ(run("run best.yaml --json run.json").code, 0);
  const auto plan = nlohmann::json::parse(read("plan.json"));
  const auto best = plan["plans"][0]["layouts"][0];
  const auto result = nlohmann::json::parse(read("run.json"))["results"][0];
  EXPECT_EQ(best["iteration_seconds"], result["iteration_seconds"]);
  EXPECT_EQ(best["peak_memory_bytes"], result["peak_memory_bytes"]);
  EXPECT_EQ(best["mfu"], result["mfu"]);
  EXPECT_EQ(best["tokens_per_second_per_gpu"], result["tokens_per_second_per_gpu"]);
  EXPECT_EQ(best["scenario"], read("best.yaml"));
  EXPECT_FALSE(best["contended"].is_null());
  EXPECT_TRUE(read("plan.csv").starts_with("cluster,rank,schedule,tensor_model_parallel_size"));
  EXPECT_TRUE(planned.output.starts_with("8 A100: ")) << planned.output;
  EXPECT_EQ(plan["answer"].get<std::string>().find("8 A100: "), 0U);
  EXPECT_NE(run(plan_ + "--contention 0 --wide").output.find("points;"), std::string::npos);
}

// A scenario says what options do, and its layout is the baseline.
TEST_F(PlanCommand, StartsFromAScenario) {
  const std::string narrow =
      "--tensor 1 --micro-batch-size 2 --schedules 1f1b,zb-h1 --no-offload --contention 0 ";
  write("mine.yaml",
        "model: zb-1.5b\ncluster: dgx-a100\nschedule: 1f1b\n"
        "parallel: {pipeline_model_parallel_size: 2, data_parallel_size: 4}\n"
        "batch: {global_batch_size: 32, micro_batch_size: 4, seq_length: 1024}\n");
  const std::string same = "--baseline mine.yaml ";
  EXPECT_EQ(run("plan mine.yaml " + narrow).output, run(plan_ + "--contention 0 " + same).output);
  EXPECT_NE(run("plan mine.yaml " + narrow).output.find("0  mine.yaml"), std::string::npos);
  // Options stand over what the scenario says; its layout is no baseline then.
  EXPECT_EQ(
      run("plan mine.yaml --gpus 16 --gbs 64 " + narrow).output,
      run("plan --model zb-1.5b --cluster dgx-a100 --seq 1k --gpus 16 --gbs 64 " + narrow).output);
  EXPECT_EQ(run("plan mine.yaml memory.precision=fp16 --baseline none " + narrow).output,
            run(plan_ + "memory.precision=fp16 --baseline none --contention 0").output);
}

TEST_F(PlanCommand, StartsFromAModelThatHasNoName) {
  std::filesystem::create_directory(folder_ / "a #2");
  write("a #2/config.json",
        R"({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 16, "hidden_size": 1024,
            "intermediate_size": 4096, "num_attention_heads": 16, "vocab_size": 32000})");
  const std::string rest =
      "cluster: {name: dgx-a100, network: {bandwidth: 100 Gbps}}\nschedule: [1f1b, zb-h1]\n"
      "parallel: {pipeline_model_parallel_size: 8, sequence_parallel: false}\n"
      "batch: {num_microbatches: 32, micro_batch_size: 1, seq_length: 1024}\n"
      "memory: {precision: fp16, data_parallel_sharding_strategy: optim}\n";
  write("a #2/hf.yaml", "model: {hf_config: config.json}\n" + rest);
  write("a #2/own.yaml",
        "model: {num_layers: 16, hidden_size: 1024, num_attention_heads: 16, "
        "vocab_size: 32000, max_position_embeddings: 1024}\n" +
            rest);
  for (const char* file : {"'a #2/hf.yaml'", "'a #2/own.yaml'"}) {
    const Outcome planned =
        run(std::string("plan ") + file + " --mbs 1 --contention 0 --no-offload -o best.yaml");
    ASSERT_EQ(planned.code, 0) << planned.output;
    EXPECT_NE(read("best.yaml").find("100 Gbps"), std::string::npos) << read("best.yaml");
    EXPECT_NE(read("best.yaml").find("precision: fp16"), std::string::npos) << read("best.yaml");
    EXPECT_EQ(run("run best.yaml").code, 0);
  }
}

// A measured step corrects row 0 as it does the others.
TEST_F(PlanCommand, AnchorsTheScenariosOwnRowToo) {
  write("mine.yaml",
        "model: zb-1.5b\ncluster: dgx-a100\nschedule: 1f1b\n"
        "parallel: {pipeline_model_parallel_size: 2, data_parallel_size: 4}\n"
        "batch: {global_batch_size: 32, micro_batch_size: 4, seq_length: 1024}\n");
  ASSERT_EQ(run("anchor mine.yaml --measured '4 s' --accept -o anchor.yaml").code, 0);
  ASSERT_EQ(run("run mine.yaml cost.anchor=anchor.yaml --json run.json").code, 0);
  ASSERT_EQ(run("plan mine.yaml cost.anchor=anchor.yaml --tensor 1 --mbs 4 --schedules 1f1b "
                "--contention 0 --json plan.json")
                .code,
            0);
  const auto baseline = nlohmann::json::parse(read("plan.json"))["plans"][0]["baseline"];
  const auto result = nlohmann::json::parse(read("run.json"))["results"][0];
  EXPECT_EQ(baseline["iteration_seconds"], result["iteration_seconds"]);
}

// Row 0 is the scenario as it runs, with contention too.
TEST_F(PlanCommand, HasTheScenariosOwnTimeInRow0) {
  write("mine.yaml",
        "model: zb-1.5b\ncluster: dgx-a100\nschedule: 1f1b\nperturb: {stragglers: [{rank: 1, "
        "factor: 1.5}]}\nmemory: {use-distributed-optimizer: false}\n"
        "parallel: {pipeline_model_parallel_size: 2, data_parallel_size: 4, sequence-parallel: "
        "false}\n"
        "batch: {global_batch_size: 32, micro_batch_size: 4, seq_length: 1024}\n");
  const Outcome planned =
      run("plan mine.yaml --tensor 1 --mbs 2 --schedules 1f1b --contention 1 --json plan.json "
          "memory.use_distributed_optimizer=true -o best.yaml");
  ASSERT_EQ(planned.code, 0) << planned.output;
  EXPECT_NE(planned.output.find("slow devices and links are not planned"), std::string::npos)
      << planned.output;
  EXPECT_EQ(run("run mine.yaml engine=simgrid pipelines=4 --json run.json").code, 0);
  const auto baseline = nlohmann::json::parse(read("plan.json"))["plans"][0]["baseline"];
  const auto result = nlohmann::json::parse(read("run.json"))["results"][0];
  EXPECT_EQ(baseline["contended"]["iteration_seconds"], result["iteration_seconds"]) << baseline;
  EXPECT_NE(read("best.yaml").find("sequence_parallel: false"), std::string::npos);
}

TEST_F(PlanCommand, LeavesOutWhatIsOfTheScenariosOwnCluster) {
  write("mine.yaml",
        "model: zb-1.5b\ncluster: {name: dgx-a100, network: {bandwidth: 100 Gbps}}\n"
        "schedule: {name: 1f1b}\nmemory: {capacity: 40 GiB}\n"
        "parallel: {pipeline_model_parallel_size: 2, data_parallel_size: 4}\npipelines: 2\n"
        "batch: {global_batch_size: 32, micro_batch_size: 4, seq_length: 1024}\n");
  const std::string narrow = " --tensor 1 --mbs 2 --schedules 1f1b --contention 0 ";
  const Outcome other = run("plan mine.yaml --cluster dgx-h100" + narrow);
  EXPECT_NE(other.output.find("memory.capacity of mine.yaml is left out"), std::string::npos)
      << other.output;
  const Outcome planned =
      run("plan mine.yaml cluster.network.latency='5 us' -o best.yaml" + narrow);
  EXPECT_EQ(planned.output.find("left out"), std::string::npos) << planned.output;
  EXPECT_NE(read("best.yaml").find("100 Gbps"), std::string::npos) << read("best.yaml");
  EXPECT_EQ(run("run best.yaml").code, 0);
  EXPECT_NE(run("plan mine.yaml" + narrow).output.find("mine.yaml's layout is not row 0"),
            std::string::npos);
  EXPECT_EQ(run("plan mine.yaml --cluster dgx-h100:16,dgx-a100" + narrow).code, 0);
}

TEST_F(PlanCommand, SaysWhatNeitherOptionsNorAScenarioSay) {
  const auto refused = [this](const std::string& line, const std::string& words) {
    const Outcome outcome = run("plan " + line);
    EXPECT_EQ(outcome.code, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(words), std::string::npos) << outcome.output;
  };
  refused("--model zb-1.5b", "--cluster is required, or a scenario to start from");
  refused("--cluster dgx-a100", "--model is required");
  refused("--model zb-1.5b --cluster dgx-a100", "samples of an iteration, such as 512");
  refused(quickstart_, "whose seconds follow from its model and cluster");
  write("mine.yaml",
        "model: zb-1.5bb\ncluster: dgx-a100\nschedule: 1f1b\n"
        "parallel: {pipeline_model_parallel_size: 2}\n"
        "batch: {num_microbatches: 4, micro_batch_size: 1, seq_length: 1024}\n");
  refused("mine.yaml", "mine.yaml:1:8: model 'zb-1.5bb' is not known");
  refused("mine.yaml mine.yaml", "one scenario");
}

// A value that the scenario says is located there, one that is typed where it was typed.
TEST_F(PlanCommand, LocatesWhatWasRead) {
  const auto refused = [this](const std::string& line, const std::string& words) {
    const Outcome outcome = run("plan " + line);
    EXPECT_EQ(outcome.code, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(words), std::string::npos) << outcome.output;
  };
  write("odd.yaml",
        "model: zb-1.5b\ncluster: dgx-a100\nschedule: 1f1b\n"
        "parallel:\n  pipeline_model_parallel_size: 11\n"
        "batch: {global_batch_size: 12, micro_batch_size: 1, seq_length: 1024}\n");
  refused("odd.yaml --baseline none", "odd.yaml:5:3: dgx-a100 has nodes of 8 GPUs");
  refused("odd.yaml --gpus 13", "command line:1:30: dgx-a100 has nodes of 8 GPUs");
  refused("odd.yaml --gpus 16 --base usuall", "unknown baseline 'usuall'; did you mean 'usual'?");
  refused("odd.yaml --gpus 16 --expert 2", "zb-1.5b has no experts");
  refused("odd.yaml --clu dgx-a10 --gpus 16",
          "command line:1:29: cluster: 'dgx-a10' is not known; did you mean 'dgx-a100'?\n"
          "  pipesim plan odd.yaml --clu dgx-a10");
  refused("odd.yaml --gpus 16 --memory-lim=72", "command line:1:46: memory.capacity: '72'");
}

TEST_F(PlanCommand, WritesNoNameThatASpreadsheetWouldCompute) {
  std::filesystem::create_directory(folder_ / "mine");
  write("mine/clusters.yaml", "\"=1+1\": {title: Nodes of mine, like: dgx-a100}\n");
  const Outcome planned =
      run(plan_ + "--cluster =1+1 --contention 0 --catalog mine --csv plan.csv");
  EXPECT_EQ(planned.code, 0) << planned.output;
  EXPECT_NE(read("plan.csv").find("\n'=1+1,1,"), std::string::npos) << read("plan.csv");
}

TEST_F(PlanCommand, SaysTheCausalUtilizationOfLongSequences) {
  const std::string longer =
      std::regex_replace(plan_, std::regex("--seq-length 1024"), "--seq-length 262144");
  const Outcome planned = run(longer + "--contention 0 --wide");
  EXPECT_NE(planned.output.find("MFU, causal"), std::string::npos) << planned.output;
  EXPECT_EQ(run(plan_ + "--contention 0").output.find("causal"), std::string::npos);
}

TEST_F(PlanCommand, WritesABaselineThatRunsAsItSays) {
  EXPECT_EQ(run(plan_ + "--contention 0 --json plan.json").code, 0);
  const auto baseline = nlohmann::json::parse(read("plan.json"))["plans"][0]["baseline"];
  write("baseline.yaml", baseline["scenario"]);
  EXPECT_EQ(run("run baseline.yaml --json run.json").code, 0);
  const auto result = nlohmann::json::parse(read("run.json"))["results"][0];
  EXPECT_EQ(baseline["iteration_seconds"], result["iteration_seconds"]);
  EXPECT_EQ(baseline["peak_memory_bytes"], result["peak_memory_bytes"]);
}

TEST_F(PlanCommand, WritesOnePageThatNeedsNothingElse) {
  EXPECT_EQ(run(plan_ + "--contention 0 --html page.html --json plan.json").code, 0);
  const std::string page = read("page.html");
  for (const char* word : {"http:", "https:", "src=", "@import", "{{"}) {
    EXPECT_EQ(page.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(run("report plan.json -o report.html").code, 0);
  EXPECT_NE(read("report.html").find("\"command\":null"), std::string::npos);
  const Outcome both = run("report plan.json plan.json -o both.html");
  EXPECT_EQ(both.code, 2);
  EXPECT_NE(both.output.find("a plan is reported alone"), std::string::npos) << both.output;
}

TEST_F(PlanCommand, PagesSayWhyALayoutIsNotRun) {
  EXPECT_EQ(run(plan_ + "--contention 0 --json plan.json").code, 0);
  auto plan = nlohmann::json::parse(read("plan.json"));
  plan["plans"][0]["layouts"][0]["scenario"] = "schedule: 1f1b\nnosuch: 1\n";
  write("other.json", plan.dump());
  EXPECT_EQ(run("report other.json -o page.html").code, 0);
  EXPECT_NE(read("page.html").find("row 1 of the plan:1:1: "), std::string::npos);
}

TEST_F(PlanCommand, ShowsWhatItHasWhenItIsInterrupted) {
  // Many minutes of work.
  const Outcome outcome =
      shell("timeout --preserve-status -s INT 3 " + std::string(PIPESIM_EXECUTABLE) +
            " plan --model llama3-70b --cluster dgx-h100 --gpus 512 --global-batch-size 4096 "
            "--seq-length 8192 --exhaustive --wide -o best.yaml");
  EXPECT_EQ(outcome.code, 130) << outcome.output;
  EXPECT_TRUE(outcome.output.starts_with("INCOMPLETE: ")) << outcome.output;
  EXPECT_NE(outcome.output.find("undecided"), std::string::npos) << outcome.output;
}

TEST_F(PlanCommand, RefusesTwoOutputsOnStandardOutputBeforeItSearches) {
  // A search would end with 1: nothing fits.
  const Outcome outcome = run(plan_ + "--memory-limit '1 MiB' --csv - --json -");
  EXPECT_EQ(outcome.code, 2) << outcome.output;
  EXPECT_NE(outcome.output.find("only one output can go to standard output"), std::string::npos)
      << outcome.output;
}

TEST_F(PlanCommand, PricesATokenBudgetOnSeveralClusters) {
  const Outcome outcome =
      run(plan_ +
          "--cluster dgx-h100 --tokens 2T --price-per-gpu-hour 1.5,3 --contention 0 "
          "--best 1 --json -");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const auto plans = nlohmann::json::parse(outcome.output)["plans"];
  ASSERT_EQ(plans.size(), 2U);
  for (const auto& plan : plans) {
    const double price = plan["cluster"] == "dgx-h100" ? 3 : 1.5;
    const auto& best = plan["layouts"][0];
    const double rate = best["tokens_per_second_per_gpu"];
    EXPECT_NEAR(best["gpu_hours"], 2e12 / rate / 3600, 1);
    EXPECT_NEAR(best["days"].get<double>() * 24 * 8, best["gpu_hours"], 1);
    EXPECT_NEAR(best["price"], price * best["gpu_hours"].get<double>(), 1);
  }
}

TEST_F(PlanCommand, AsksSeveralQuestionsAtOnce) {
  const std::string asked =
      "plan --model llama3-8b --cluster dgx-h100:16,dgx-h200:8 --precision bf16,fp8 "
      "--global-batch-size 64 --seq-length 4096 --tensor 1,2 --micro-batch-size 1 --schedules 1f1b "
      "--no-offload --contention 0 ";
  const Outcome outcome =
      run(asked + "--what-if network=0.5,vocabulary=2,schedule=1f1b --json p.json");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const auto document = nlohmann::json::parse(read("p.json"));
  std::vector<std::string> labels;
  for (const auto& plan : document["plans"]) {
    labels.push_back(plan["label"]);
    EXPECT_EQ(plan["gpus"], plan["cluster"] == "dgx-h100" ? 16 : 8);
    std::vector<std::string> changes;
    for (const auto& each : plan["what_ifs"]) changes.push_back(each["change"]);
    EXPECT_EQ(changes, (std::vector<std::string>{"bandwidth between nodes x 0.5", "vocabulary x 2",
                                                 "schedule 1f1b"}));
  }
  EXPECT_EQ(labels, (std::vector<std::string>{"dgx-h100:16 bf16", "dgx-h100:16 fp8",
                                              "dgx-h200:8 bf16", "dgx-h200:8 fp8"}));
  EXPECT_NE(outcome.output.find("dgx-h200:8 fp8, schedule 1f1b: "), std::string::npos)
      << outcome.output;
  EXPECT_EQ(run("report p.json -o page.html").code, 0);
  for (const auto& [words, wrong] : std::vector<std::pair<std::string, std::string>>{
           {"--what-if netwrok=0.5", "did you mean 'network'?"},
           {"--what-if network=half", "expected a factor above 0"},
           {"--what-if schedule=1f1", "did you mean '1f1b'?"},
           {"--cluster dgx-h100", "how many GPUs?"},
           {"--cluster dgx-h100:x", "expected CLUSTER:GPUS"},
           {"--precision fp9", "memory.precision"}}) {
    const Outcome refused = run(asked + words);
    EXPECT_EQ(refused.code, 2) << words;
    EXPECT_NE(refused.output.find(wrong), std::string::npos) << refused.output;
  }
}

TEST_F(PlanCommand, TakesSettingsBehindAList) {
  const Outcome outcome = run(plan_ +
                              "--contention 0 --best 1 --json - --cluster dgx-h100 "
                              "cluster.network.bandwidth='200 Gbps' --schedules v-half "
                              "cost.overlap_grad_reduce=true");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(nlohmann::json::parse(outcome.output)["plans"].size(), 2U);
}

TEST_F(PlanCommand, RefusesAnUnwritablePlaceBeforeItSearches) {
  for (const char* option : {"-o", "--json", "--csv"}) {
    const Outcome outcome = run(plan_ + option + " none/best");
    EXPECT_EQ(outcome.code, 2) << outcome.output;
    EXPECT_TRUE(outcome.output.starts_with("pipesim: command line:1:")) << outcome.output;
    EXPECT_NE(outcome.output.find("cannot write 'none/best'"), std::string::npos);
  }
  EXPECT_EQ(files(), 0U);
}

TEST_F(PlanCommand, WritesTheConfigurationOfAFrameworkThatRunsIt) {
  const Outcome outcome = run(plan_ + "--runs-on megatron-bridge --export out --json plan.json");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(read("out/megatron.sh").starts_with("#!/usr/bin/env bash\n# Megatron-LM: "));
  EXPECT_NE(read("out/megatron-bridge.yaml").find("overlap_grad_reduce: true"), std::string::npos);
  const auto plan = nlohmann::json::parse(read("plan.json"))["plans"][0];
  for (const auto& layout : plan["layouts"]) {
    EXPECT_EQ(layout["runs_on"], nlohmann::json({"megatron", "megatron-bridge"}));
    const auto& parts = layout["difference_seconds"];
    double sum = 0;
    for (const char* part : {"compute", "communication", "bubble", "recompute"}) {
      sum += parts[part].get<double>();
    }
    const auto expected = [](const auto& of) {
      const auto& contended = of["contended"];
      return (contended.is_null() ? of : contended)["iteration_seconds"].template get<double>();
    };
    EXPECT_NEAR(sum, expected(layout) - expected(plan["baseline"]), 1e-12);
  }
  EXPECT_NE(outcome.output.find("0  baseline"), std::string::npos) << outcome.output;
}

TEST_F(PlanCommand, SaysWhyOneRowIsSlowerThanAnother) {
  EXPECT_EQ(run(plan_ + "-o best.yaml").code, 0);
  const Outcome outcome = run(plan_ + "--all --baseline best.yaml --why 0,2");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("number 2 ("), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("  bubble "), std::string::npos) << outcome.output;
  EXPECT_EQ(run(plan_ + "--baseline none --why 0,1").code, 2);
  EXPECT_EQ(run(plan_ + "--why 1").code, 2);
  EXPECT_EQ(run(plan_ + "--baseline missing.yaml").code, 2);
}

TEST_F(PlanCommand, NamesWhatIsWrongAndWritesNothing) {
  const auto fails = [&](const std::string& arguments, int code, const std::string& words) {
    const Outcome outcome = run(arguments + " -o best.yaml");
    EXPECT_EQ(outcome.code, code) << outcome.output;
    EXPECT_NE(outcome.output.find(words), std::string::npos) << outcome.output;
  };
  const std::string batch = " --gpus 8 --global-batch-size 32 --seq-length 1024";
  fails("plan --model zb-1.5 --cluster dgx-a100" + batch, 2, "did you mean 'zb-1.5b'?");
  fails("plan --model zb-1.5b --cluster dgx-a10" + batch, 2, "did you mean 'dgx-a100'?");
  fails(plan_ + "--schedules zb-h", 2, "did you mean 'zb-h1'?");
  fails(plan_ + "--schedules dualpipe", 2, "two copies");
  fails(plan_ + "--recompute ful", 2, "did you mean 'full'?");
  fails(plan_ + "--tokens 15X", 2, "'15X': expected a number of tokens");
  fails(plan_ + "--tokens ''", 2, "'': expected a number of tokens");
  fails(plan_ + "--price-per-gpu-hour 2", 2, "needs --tokens");
  fails(plan_ + "cluster.name=dgx-h100", 2, "cluster.name is what --cluster says");
  fails(plan_ + "batch.seq_length=512", 2, "batch.seq_length is what --seq-length says");
  fails(plan_ + "--memory-limit '9 GiB' memory.capacity='8 GiB'", 2, "what --memory-limit says");
  fails(plan_ + "memory.precision=fp8", 2,
        "memory.precision: a100-sxm-80gb has no fp8; it has bf16, fp16, fp32");
  fails(plan_ + "--precision fp4", 2, "did you mean 'nvfp4'");
  fails("plan --model gpt-4 --cluster dgx-a100" + batch, 2, "`pipesim list models` prints");
  fails("plan --model zb-1.5b --cluster lab" + batch, 2, "`pipesim list clusters` prints");
  fails("plan --model zb-1.5b --cluster lab.yaml" + batch, 2, "clusters.yaml in --catalog DIR");
  fails(plan_ + "--seq-length 4q", 2, "expected a whole number, such as 8192 or 8k, not '4q'");
  fails(plan_ + "--seq-length 9999999999", 2, "expected a whole number, such as 8192 or 8k");
  fails(plan_ + "--tokens 15", 2, "'15' are fewer tokens than the 32768 of one iteration");
  fails(plan_ + "--fp8", 2, "unknown option '--fp8': give memory.precision=fp8");
  fails(plan_ + "--colour", 2, "unknown option '--colour'; `pipesim plan --help` has all");
  fails(plan_ + "--schedules po-h", 2, "po-h offloads activations, which --no-offload excludes");
  fails(plan_ + "batch.micro_batch_size=1", 2, "it is planned");
  fails(plan_ + "cost.overlap_grad_reduc=true", 2, "overlap_grad_reduce");
  fails("plan --model zb-1.5b --cluster dgx-a100 --gpus 12 --global-batch-size 32 --seq-length 64",
        2, "nodes of 8 GPUs");
  fails(plan_ + "--memory-limit '2 GiB'", 1, "layouts fits in 2.00 GiB\n  nearest: ");
  fails(plan_ + "--memory-limit '2 GiB'", 1, " over\n  it fits with ");
  fails(plan_ + "--memory-limit '2 GiB'", 1, "nearest change that makes it fit: ");
  fails(plan_ + "--memory-limit '0 GiB'", 2, "memory.capacity: a GPU has memory: expected more");
  fails(plan_ + "--memory-limit ''", 2, "memory.capacity: expected a size");
  fails(plan_ + "memory.capacity=0", 2, "memory.capacity: a GPU has memory: expected more");
  // The reason that stands in the way last, of all that are asked for.
  fails(plan_ + "--pipeline 3", 1, "tp 1 x cp 1 leave 8 GPUs, which pp 3 does not divide");
  fails("plan --model zb-1.5b --cluster dgx-a100 --gpus 8 --gbs 31 --seq 1k --tp 1 --pp 1", 1,
        "8 data ranks do not divide the global batch of 31 (docs/reference/plan.md#the-space); a "
        "batch of a multiple of 8 loses no division");
  const std::string on_64 =
      "plan --model llama3-70b --cluster dgx-h100 --gpus 64 --gbs 512 --seq 4k ";
  fails(on_64 + "--tp 128", 1, "no layout divides: tp 128 x cp 1 do not divide 64 GPUs");
  fails(on_64 + "--tp 16", 1,
        "num_query_groups 8 does not divide by tensor_model_parallel_size 16");
  fails(on_64 + "--pp 4 --mbs 3", 1, "micro batches of 3 do not divide the 32 samples");
  fails(on_64 + "--schedules interleaved-1f1b --pp 4 --vpp 60", 1,
        "no schedule and chunks that are tried put 80 layers on pp 4");
  fails(on_64 + "--schedules zb-v --runs-on zero-bubble", 1,
        "zero-bubble runs no layout that is asked for");
  // More than any of its changes brings, and less than the states take.
  fails(
      "plan --model llama3.1-405b --cluster dgx-a100 --schedules 1f1b --no-offload "
      "--defaults framework" +
          batch,
      1,
      "none; weights, gradients and optimizer states alone take 6.64 TiB, 90 GPUs: ask with --gpus "
      "96 or more");
  EXPECT_EQ(files(), 0U);
}

// A plan of one cluster twice, or of one size twice, did everything twice.
TEST_F(PlanCommand, RefusesAValueThatIsListedTwiceAtItsSecondPlace) {
  for (const auto& [lists, option, second] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"--cluster dgx-a100", "--cluster: 'dgx-a100'", ""},
           {"--pipeline 2,4,2", "--pipeline: '2'", "2,4,"},
           {"--pipeline=2,2 --virtual 2", "--pipeline: '2'", "--pipeline=2,"},
           {"--schedules 1f1b", "--schedules: '1f1b'", ""},
           {"--recompute none,none", "--recompute: 'none'", "none,"},
           {"--vocabulary vocab-1,vocab-1", "--vocabulary: 'vocab-1'", "vocab-1,"}}) {
    const Outcome outcome = run(plan_ + lists);
    EXPECT_EQ(outcome.code, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(option + " is there twice"), std::string::npos) << outcome.output;
    // The place is counted in what was typed.
    const size_t values = lists.find('=') == std::string::npos ? lists.find(' ') + 1 : 0;
    const size_t column = ("pipesim " + plan_).size() + values + second.size() + 1;
    EXPECT_TRUE(outcome.output.starts_with("pipesim: command line:1:" + std::to_string(column)))
        << column << ' ' << outcome.output;
  }
  // Prices may be equal.
  EXPECT_EQ(run(plan_ + "--cluster dgx-h100 --tokens 2T --price-per-gpu-hour 2,2 --contention 0 "
                        "--best 1")
                .code,
            0);
}

// An option's value is located at the option, not behind the length of a scenario's key.
TEST_F(PlanCommand, LocatesAMemoryLimitWhereItStands) {
  const Outcome outcome = run(plan_ + "--memory-limit banana");
  EXPECT_EQ(outcome.code, 2);
  const size_t column = ("pipesim " + plan_ + "--memory-limit ").size() + 1;
  EXPECT_TRUE(
      outcome.output.starts_with("pipesim: command line:1:" + std::to_string(column) + ": "))
      << outcome.output;
}

}  // namespace
}  // namespace pipesim::plan_test
