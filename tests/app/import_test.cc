// pipesim import of runs and configurations, as a person calls it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/app/command.h"

namespace pipesim::import_test {
namespace {

class Import : public testing::Command {
 protected:
  // Two ranks of 1F1B with three microbatches, six iterations.
  void write_passes() const {
    std::string text = "rank,iteration,kind,start_ms,end_ms\n";
    const auto add = [&](int rank, int iteration, const char* kind, double start, double length) {
      text += fmt::format("{},{},{},{},{}\n", rank, iteration, kind, start, start + length);
    };
    for (int i = 0; i < 6; ++i) {
      add(0, i, "F", 0, 10);
      add(0, i, "F", 10, 10);
      add(1, i, "F", 10, 10);
      add(1, i, "BW", 20, 20);
      add(0, i, "BW", 40, 20);
      add(0, i, "F", 60, 10);
      add(1, i, "F", 40, 10);
      add(1, i, "BW", 50, 20);
      add(0, i, "BW", 70, 20);
      add(1, i, "F", 70, 10);
      add(1, i, "BW", 80, 20);
      add(0, i, "BW", 100, 20);
    }
    write("passes.csv", text);
  }
};

TEST_F(Import, OfACsvMakesAScenarioThatRunsAndKeepsWhatTheFileSays) {
  write("s.csv",
        "# beside `csv` in a scenario: `offload: {bandwidth: alone}`\n"
        "0F0,0OUT0,0F1,0IN0,0B1,0B0\n");
  EXPECT_EQ(run("import s.csv -o s.yaml").code, 0);
  const testing::Outcome ran = run("run s.yaml");
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(read("s.yaml").starts_with("# beside `csv` in a scenario")) << read("s.yaml");
}

TEST_F(Import, OfSettingsPrintsNothingThatATerminalWouldObey) {
  write("run.sh", "--num-layers 4 --unheard-of-layers \"a\x1b[2Jb\"\n");
  for (const char* output : {"", " -o -", " -o run.yaml"}) {
    const testing::Outcome told = run(std::string("import run.sh --format megatron") + output);
    EXPECT_EQ(told.output.find('\x1b'), std::string::npos) << told.output;
    EXPECT_NE(told.output.find("a\\x1b[2Jb"), std::string::npos) << told.output;
  }
}

TEST_F(Import, OfPassesComparesTheRunAndMakesAScenario) {
  write_passes();
  const testing::Outcome told = run("import passes.csv --format passes");
  EXPECT_EQ(told.code, 0) << told.output;
  EXPECT_NE(told.output.find("2 ranks, 1 chunk each, 3 microbatches; schedule: 1f1b"),
            std::string::npos)
      << told.output;
  EXPECT_NE(told.output.find("the run        120.000 ms"), std::string::npos) << told.output;
  EXPECT_NE(told.output.find("each pass      120.000 ms  +0.00%"), std::string::npos)
      << told.output;
  EXPECT_EQ(run("import passes.csv --format passes -o run.yaml").code, 0);
  const testing::Outcome other = run("run run.yaml schedule=zb-h1 --csv -");
  EXPECT_EQ(other.code, 0) << other.output;
  EXPECT_EQ(run("import passes.csv --format passes -o -").code, 2);
}

// Without --format a file is taken for what it looks like.
TEST_F(Import, KnowsAFileByItsLooks) {
  write_passes();
  write("run.sh", "--num-layers 4 --hidden-size 512\n");
  write("job.toml", "[training]\nseq_len = 2048\n");
  write("ds.json", R"({"train_batch_size": 16, "zero_optimization": {"stage": 1}})");
  write("ZB.CSV", "# of mine\n,0F0,0F1,0B0,0B1\n");
  EXPECT_EQ(run("import ZB.CSV").output, run("import ZB.CSV --format torch").output);
  write("s.yaml", "schedule: 1f1b\nparallel: {pipeline_model_parallel_size: 2}\n");
  EXPECT_NE(run("import s.yaml").output.find("a scenario already"), std::string::npos);
  write("t.json.gz", "\x1f\x8b");
  EXPECT_NE(run("import t.json.gz").output.find("gunzip"), std::string::npos);
  write("trace.json", R"({"schemaVersion": 1, "traceEvents": []})");
  write("config.json", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama"})");
  const auto alike = [this](const std::string& file, const std::string& format) {
    const testing::Outcome guessed = run("import " + file);
    EXPECT_EQ(guessed.code, run("import " + file + " --format " + format).code) << file;
    EXPECT_NE(guessed.output.find(file), std::string::npos) << guessed.output;
    return guessed.output;
  };
  EXPECT_EQ(run("import passes.csv").output, run("import passes.csv --format passes").output);
  EXPECT_NE(alike("run.sh", "megatron").find("Megatron-LM's settings"), std::string::npos);
  EXPECT_NE(alike("job.toml", "torchtitan").find("torchtitan"), std::string::npos);
  EXPECT_NE(alike("ds.json", "deepspeed").find("DeepSpeed"), std::string::npos);
  EXPECT_EQ(run("import trace.json").output, run("import trace.json --format kineto").output);
  EXPECT_EQ(run("import .").output, run("import . --format kineto").output);
  EXPECT_NE(run("import config.json").output.find("plan --model FILE"), std::string::npos);
  write("ltd.json", R"({"train_batch_size": 16, "data_efficiency": {"data_routing":
      {"random_ltd": {"enabled": true, "model_type": "decoder"}}}})");
  EXPECT_NE(alike("ltd.json", "deepspeed").find("DeepSpeed"), std::string::npos);
}

