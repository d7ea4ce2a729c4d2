#include "sim/scenario/modelled.h"

#include <gtest/gtest.h>

#include "models/layer_memory.h"
#include "sim/case/simulate.h"
#include "sim/execution/evaluate.h"
#include "sim/prepare/advice.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "tests/case/cases.h"

namespace pipesim::modelled_test {
namespace {

const std::string kBase =
    "schedule: 1f1b\n"
    "model: {num_layers: 8, hidden_size: 512, num_attention_heads: 8, vocab_size: 32000, "
    "max_position_embeddings: 1024}\n"
    "parallel: {pipeline_model_parallel_size: 4}\n"
    "batch: {num_microbatches: 8, micro_batch_size: 2}\n"
    "cost: {kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms}\n";
const std::string kLlama =
    "model={family: llama, num_layers: 8, hidden_size: 512, num_attention_heads: 8, vocab_size: "
    "32000, ffn_hidden_size: 1536}";

Scenario read(const std::vector<std::string>& overrides = {}, const std::string& text = kBase) {
  std::vector<Override> parsed;
  for (const auto& each : overrides)
    parsed.push_back(parse_override(each, {"command line", 1, 1, ""}));
  return read_scenario(YamlSource("s.yaml", text, parsed));
}

std::string refusal(const std::vector<std::string>& overrides, const std::string& text = kBase) {
  try {
    (void)read(overrides, text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Result run(const Scenario& scenario) { return simulate(prepare_first(scenario)); }

std::vector<int> layers(const Scenario& scenario) {
  std::vector<int> numbers;
  const Layout layout = *prepare_first(scenario).layout;
  for (const StageLayers& stage : layout.stages) numbers.push_back(stage.layers);
  return numbers;
}

TEST(Modelled, HasALearnedPositionForEveryTokenOfALongerSequence) {
  const auto positions = [](const std::string& seq_length) {
    return read({"batch.seq_length=" + seq_length}).modelled->model.max_position_embeddings;
  };
  EXPECT_EQ(positions("512"), 1024);
  EXPECT_EQ(positions("1024"), 1024);
  EXPECT_EQ(positions("4096"), 4096);
  EXPECT_EQ(read({kLlama, "batch.seq_length=4096"}).modelled->model.max_position_embeddings, 0);
}

TEST(Modelled, TakesBytesOfStagesFromTheModel) {
  const Scenario scenario = read();
  const Modelled& modelled = *scenario.modelled;
  EXPECT_EQ(modelled.context.seq_length, 1024);
  const LayerMemory layer = layer_memory(modelled.model, LayerKind::kDense, modelled.context);
  const Problem problem = prepare_first(scenario).problem;
  EXPECT_EQ(problem.stage(1).activation, 2 * layer.activation);
  EXPECT_EQ(problem.stage(1).weight_stash, 2 * layer.weight_stash);
  EXPECT_GT(problem.stage(3).activation, problem.stage(1).activation);  // logits
}

TEST(Modelled, ReportsPeakMemoryOfEveryDeviceAndTheLargest) {
  const Result simulation = run(read());
  Bytes largest;
  for (const DeviceReport& device : simulation.report.devices) {
    ASSERT_TRUE(device.memory);
    EXPECT_EQ(*device.peak_memory(), device.memory->total() + device.peak_activation);
    largest = std::max(largest, *device.peak_memory());
  }
  EXPECT_EQ(simulation.report.peak_memory, largest);
  EXPECT_GT(simulation.report.devices.front().memory->vocabulary, Bytes(0));
  EXPECT_EQ(simulation.report.devices[1].memory->vocabulary, Bytes(0));
}

TEST(Modelled, GivesEveryPipelineTheSameMemory) {
  const Result simulation = run(read({"pipelines=2"}));
  ASSERT_EQ(simulation.report.devices.size(), 8U);
  EXPECT_EQ(simulation.report.devices[0].memory->total(),
            simulation.report.devices[4].memory->total());
}

TEST(Modelled, SplitsLayersInEveryWay) {
  EXPECT_EQ(layers(read()), (std::vector<int>{2, 2, 2, 2}));
  EXPECT_EQ(layers(read({"parallel.num_layers_per_stage=[1, 2, 2, 3]"})),
            (std::vector<int>{1, 2, 2, 3}));
  EXPECT_EQ(layers(read({"parallel.pipeline_model_parallel_layout=Et|(ttt|)*2tL"})),
            (std::vector<int>{1, 3, 3, 1}));
  EXPECT_EQ(layers(read({"parallel.decoder_first_pipeline_num_layers=3",
                         "parallel.decoder-last-pipeline-num-layers=1"})),
            (std::vector<int>{3, 2, 2, 1}));
  EXPECT_EQ(
      layers(read({"model.num_layers=10", "parallel.account_for_embedding_in_pipeline_split=true",
                   "parallel.account_for_loss_in_pipeline_split=true"})),
      (std::vector<int>{2, 3, 3, 2}));
  // The logits of 32000 words are 3.5 layers of this size.
  EXPECT_EQ(layers(read({"parallel.balance=auto"})), (std::vector<int>{3, 3, 2, 0}));
}

TEST(Modelled, SaysWhereASplitIsWrong) {
  EXPECT_TRUE(has(refusal({"parallel.num_layers_per_stage=[1, 2, 2, 2]"}), "list 7 layers"));
  EXPECT_TRUE(has(refusal({"parallel.num_layers_per_stage=[4, 4]"}), "2 stages, but 1f1b has 4"));
  EXPECT_TRUE(has(refusal({"parallel.pipeline_model_parallel_layout=Et|t|t|xL"}), "'x' is none"));
  EXPECT_TRUE(has(refusal({"model.num_layers=9"}), "9 layers of model do not divide among 4"));
  EXPECT_TRUE(has(refusal({"parallel.balance=auto", "parallel.num_layers_per_stage=[2, 2, 2, 2]"}),
                  "stands beside 'num_layers_per_stage'"));
  EXPECT_TRUE(has(refusal({"parallel.num_layers_per_stge=[2, 2, 2, 2]"}), "num_layers_per_stage"));
}

TEST(Modelled, NamesWhatAModelNeedsAndWhatNeedsAModel) {
  EXPECT_TRUE(has(refusal({kLlama}), "needs seq_length"));
  EXPECT_EQ(refusal({kLlama, "batch.seq_length=2048"}), "");
  EXPECT_TRUE(has(refusal({"parallel.tensor_model_parallel_size=3"}), "num_attention_heads 8"));
  EXPECT_TRUE(has(refusal({"parallel.expert_model_parallel_size=2"}), "no experts"));
  EXPECT_TRUE(has(refusal({"memory={kind: model, flash_atention: true}"}), "flash_attention"));
  const std::string bare = "schedule: 1f1b\n" + kBase.substr(kBase.find("parallel"));
  EXPECT_TRUE(has(refusal({"parallel.sequence_parallel=true"}, bare), "with a 'model'"));
  EXPECT_TRUE(has(refusal({"memory={kind: model}"}, bare), "needs a 'model'"));
  EXPECT_TRUE(has(refusal({"recompute=selective"}, bare), "selective recomputation needs a model"));
  EXPECT_TRUE(has(refusal({"memory={kind: given, activation: 1 GiB, weight_stash: 0}"}),
                  "nothing uses it"));
}

// With a section 'cost' and without, where costs follow from model and cluster all the same.
TEST(Modelled, RefusesAPrecisionThatTheGpuHasNot) {
  const std::string bare = kBase.substr(0, kBase.find("cost:")) + "cluster: dgx-a100\n";
  const std::string at =
      "command line:1:18: memory.precision: a100-sxm-80gb has no fp8; it has bf16, fp16, fp32";
  for (const std::string& text : {bare, bare + "cost: {kind: roofline}\n"}) {
    EXPECT_EQ(refusal({"memory.precision=fp8"}, text), at) << text;
    EXPECT_EQ(refusal({"memory.precision=bf16"}, text), "") << text;
    EXPECT_EQ(refusal({"memory.precision=fp8", "cluster=dgx-h100"}, text), "") << text;
  }
}

TEST(Modelled, RefusesBf16OfAGpuThatHasFp16Alone) {
  const std::string text = kBase.substr(0, kBase.find("cost:")) + "cluster: dgx-1-v100\n";
  EXPECT_TRUE(has(refusal({}, text), "v100-sxm-32gb has no bf16; it has fp16, fp32"));
  EXPECT_EQ(refusal({"memory.precision=fp16"}, text), "");
}

TEST(Modelled, RefusesAGpuWithoutMemoryBesideItsMargin) {
  const std::string text = kBase.substr(0, kBase.find("cost:")) + "cluster: dgx-h100\n";
  EXPECT_TRUE(has(refusal({"cluster.gpu.memory=1 GiB"}, text), "that are kept of it"));
  EXPECT_EQ(refusal({"cluster.gpu.memory=8 GiB"}, text), "");
}

TEST(Modelled, RefusesACapacityOfNothing) {
  EXPECT_TRUE(has(refusal({"memory.capacity=0"}), "expected more than 0"));
}

TEST(Modelled, CountsGradientsAsThePrecisionSays) {
  const auto gradients = [](const std::string& memory) {
    const Result simulation = run(read({"memory=" + memory}));
    const DeviceMemory& held = *simulation.report.devices[1].memory;
    return held.gradients / held.weights;
  };
  EXPECT_DOUBLE_EQ(gradients("{kind: model}"), 2);
  EXPECT_DOUBLE_EQ(gradients("{kind: model, precision: fp16}"), 1);
  EXPECT_DOUBLE_EQ(
      gradients("{kind: model, precision: fp16, accumulate_allreduce_grads_in_fp32: true}"), 2);
}

TEST(Modelled, DividesTheOptimizerOverDataRanks) {
  const auto optimizer = [](bool distributed) {
    const Scenario scenario =
        read({"parallel.data_parallel_size=4",
              distributed ? "memory={kind: model, use_distributed_optimizer: true}"
                          : "memory={kind: model}"});
    return run(scenario).report.devices[1].memory->optimizer;
  };
  EXPECT_DOUBLE_EQ(optimizer(false) / optimizer(true), 4);
}

TEST(Modelled, KeepsLessUnderSelectiveAndLeastUnderFullRecompute) {
  const auto peak = [](const std::string& recompute) {
    return run(read({"memory={kind: model, flash_attention: false}", "recompute=" + recompute}))
        .report.devices[1]
        .peak_activation;
  };
  EXPECT_LT(peak("selective"), peak("none"));
  EXPECT_LT(peak("full"), peak("selective"));
}

TEST(Modelled, CountsContextRanksAsGpus) {
  const Scenario scenario = read({"parallel.context_parallel_size=2"});
  const Result simulation = run(scenario);
  EXPECT_DOUBLE_EQ(
      simulation.throughput->samples_per_second / simulation.throughput->samples_per_second_per_gpu,
      8);
}

TEST(Modelled, ReadsHowContextRanksExchange) {
  const std::string four = "parallel.context_parallel_size=4";
  const std::string both = "parallel.cp_comm_type=a2a+p2p";
  const std::string sizes = "parallel.hierarchical_context_parallel_sizes=";
  EXPECT_EQ(read({four}).modelled->context.exchange, ContextExchange::kAllGather);
  EXPECT_EQ(read({four, "parallel.cp_comm_type=a2a"}).modelled->context.exchange,
            ContextExchange::kHeads);
  const LayerContext two = read({four, both, sizes + "[2, 2]"}).modelled->context;
  EXPECT_EQ(two.exchange, ContextExchange::kHeadsAndRing);
  EXPECT_EQ(two.hierarchy, (std::array{2, 2}));
  EXPECT_TRUE(has(refusal({four, "parallel.cp_comm_type=all_gathr"}), "did you mean 'all_gather'"));
  EXPECT_TRUE(has(refusal({four, both}), "needs hierarchical_context_parallel_sizes"));
  EXPECT_TRUE(has(refusal({four, both, sizes + "[2, 2, 1]"}), "expected two sizes"));
  EXPECT_TRUE(has(refusal({four, both, sizes + "[4, 2]"}), "4 x 2 do not make"));
  EXPECT_TRUE(has(refusal({four, sizes + "[2, 2]"}), "is of cp_comm_type: a2a+p2p"));
  EXPECT_TRUE(has(refusal({"parallel.context_parallel_size=16", "parallel.cp_comm_type=a2a"}),
                  "num_attention_heads 8 does not divide"));
}

TEST(Modelled, ReadsAnExchangeForEachLayer) {
  const std::string four = "parallel.context_parallel_size=4";
  const std::string windows =
      "model={family: llama, num_layers: 4, hidden_size: 512, num_attention_heads: 8, vocab_size: "
      "32000, ffn_hidden_size: 1536, layer_pattern: WG, attention_window: 128}";
  const auto by_layer = [](const std::string& list) { return "parallel.cp_comm_type=" + list; };
  const std::string length = "batch.seq_length=1024";
  const LayerContext mixed =
      read({four, windows, length, by_layer("[a2a, p2p, a2a, p2p]")}).modelled->context;
  EXPECT_EQ(mixed.exchange, ContextExchange::kRing);
  EXPECT_EQ(mixed.window_exchange, ContextExchange::kHeads);
  const LayerContext alike =
      read({four, windows, length, by_layer("[a2a, a2a, a2a, a2a]")}).modelled->context;
  EXPECT_EQ(alike.exchange, ContextExchange::kHeads);
  EXPECT_FALSE(alike.window_exchange);
  EXPECT_TRUE(has(refusal({four, windows, length, by_layer("[a2a, p2p]")}),
                  "names 2 kinds for 4 layers: give one, or one for each"));
  EXPECT_TRUE(has(refusal({four, windows, length, by_layer("[a2a, p2p, a2a, all_gather]")}),
                  "layer 3 has all_gather, those before it whose attention sees all tokens have "
                  "p2p"));
  EXPECT_TRUE(
      has(refusal({four, windows, length, by_layer("[p2p, a2a, p2p, a2a]")}), "knows no windows"));
  EXPECT_TRUE(has(refusal({four, windows, length, by_layer("[p2p, a2a, p2p, a2b]")}), "'a2a'"));
}

// Under tensor parallelism W needs gathered gradients, more than F kept.
TEST(Modelled, StaysWithinALimitWhereWNeedsMoreThanFKept) {
  Scenario scenario =
      read({kLlama, "batch={num_microbatches: 16, micro_batch_size: 2, seq_length: 1024}",
            "parallel={pipeline_model_parallel_size: 4, tensor_model_parallel_size: 8, "
            "sequence_parallel: true}",
            "schedule={name: zb, memory_limit: 1.5}"});
  const ScheduleChoice& choice = scenario.schedules.front();
  const Problem problem = case_of(scenario, choice).problem;
  ASSERT_GT(problem.stage(1).weight_stash, problem.stage(1).activation);
  const Result simulation = run(scenario);
  const Evaluation evaluation = evaluate(*simulation.program, problem);
  for (size_t device = 0; device < 4; ++device) {
    EXPECT_LE(evaluation.devices[device].peak_activation, 1.0000001 * *problem.activation_limit);
    EXPECT_NEAR(evaluation.devices[device].peak_activation.value(),
                simulation.report.devices[device].peak_activation.value(), 1);
  }
}

TEST(Modelled, SaysWhetherItFitsAndWhatWouldMakeIt) {
  const auto capacity = [](const std::string& size) {
    return answer(prepare_first(read(
        {"memory={kind: model, flash_attention: false, dropout: true, capacity: " + size + "}"})));
  };
  const Answer wide = capacity("80 GiB");
  EXPECT_EQ(wide.result.fits, MemoryFit::kYes);
  EXPECT_FALSE(wide.advice.change);
  EXPECT_FALSE(run(read()).fits);
  const Bytes peak = *wide.result.report.peak_memory;
  const auto beside = [&](double share, long more) {
    return capacity(std::to_string(static_cast<long>(share * peak.value()) + more) + " B");
  };
  const MemoryBand band = wide.made.scenario->modelled->band;
  EXPECT_LT(band.low, 0.99);
  EXPECT_GT(band.high, 1.01);
  EXPECT_EQ(beside(band.high, 1000).result.fits, MemoryFit::kYes);
  for (const Answer& tight : {beside(band.high, -1000), beside(band.low, 1000)}) {
    EXPECT_EQ(tight.result.fits, MemoryFit::kTight);
    EXPECT_FALSE(tight.advice.change);
  }
  const Answer small = beside(band.low, -1000);
  EXPECT_EQ(small.result.fits, MemoryFit::kNo);
  ASSERT_TRUE(small.advice.change);
  EXPECT_EQ(small.advice.change->words, "recompute: selective");
  // The advised change gives the advised peak when it is run.
  const Result changed = run(
      read({"memory={kind: model, flash_attention: false, dropout: true}", "recompute=selective"}));
  EXPECT_EQ(*changed.report.peak_memory, small.advice.change->peak);
  EXPECT_FALSE(capacity("0.5 GiB").advice.change);
}

}  // namespace
}  // namespace pipesim::modelled_test
