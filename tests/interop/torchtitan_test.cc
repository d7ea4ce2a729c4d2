// Job files of torchtitan: its settings alone, and read back as the same scenario.
#include <algorithm>
#include <gtest/gtest.h>
#include <optional>
#include <sstream>

#include "models/stage_ends.h"
#include "sim/case/program.h"
#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/interop/configurations/configuration.h"
#include "sim/interop/frameworks/draft.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim::torchtitan_test {
namespace {

Case torchtitan_case(const std::string& schedule, const std::string& sizes,
                     const std::string& more = {}) {
  const std::string text =
      "model: llama3-8b\ncluster: dgx-h100\nschedule: " + schedule + "\nparallel: {" + sizes +
      "}\nbatch: {num_microbatches: 8, micro_batch_size: 2, seq_length: 8192}\n" + more;
  return prepare_first(read_scenario(YamlSource("s.yaml", text)));
}

std::string job_of(const Case& made) {
  return configuration_of(Framework::kTorchtitan, made, *make_program(made)).text;
}

std::string job_refusal(const Case& made) {
  try {
    return job_of(made);
  } catch (const InfeasibleError& error) {
    return error.what();
  }
}

const std::string kFsdp = "memory: {data_parallel_sharding_strategy: optim_grads_params}\n";
const std::string kFsdpInPipeline =
    "memory: {data_parallel_sharding_strategy: optim_grads_params, reduce_every_microbatch: "
    "false}\n";
const std::string kBlocking = "framework: {transfers: blocking}\n";

std::vector<Case> torchtitan_cases() {
  const std::string four = "pipeline_model_parallel_size: 4";
  const std::string looped = four + ", virtual_pipeline_model_parallel_size: 2";
  return {
      torchtitan_case("1f1b", "pipeline_model_parallel_size: 1, data_parallel_size: 8", kFsdp),
      torchtitan_case("1f1b", "pipeline_model_parallel_size: 1, data_parallel_size: 8"),
      torchtitan_case("1f1b",
                      "pipeline_model_parallel_size: 1, data_parallel_size: 8, "
                      "context_parallel_size: 2, cp_comm_type: p2p",
                      "memory: {data_parallel_sharding_strategy: optim_grads_params, "
                      "data_parallel_shard_degree: 4, reshard_after_forward: false}\nrecompute: "
                      "full\n"),
      torchtitan_case("1f1b", four + ", tensor_model_parallel_size: 2, sequence_parallel: true",
                      kBlocking + "recompute: pointwise\n"),
      torchtitan_case("1f1b", four + ", data_parallel_size: 2, num_layers_per_stage: [8, 9, 8, 7]",
                      kBlocking + kFsdpInPipeline),
      torchtitan_case("gpipe", four + ", tensor_model_parallel_size: 2"),
      torchtitan_case("interleaved-1f1b", looped + ", data_parallel_size: 2",
                      kBlocking + kFsdpInPipeline),
      torchtitan_case("interleaved-zb", looped),
      torchtitan_case("looped-bfs", looped),
      torchtitan_case("zb-v-handmade", four),
      torchtitan_case("dualpipev", four)};
}

TEST(TorchtitanExport, ReadsBackAsTheSameScenario) {
  for (const Case& made : torchtitan_cases()) {
    const std::string job = job_of(made);
    const Draft draft =
        torchtitan_draft(read_toml_settings("torchtitan", "job.toml", job), "dgx-h100");
    EXPECT_TRUE(draft.missing.empty() && draft.unknown.empty() && draft.not_modelled.empty())
        << job << scenario_of(draft);
    const Case again =
        prepare_first(read_scenario(YamlSource("imported.yaml", scenario_of(draft))));
    EXPECT_EQ(again.choice.name, made.choice.name) << job;
    EXPECT_EQ(again.layout, made.layout) << job;
    EXPECT_EQ(again.scenario->batch.microbatches, made.scenario->batch.microbatches) << job;
    EXPECT_EQ(again.scenario->parallel.data, made.scenario->parallel.data) << job;
    const Report one = simulate(made).report;
    const Report other = simulate(again).report;
    EXPECT_EQ(one.iteration, other.iteration) << job << scenario_of(draft);
    EXPECT_EQ(*one.peak_memory, *other.peak_memory) << job << scenario_of(draft);
    EXPECT_EQ(job_of(again), job);
  }
}

TEST(TorchtitanExport, WritesItsSettingsAlone) {
  const YamlSource source =
      YamlSource::from_file(PIPESIM_SOURCE_DIR "/tests/interop/data/torchtitan.yaml", {});
  const YAML::Node known = source.root().node();
  size_t keys = 0;
  for (const Case& made : torchtitan_cases()) {
    std::istringstream lines(job_of(made));
    std::string section;
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || line.front() == '#') continue;
      if (line.front() == '[') {
        section = line.substr(1, line.size() - 2);
        ASSERT_TRUE(known[section].IsDefined()) << section;
        continue;
      }
      const std::string key = line.substr(0, line.find(' '));
      const auto names = known[section].as<std::vector<std::string>>();
      EXPECT_EQ(std::ranges::count(names, key), 1) << section << "." << key;
      ++keys;
    }
  }
  EXPECT_GT(keys, 100U);
}