TEST_F(Import, OfPassesNamesWhatIsWrongAndWritesNothing) {
  write("passes.csv", "rank,kind,start_ms,end_ms\n0,F,0,x\n");
  const testing::Outcome wrong = run("import passes.csv --format passes -o run.yaml");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.output.find("passes.csv:2:7: expected a number"), std::string::npos)
      << wrong.output;
  EXPECT_EQ(run("run run.yaml").code, 2);
  EXPECT_EQ(run("import . --format passes").code, 2);
  EXPECT_EQ(run("import nothing --format kineto").code, 2);
  EXPECT_EQ(run("import passes.csv --format passes --range F").code, 2);
}

TEST_F(Import, OfMegatronsArgumentsStandsBesideALog) {
  write("run.sh",
        "# start 8 processes\n--num-layers 16 --hidden-size 2048 --num-attention-heads 16 "
        "--vocab-size 32000 --max-position-embeddings 2048 --seq-length 2048 --bf16 "
        "--pipeline-model-parallel-size 4 --micro-batch-size 1 --global-batch-size 16\n");
  const testing::Outcome bare = run("import run.sh --format megatron");
  EXPECT_EQ(bare.code, 1) << bare.output;
  EXPECT_NE(bare.output.find("# missing: the cluster: --cluster NAME"), std::string::npos);
  std::string log;
  for (int i = 1; i <= 9; ++i) {
    log += fmt::format(" iteration {}/ 9 | elapsed time per iteration (ms): {} | x\n", i,
                       i < 4 ? 9000 : 200);
  }
  write("run.log", log + "[Rank 0] memory (MB) | allocated: 1 | max allocated: 9000.5 | z\n");
  const testing::Outcome told =
      run("import run.sh --format megatron --cluster dgx-h100 --log run.log -o run.yaml");
  EXPECT_EQ(told.code, 0) << told.output;
  EXPECT_NE(told.output.find("measured:  200.000 ms an iteration, the median of 6 lines"),
            std::string::npos)
      << told.output;
  EXPECT_NE(told.output.find("measured:  8.79 GiB allocated at most"), std::string::npos);
  EXPECT_NE(told.output.find("pipesim anchor run.yaml --log run.log -o anchor.yaml"),
            std::string::npos);
  const testing::Outcome outside = run("anchor run.yaml --log run.log -o anchor.yaml");
  EXPECT_EQ(outside.code, 1);
  EXPECT_NE(outside.output.find("than the band of"), std::string::npos) << outside.output;
  EXPECT_NE(told.output.find("than the band of"), std::string::npos) << told.output;
  EXPECT_EQ(run("anchor run.yaml --log run.log --accept -o anchor.yaml").code, 0);
  EXPECT_EQ(run("run run.yaml").code, 0);
  write("empty.log", "nothing\n");
  EXPECT_EQ(run("import run.sh --format megatron --cluster dgx-h100 --log empty.log").code, 2);
  EXPECT_EQ(run("import run.sh odd --format megatron").code, 2);
  EXPECT_EQ(run("import run.sh --format megatron --cluster dgx-h99").code, 2);
}

TEST_F(Import, OfOtherFrameworksTakesSettingsBesideTheFile) {
  write(
      "job.toml",
      "[model]\nname = 'llama3'\nflavor = '8B'\n[training]\nlocal_batch_size = 4\nseq_len = 2048\n"
      "[parallelism]\npipeline_parallel_degree = 4\n");
  EXPECT_EQ(run("import job.toml --format torchtitan --cluster dgx-h100").code, 1);
  EXPECT_EQ(
      run("import job.toml world_size=64 --format torchtitan --cluster dgx-h100 -o t.yaml").code,
      0);
  EXPECT_EQ(run("run t.yaml").code, 0);
  write("ds.json",
        "{\"train_micro_batch_size_per_gpu\": 1, \"gradient_accumulation_steps\": 8, \"bf16\": "
        "{\"enabled\": true}}");
  EXPECT_EQ(run("import ds.json --format deepspeed").code, 1);
  EXPECT_EQ(run("import ds.json model=llama3-8b num_stages=8 world_size=8 seq_length=4096 "
                "--format deepspeed --cluster dgx-h100 -o d.yaml")
                .code,
            0);
  EXPECT_EQ(run("run d.yaml").code, 0);
  // NeMo's templates of chats.
  write(
      "nemo.yaml",
      "trainer: {devices: 8, precision: bf16}\nmodel:\n  seq_length: 4096\n  micro_batch_size: 1\n"
      "  global_batch_size: 8\n  data: {chat_prompt_tokens: {turn: \"\\x00\", end: \"\\x0A\"}}\n");
  EXPECT_EQ(run("import nemo.yaml model=llama3-8b --cluster dgx-h100 -o n.yaml").code, 0);
  write("bad.json", "{\"a\": }");
  EXPECT_NE(run("import bad.json --format deepspeed").output.find("bad.json:1:7"),
            std::string::npos);
}

}  // namespace
}  // namespace pipesim::import_test