Draft draft_of_job(const std::string& text) {
  return torchtitan_draft(read_toml_settings("torchtitan", "job.toml", text), "dgx-h100");
}

std::string value_of(const Section& section, const std::string& key) {
  const auto found = std::ranges::find(section, key, &Section::value_type::first);
  return found == section.end() ? "-" : found->second;
}

TEST(TorchtitanImport, RecomputesEverySecondLayerUnlessToldHow) {
  const std::string job = "world_size = 8\n[model]\nname = \"llama3\"\nflavor = \"8B\"\n";
  EXPECT_EQ(draft_of_job(job).recompute, "{granularity: full, every: 2}");
  EXPECT_EQ(draft_of_job(job + "[activation_checkpoint]\nselective_ac_option = \"op\"\n").recompute,
            "pointwise");
  EXPECT_EQ(draft_of_job(job + "[activation_checkpoint]\nmode = \"none\"\n").recompute, "");
}

TEST(TorchtitanImport, ReadsASectionOfFewerBitsWhereAConverterNeedsIt) {
  const auto job = [](const std::string& model, const std::string& converters) {
    return draft_of_job("world_size = 8\n[model]\n" + model + "\nconverters = [" + converters +
                        "]\n[quantize.linear.float8]\nfilter_fqns = [\"output\"]\n"
                        "[quantize.grouped_mm.float8]\nfqns = [\"experts\"]\n");
  };
  const std::string dense = "name = \"llama3\"\nflavor = \"8B\"";
  const std::string experts = "name = \"deepseek_v3\"\nflavor = \"16B\"";
  const Draft none = job(dense, "");
  EXPECT_TRUE(none.stops.empty());
  EXPECT_EQ(value_of(none.memory, "precision"), "bf16");
  const Draft linear = job(dense, "\"quantize.linear.float8\"");
  EXPECT_TRUE(linear.stops.empty());
  EXPECT_EQ(value_of(linear.memory, "precision"), "fp8");
  EXPECT_EQ(value_of(job(dense, "\"quantize.linear.mx\"").memory, "precision"), "mxfp8");
  EXPECT_TRUE(job(experts, "").stops.empty());
  EXPECT_TRUE(
      job(experts, "\"quantize.linear.float8\", \"quantize.grouped_mm.float8\"").stops.empty());
  const Draft apart =
      draft_of_job("world_size = 8\n[model]\n" + experts + "\nconverters = [\"float8\"]\n");
  ASSERT_EQ(apart.stops.size(), 1U);
  EXPECT_EQ(apart.stops[0].first, "model.converters");
}

TEST(TorchtitanImport, DividesExpertsAsTheSettingSays) {
  const std::string job =
      "world_size = 16\n[model]\nname = \"deepseek_v3\"\nflavor = \"16B\"\n[parallelism]\n"
      "tensor_parallel_degree = 2\nexpert_parallel_degree = 8\n";
  EXPECT_EQ(value_of(draft_of_job(job).parallel, "expert_tensor_parallel_size"), "-");
  const Draft one = draft_of_job(job + "expert_tensor_parallel_degree = 1\n");
  EXPECT_EQ(value_of(one.parallel, "expert_tensor_parallel_size"), "1");
  EXPECT_TRUE(one.not_modelled.empty());
}

TEST(TorchtitanImport, RefusesADiffusionModel) {
  EXPECT_THROW(draft_of_job("[model]\nname = \"flux\"\n[encoder]\nt5_encoder = \"t5\"\n"),
               InputError);
}

TEST(TorchtitanExport, SaysWhyItDoesNotRunACase) {
  const std::string four = "pipeline_model_parallel_size: 4";
  const auto refused = [](const Case& made, const std::string& why) {
    const std::string text = job_refusal(made);
    EXPECT_NE(text.find("torchtitan does not run it: "), std::string::npos) << text;
    EXPECT_NE(text.find(why), std::string::npos) << text;
  };
  refused(torchtitan_case("1f1b", four), "1F1B waits for its messages");
  refused(torchtitan_case("gpipe", four, kBlocking), "GPipe waits for no messages");
  refused(torchtitan_case("zb-h1", four), "torch.distributed.pipelining has no zb-h1");
  refused(torchtitan_case("gpipe", four + ", data_parallel_size: 2", kFsdp),
          "reduces gradients once");
  refused(torchtitan_case("gpipe", four + ", data_parallel_size: 2",
                          "memory: {use_distributed_optimizer: true}\n"),
          "FSDP: optim_grads_params");
  refused(torchtitan_case("gpipe", four, "recompute: [mlp]\n"), "not mlp");
  refused(
      torchtitan_case("gpipe", four, "cost: {tp_comm_overlap: false, overlap_grad_reduce: true}\n"),
      "overlap_grad_reduce");
  refused(torchtitan_case("gpipe", four, "memory: {cross_entropy_loss_fusion: true}\n"),
          "fuses the loss");
  refused(torchtitan_case("gpipe", four + ", num_layers_per_stage: [4, 12, 4, 12]"),
          "as evenly as");
  refused(torchtitan_case("gpipe", four + ", context_parallel_size: 2, cp_comm_type: a2a",
                          kFsdpInPipeline),
          "not a2a");
  const Case other = prepare_first(read_scenario(YamlSource(
      "s.yaml", "model: mixtral-8x7b\ncluster: dgx-h100\nschedule: gpipe\nparallel: {" + four +
                    "}\nbatch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 4096}\n")));
  refused(other, "none of the flavours");
}

TEST(StageEnds, AreFoundAgain) {
  EXPECT_EQ(layers_less_ends(32, 4, 1, 1), (std::vector<int>{8, 9, 8, 7}));
  size_t found = 0;
  for (const int stages : {2, 4, 8}) {
    for (const int first : {0, 1, 2}) {
      for (const int last : {0, 1, 3}) {
        const std::vector<int> split = layers_less_ends(32, stages, first, last);
        const std::optional<StageEnds> ends = find_stage_ends(split);
        ASSERT_TRUE(ends);
        EXPECT_EQ(layers_less_ends(32, stages, ends->first, ends->last), split);
        ++found;
      }
    }
  }
  EXPECT_EQ(found, 27U);
  EXPECT_FALSE(find_stage_ends({4, 12, 4, 12}));
}

}  // namespace
}  // namespace pipesim::torchtitan_test
