// Unequal microbatches of a scenario: lengths and factors, packing, order, slices, draws.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <numeric>

#include "models/layer_context.h"
#include "sim/case/program.h"
#include "sim/case/simulate.h"
#include "sim/execution/evaluate.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "sim/scenario/draw_batch.h"
#include "tests/folder.h"

namespace pipesim::unequal_batch_test {
namespace {

const std::string kGiven =
    "schedule: 1f1b\n"
    "parallel: {pipeline_model_parallel_size: 4}\n"
    "batch: {num_microbatches: 4, micro_batch_size: 1, factors: [1, 2, 0.5, 3]}\n"
    "cost: {kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms}\n"
    "memory: {kind: given, activation: 1 GiB, weight_stash: 0.5 GiB}\n";
const std::string kModelled =
    "schedule: 1f1b\n"
    "model: llama2-7b\n"
    "cluster: dgx-h100\n"
    "parallel: {pipeline_model_parallel_size: 4, tensor_model_parallel_size: 2, sequence_parallel: "
    "true}\n"
    "batch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 8192}\n";
// Like kModelled, the model by keys.
const std::string kOfName =
    "schedule: 1f1b\n"
    "model: {num_layers: 32, hidden_size: 4096, num_attention_heads: 32, vocab_size: 32000, "
    "position_embedding_type: rope}\n"
    "cluster: dgx-h100\n"
    "parallel: {pipeline_model_parallel_size: 4, tensor_model_parallel_size: 2, sequence_parallel: "
    "true}\n"
    "batch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 8192}\n";
const std::string kDrawn =
    "batch.lengths={distribution: lognormal, mean: 2000, sigma: 1.2, seed: 7}";

Scenario read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  std::vector<Override> parsed;
  for (const auto& each : overrides)
    parsed.push_back(parse_override(each, {"command line", 1, 1, ""}));
  return read_scenario(YamlSource("s.yaml", text, parsed));
}

std::string refusal(const std::string& text, const std::vector<std::string>& overrides) {
  try {
    (void)read(text, overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was refused";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Report report_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return simulate(prepare_first(read(text, overrides))).report;
}

const Bytes kGiB = Bytes(1073741824.0);

const std::string kEncoder =
    "model.encoder={num_layers: 8, hidden_size: 1024, num_attention_heads: 16, patches: 1024, "
    "patch_inputs: 588, merged_patches: 4, images: 2}";

TEST(UnequalBatch, AsManyImagesEverywhereAreAnEvenBatch) {
  const std::vector<std::string> even{kEncoder};
  std::vector<std::string> listed = even;
  listed.emplace_back("batch.images=[2, 2, 2, 2, 2, 2, 2, 2]");
  const Result a = simulate(prepare_first(read(kOfName, even)));
  const Result b = simulate(prepare_first(read(kOfName, listed)));
  EXPECT_EQ(a.report.iteration, b.report.iteration);
  EXPECT_EQ(a.report.peak_activation, b.report.peak_activation);
  EXPECT_NEAR(*a.throughput->mfu, *b.throughput->mfu, 1e-12);
}

TEST(UnequalBatch, ImagesCostTheStageOfTheEmbedding) {
  const std::vector<std::string> with{
      kEncoder, "batch.micro_batch_size=2",
      "batch.images=[0, 0, 1, 2, 3, 0, 4, 4, 2, 2, 0, 3, 1, 0, 0, 0]"};
  const Case made = prepare_first(read(kOfName, with));
  EXPECT_EQ(made.scenario->batch.unequal->images, (std::vector<int>{0, 3, 3, 8, 4, 3, 1, 0}));
  const Problem& problem = made.problem;
  // Without images as without an encoder, and every image as much more.
  const Problem without = prepare_first(read(kOfName, {"batch.micro_batch_size=2"})).problem;
  for (int vs = 0; vs < 4; ++vs) {
    const StageCost& none = problem.stage(vs, 0);
    EXPECT_EQ(none.forward, without.stage(vs).forward) << vs;
    EXPECT_EQ(none.backward_weight, without.stage(vs).backward_weight) << vs;
    EXPECT_EQ(none.activation, without.stage(vs).activation) << vs;
    for (std::uint32_t unit = 0; vs > 0 && unit < 8; ++unit) {
      EXPECT_EQ(problem.stage(vs, unit).forward, none.forward) << vs;
    }
  }
  EXPECT_EQ(problem.stage(0, 1).forward, problem.stage(0, 2).forward);
  const Bytes three = problem.stage(0, 1).activation - problem.stage(0, 0).activation;
  const Bytes four = problem.stage(0, 4).activation - problem.stage(0, 0).activation;
  EXPECT_NEAR(three.value() * 4, four.value() * 3, 1);
  EXPECT_GT(problem.stage(0, 3).forward, problem.stage(0, 4).forward);
  EXPECT_GT(problem.stage(0, 4).backward_input, problem.stage(0, 6).backward_input);
}

// Documents cost as without images, and images as much as in front of even sequences.
TEST(UnequalBatch, TakesLengthsAndImagesBesideEachOther) {
  const std::string lengths = "batch.lengths=[8192, 512, 4096, 8192, 2048, 600, 8192, 1024]";
  const std::string images = "batch.images=[0, 2, 1, 3, 0, 2, 1, 4]";
  const Case both = prepare_first(read(kOfName, {kEncoder, lengths, images}));
  const Problem documents = prepare_first(read(kOfName, {lengths})).problem;
  const Problem pictures = prepare_first(read(kOfName, {kEncoder, images})).problem;
  for (std::uint32_t unit = 0; unit < 8; ++unit) {
    for (int vs = 1; vs < 4; ++vs) {
      EXPECT_EQ(both.problem.stage(vs, unit).forward, documents.stage(vs, unit).forward);
      EXPECT_EQ(both.problem.stage(vs, unit).activation, documents.stage(vs, unit).activation);
    }
    const Seconds more = both.problem.stage(0, unit).forward - documents.stage(0, unit).forward;
    const Seconds alone = pictures.stage(0, unit).forward - pictures.stage(0, 0).forward;
    EXPECT_NEAR(more.value(), alone.value(), 1e-12) << unit;
  }
  // FLOPs of both; tokens are those of the documents.
  const Result all = simulate(both);
  const Result text = simulate(prepare_first(read(kOfName, {lengths})));
  EXPECT_GT(*all.throughput->mfu * all.report.iteration.value(),
            *text.throughput->mfu * text.report.iteration.value());
  EXPECT_NEAR(all.throughput->samples_per_second * all.report.iteration.value(), 32856 / 8192.0,
              1e-9);
}

TEST(UnequalBatch, CutsDrawnImagesAtTheRoomOfDocumentsAndDrawsBothAnew) {
  const std::string images = "batch.images={distribution: uniform, min: 0, max: 9, seed: 3}";
  const auto drawn = [&](int seed) {
    const Scenario scenario =
        read(kOfName, {kEncoder, images,
                       fmt::format("batch.lengths={{distribution: uniform, min: 300, max: 3000, "
                                   "seed: {}, runs: 2}}",
                                   seed)});
    const UnequalBatch& unequal = *scenario.batch.unequal;
    for (size_t i = 0; i < 8; ++i) EXPECT_LE(unequal.images[i], unequal.documents[i][0] / 256);
    return unequal;
  };
  const UnequalBatch one = drawn(1);
  EXPECT_NE(one.documents, drawn(2).documents);
  Scenario scenario = read(
      kOfName,
      {kEncoder, images, "batch.lengths={distribution: uniform, min: 8192, max: 8192, runs: 2}"});
  const std::vector<int> first = scenario.batch.unequal->images;
  draw_batch(scenario, scenario.batch.unequal->draw.seed + 1);
  EXPECT_NE(scenario.batch.unequal->images, first);
}

TEST(UnequalBatch, RefusesImagesThatDoNotGo) {
  const std::string eight = "batch.images=[1, 1, 1, 1, 1, 1, 1, 1]";
  EXPECT_TRUE(has(refusal(kOfName, {eight}), "images need a model with an encoder"));
  EXPECT_TRUE(has(refusal(kGiven, {"batch.images=[1, 1, 1, 1]"}), "stands beside 'images'"));
  const std::string lengths = "batch.lengths=[512, 512, 512, 512, 512, 512, 512, 512]";
  EXPECT_TRUE(
      has(refusal(kOfName, {kEncoder, lengths}), "lengths beside an encoder need 'images'"));
  EXPECT_TRUE(has(refusal(kOfName, {eight, lengths}), "images need a model with an encoder"));
  EXPECT_TRUE(has(refusal(kGiven, {"batch={num_microbatches: 1, images: [1], lengths: [5]}"}),
                  "lengths need a model"));
  EXPECT_TRUE(has(refusal(kOfName, {kEncoder, lengths, "batch.images=[0, 0, 0, 3, 0, 0, 0, 0]"}),
                  "3 images of 256 tokens do not go into the 512 tokens of microbatch 3"));
  EXPECT_TRUE(has(refusal(kOfName, {kEncoder, lengths,
                                    "batch.images={distribution: uniform, min: 0, max: 2, "
                                    "runs: 2}"}),
                  "are drawn as often as lengths are"));
  EXPECT_TRUE(has(refusal(kOfName, {kEncoder, "batch.images=[1, 2]"}),
                  "2 numbers of images, but 8 microbatches of 1 samples need 8"));
  EXPECT_TRUE(has(refusal(kOfName, {kEncoder, "batch.images=[1, 1, 1, 1, 1, 1, 1, 33]"}),
                  "33 images of 256 tokens do not go into seq_length 8192"));
  EXPECT_TRUE(has(refusal(kOfName, {kEncoder, "batch.images=[1, 1, 1, 1, 1, 1, 1, 1.5]"}),
                  "expected a whole number"));
}

TEST(UnequalBatch, TakesAnOrderOneByOne) {
  const Case made = prepare_first(read(kGiven, {"batch.order=[2, 0, 3, 1]"}));
  EXPECT_EQ(made.microbatch_order, (std::vector<int>{2, 0, 3, 1}));
  const auto seconds = [&made](std::uint32_t unit) {
    return made.problem.stage(0, unit).forward.value();
  };
  EXPECT_DOUBLE_EQ(seconds(0), 0.005);
  EXPECT_DOUBLE_EQ(seconds(1), 0.01);
  EXPECT_DOUBLE_EQ(seconds(2), 0.03);
  EXPECT_DOUBLE_EQ(seconds(3), 0.02);
  EXPECT_TRUE(has(refusal(kGiven, {"batch.order=[2, 0, 2, 1]"}), "microbatch 2 is there already"));
  EXPECT_TRUE(has(refusal(kGiven, {"batch.order=[2, 0, 1]"}), "names 3 of 4 microbatches"));
  EXPECT_TRUE(has(refusal(kGiven, {"batch.order=[4, 0, 1, 2]"}), "a whole number from 0 to 3"));
  EXPECT_TRUE(has(refusal(kGiven, {"batch.order=listed"}), "batch.order"));
}

// Sums leave rounding behind: the largest microbatch still fits exactly.
TEST(UnequalBatch, DynaPipeFillsALimitOfItsLargestMicrobatch) {
  const Report report = report_of(
      kGiven, {"parallel.pipeline_model_parallel_size=2", "batch.num_microbatches=6",
               "batch.factors=[3, 0.2, 0.2, 0.7, 0.3, 3]",
               "schedule={name: dynapipe, memory_limit: 3 GiB}", "memory.weight_stash=1 GiB"});
  EXPECT_NEAR(report.peak_activation / kGiB, 3, 1e-9);
}

TEST(UnequalBatch, FillsGPipeAsAFlowShopByHand) {
  const Report report = report_of(kGiven, {"schedule=gpipe"});
  EXPECT_NEAR(report.iteration.value(), 0.030 * (6.5 + 3 * 3), 1e-12);
  EXPECT_EQ(report.peak_activation, 6.5 * kGiB);
}

TEST(UnequalBatch, WithFactorsOfOneIsTheScenarioWithout) {
  const std::string without = "batch={num_microbatches: 4, micro_batch_size: 1}";
  for (const char* schedule : {"1f1b", "gpipe", "zb-h1", "zb-v", "dualpipev", "seq-1f1b"}) {
    const std::vector<std::string> common{std::string("schedule=") + schedule,
                                          "cost.overlapped=25 ms", "cost.transfer=1 ms"};
    std::vector<std::string> one = common;
    one.emplace_back("batch.factors=[1, 1, 1, 1]");
    std::vector<std::string> none = common;
    none.emplace_back(without);
    const Report equal = report_of(kGiven, one);
    const Report before = report_of(kGiven, none);
    EXPECT_EQ(equal.iteration, before.iteration) << schedule;
    EXPECT_EQ(equal.peak_activation, before.peak_activation) << schedule;
  }
}

// GPipe, p = 4: every pass and message takes twice as long, for messages of 10 MB at 1 GB/s too.
TEST(UnequalBatch, WithEqualFactorsIsTheScenarioOfMicrobatchesOfThatSize) {
  const std::vector<std::string> common{"schedule=gpipe", "cost.message=10 MB",
                                        "cluster={network: {bandwidth: 1 GBps}}"};
  std::vector<std::string> twice = common;
  twice.emplace_back("batch.factors=[2, 2, 2, 2]");
  std::vector<std::string> once = common;
  once.emplace_back("batch.factors=[1, 1, 1, 1]");
  EXPECT_NEAR(report_of(kGiven, twice).iteration.value(),
              2 * report_of(kGiven, once).iteration.value(), 1e-12);
}

TEST(UnequalBatch, TakesTheSameUnderBothEngines) {
  for (const char* schedule : {"1f1b", "zb-h1", "zb-v", "dynapipe", "interleaved-1f1b"}) {
    const std::vector<std::string> given{std::string("schedule=") + schedule, "cost.transfer=1 ms",
                                         "batch.order=search"};
    std::vector<std::string> simgrid = given;
    simgrid.emplace_back("engine=simgrid");
    EXPECT_NEAR(report_of(kGiven, given).iteration.value(),
                report_of(kGiven, simgrid).iteration.value(), 1e-12);
  }
}

TEST(UnequalBatch, OfDocumentsAsLongAsTheSampleIsTheScenarioWithout) {
  const Problem without = prepare_first(read(kModelled)).problem;
  const Problem with =
      prepare_first(read(kModelled, {"batch.lengths=[8192, 8192, 8192, 8192, 8192, 8192, 8192, "
                                     "8192]"}))
          .problem;
  EXPECT_TRUE(with.kinds.empty());
  for (size_t vs = 0; vs < without.stages.size(); ++vs) {
    EXPECT_EQ(with.stages[vs].forward, without.stages[vs].forward);
    EXPECT_EQ(with.stages[vs].backward_input, without.stages[vs].backward_input);
    EXPECT_EQ(with.stages[vs].activation, without.stages[vs].activation);
  }
}

TEST(UnequalBatch, AttendsWithinDocumentsOnly) {
  const Scenario scenario = read(kModelled);
  const Transformer& model = scenario.modelled->model;
  LayerContext context;
  context.seq_length = 8192;
  EXPECT_EQ(attended_pairs(model, Mixer::kAttention, context), 8192.0 * 4096);
  const std::vector<int> halves{4096, 4096};
  context.documents = halves;
  EXPECT_EQ(attended_pairs(model, Mixer::kAttention, context), 8192.0 * 2048);
  // Slices of what is packed.
  context.whole = 8192;
  context.seq_length = 2048;
  std::vector<double> slices;
  for (context.before = 0; context.before < 8192; context.before += 2048) {
    slices.push_back(attended_pairs(model, Mixer::kAttention, context) / (2048.0 * 2048));
  }
  EXPECT_EQ(slices, (std::vector<double>{0.5, 1.5, 0.5, 1.5}));
  context.documents = {};
  slices.clear();
  for (context.before = 0; context.before < 8192; context.before += 2048) {
    slices.push_back(attended_pairs(model, Mixer::kAttention, context) / (2048.0 * 2048));
  }
  EXPECT_EQ(slices, (std::vector<double>{0.5, 1.5, 2.5, 3.5}));
}

// The packed microbatch takes less: all that is missing is attention.
TEST(UnequalBatch, CostsByItsDocuments) {
  const std::string lengths = "batch.lengths=[8192, 4096, 4096, 8192]";
  const Problem problem =
      prepare_first(read(kModelled, {lengths, "batch.packing=greedy", "batch.num_microbatches=3"}))
          .problem;
  ASSERT_EQ(problem.kinds.size(), 2U);
  EXPECT_EQ(problem.kind_of_unit, (std::vector<std::uint32_t>{0, 1, 0}));
  for (int vs = 0; vs < problem.shape.devices; ++vs) {
    const StageCost& whole = problem.stage(vs, 0);
    const StageCost& halves = problem.stage(vs, 1);
    EXPECT_LT(halves.forward, whole.forward);
    EXPECT_LT(halves.backward_input, whole.backward_input);
    EXPECT_EQ(halves.backward_weight, whole.backward_weight);
    EXPECT_EQ(halves.activation, whole.activation);
    EXPECT_EQ(halves.transfer, whole.transfer);
  }
}

// Blocks of F and B take by their documents too: one long one among short ones costs more than
// short ones only, and less than long ones only.
TEST(UnequalBatch, BlocksTakeByTheirDocuments) {
  const auto iteration = [](const std::string& lengths) {
    return report_of(kModelled, {"schedule=dualpipev", "batch.num_microbatches=16",
                                 "batch.packing=greedy", "batch.lengths=" + lengths})
        .iteration;
  };
  const auto list = [](int longs) {
    std::string text = "[";
    for (int i = 0; i < 16; ++i) {
      text += i > 0 ? ", " : "";
      text += i < longs ? "8192" : "2048, 2048, 2048, 2048";
    }
    return text + "]";
  };
  const Seconds some = iteration(list(1));
  EXPECT_GT(some, iteration(list(0)));
  EXPECT_LT(some, iteration(list(16)));
}

TEST(UnequalBatch, SlicesTakeByTheirPosition) {
  // Attention is 40% of F and of B: slice k of two takes 1 - 0.4 + 0.4 (2k+1)/2 of half.
  const Problem given =
      prepare_first(read(kGiven, {"schedule={name: seq-1f1b, splits: 2}",
                                  "cost.attention_share=0.4", "batch={num_microbatches: 4}"}))
          .problem;
  ASSERT_EQ(given.shape.splits, 2);
  EXPECT_NEAR(given.stage(0, 0).forward.value(), 0.8 * 0.005, 1e-15);
  EXPECT_NEAR(given.stage(0, 1).forward.value(), 1.2 * 0.005, 1e-15);
  EXPECT_EQ(given.stage(0, 1).backward_weight, Seconds(0.004));
  // Modelled, they take a little more than the microbatch whole: launches and messages are each
  // slice's own, and matmuls of fewer rows are less efficient.
  const Problem whole = prepare_first(read(kModelled)).problem;
  const Problem sliced =
      prepare_first(read(kModelled, {"schedule={name: seq-1f1b, splits: 2}"})).problem;
  for (int vs = 0; vs < 4; ++vs) {
    EXPECT_GT(sliced.stage(vs, 1).forward, sliced.stage(vs, 0).forward);
    EXPECT_GT(sliced.stage(vs, 1).backward_input, sliced.stage(vs, 0).backward_input);
    EXPECT_EQ(sliced.stage(vs, 1).backward_weight, sliced.stage(vs, 0).backward_weight);
    EXPECT_EQ(sliced.stage(vs, 1).activation, 0.5 * whole.stage(vs).activation);
    const Seconds sum = sliced.stage(vs, 0).forward + sliced.stage(vs, 1).forward;
    EXPECT_GT(sum, whole.stage(vs).forward);
    EXPECT_LT(sum, 1.05 * whole.stage(vs).forward);
  }
}

TEST(UnequalBatch, SlicesTakeByTheirLength) {
  const std::string lengths = "schedule={name: terapipe, splits: [3, 1]}";
  const Problem given =
      prepare_first(read(kGiven, {lengths, "cost.attention_share=0.4", "cost.transfer=2 ms",
                                  "batch={num_microbatches: 4}"}))
          .problem;
  ASSERT_EQ(given.shape.splits, 2);
  ASSERT_EQ(given.shape.units(), 8);
  // F: 10 ms (0.6 x 3/4 + 0.4 x 9/16), and what is left.
  EXPECT_NEAR(given.stage(0, 0).forward.value(), 0.00675, 1e-15);
  EXPECT_NEAR(given.stage(0, 1).forward.value(), 0.00325, 1e-15);
  EXPECT_NEAR(given.stage(0, 1).backward_weight.value(), 0.002, 1e-15);
  EXPECT_EQ(given.stage(0, 0).transfer, Seconds(0.002));
  EXPECT_EQ(given.stage(0, 0).activation, 0.75 * kGiB);
  EXPECT_EQ(given.stage(0, 1).weight_stash, 0.125 * kGiB);
  // Modelled, of tokens.
  const Problem whole = prepare_first(read(kModelled)).problem;
  const Problem sliced = prepare_first(read(kModelled, {lengths})).problem;
  for (int vs = 0; vs < 4; ++vs) {
    EXPECT_GT(sliced.stage(vs, 0).backward_weight, 2.5 * sliced.stage(vs, 1).backward_weight);
    EXPECT_LT(sliced.stage(vs, 0).backward_weight, 3 * sliced.stage(vs, 1).backward_weight);
    EXPECT_EQ(sliced.stage(vs, 0).activation, 0.75 * whole.stage(vs).activation);
    EXPECT_EQ(sliced.stage(vs, 1).activation, 0.25 * whole.stage(vs).activation);
  }
  EXPECT_GT(sliced.stage(0, 0).transfer, 2 * sliced.stage(0, 1).transfer);
  // Equal entries of a list equal a number.
  const auto seconds = [](const std::string& splits) {
    return report_of(kModelled, {"schedule={name: seq-1f1b, splits: " + splits + "}"}).iteration;
  };
  EXPECT_EQ(seconds("[2, 2, 2]"), seconds("3"));
  EXPECT_NE(seconds("[3, 2, 1]"), seconds("3"));
}

TEST(UnequalBatch, RefusesSlicesOfNoTokens) {
  const Scenario scenario = read(kModelled, {"schedule={name: terapipe, splits: [8192, 1]}"});
  try {
    (void)prepare_first(scenario);
    FAIL() << "was not refused";
  } catch (const InputError& error) {
    EXPECT_TRUE(has(error.what(), "command line:1")) << error.what();
    EXPECT_TRUE(has(error.what(),
                    "a slice of 1 of 8193 parts of a sequence of 8192 tokens is less "
                    "than the 2 that its ranks can divide"))
        << error.what();
  }
}

TEST(UnequalBatch, IsDrawnByItsSeed) {
  const auto documents = [](const std::string& seed) {
    return read(kModelled, {kDrawn, "batch.packing=greedy", "batch.lengths.seed=" + seed})
        .batch.unequal->documents;
  };
  EXPECT_EQ(documents("7"), documents("7"));
  EXPECT_NE(documents("7"), documents("8"));
  for (const Documents& each : documents("7")) {
    EXPECT_EQ(std::accumulate(each.begin(), each.end(), 0), 8192);
  }
}

TEST(UnequalBatch, BalancedEvensOutTheWorkOfWholeDocuments) {
  // In their order: two documents, four, eight, sixteen to a microbatch.
  std::string lengths;
  for (const int count : {2, 4, 8, 16}) {
    for (int i = 0; i < count; ++i) {
      lengths += fmt::format("{}{}", lengths.empty() ? "" : ", ", 65536 / count);
    }
  }
  const auto packed = [&lengths](const std::string& packing) {
    return prepare_first(
        read(kModelled, {"batch={num_microbatches: 4, micro_batch_size: 1, seq_length: 65536}",
                         "batch.packing=" + packing, "batch.lengths=[" + lengths + "]"}));
  };
  const auto longest = [](const Case& made) {
    Seconds most;
    for (const UnitKind& kind : made.problem.kinds) most = std::max(most, kind.stages[1].forward);
    return most;
  };
  const Case greedy = packed("greedy");
  const Case balanced = packed("balanced");
  EXPECT_LT(longest(balanced), longest(greedy));
  EXPECT_LT(simulate(balanced).report.iteration, simulate(greedy).report.iteration);
  long tokens = 0;
  for (const Documents& each : balanced.scenario->batch.unequal->documents) {
    tokens += std::accumulate(each.begin(), each.end(), 0L);
  }
  EXPECT_EQ(tokens, 4 * 65536);
}

TEST(UnequalBatch, BalancedKeepsToTheRoomThatItIsGiven) {
  const std::vector<int> documents{6, 1, 1, 1, 1, 1, 1};
  // By work alone the long one stands by itself.
  const auto square = [](int length) { return 1.0 * length * length; };
  EXPECT_EQ(packed_by_work(documents, 2, 6, 2, square),
            (std::vector<Documents>{{6}, {1, 1, 1, 1, 1, 1}}));
  const auto none = [](int) { return 0.0; };
  EXPECT_EQ(packed_by_work(documents, 2, 6, 1, none),
            (std::vector<Documents>{{6}, {1, 1, 1, 1, 1, 1}}));
}

TEST(UnequalBatch, IsOrderedAsAsked) {
  const auto order = [](const std::string& way) {
    return prepare_first(read(kGiven, {"batch.order=" + way})).microbatch_order;
  };
  EXPECT_EQ(order("longest_first"), (std::vector<int>{3, 1, 0, 2}));
  EXPECT_EQ(order("shortest_first"), (std::vector<int>{2, 0, 1, 3}));
  EXPECT_TRUE(order("given").empty());
  const auto seconds = [](const std::string& way) {
    return report_of(kGiven, {"batch.order=" + way}).iteration;
  };
  // With four microbatches dynapipe tries every order.
  std::vector<int> all{0, 1, 2, 3};
  Case made = prepare_first(read(kGiven));
  const auto given = made.problem.kind_of_unit;
  const Program program = find_schedule("1f1b")->plan(made.problem);
  Seconds least = Seconds(1e9);
  do {
    for (size_t i = 0; i < all.size(); ++i) made.problem.kind_of_unit[i] = given[all[i]];
    least = std::min(least, evaluate(program, made.problem).makespan);
  } while (std::ranges::next_permutation(all).found);
  EXPECT_EQ(seconds("dynapipe"), least);
  EXPECT_EQ(seconds("search"), least);
  EXPECT_LT(least, seconds("given"));
}

TEST(UnequalBatch, ReportsTheMeanOverItsDraws) {
  const std::string batch =
      "batch={num_microbatches: 8, factors: {distribution: uniform, min: 0.5, max: 2, seed: 3}}";
  const Report together = report_of(kGiven, {batch, "batch.factors.runs=5"});
  ASSERT_TRUE(together.ensemble.has_value());
  EXPECT_EQ(together.ensemble->runs, 5);
  double sum = 0;
  Bytes peak;
  for (int seed = 3; seed < 8; ++seed) {
    const Report one = report_of(kGiven, {batch, "batch.factors.seed=" + std::to_string(seed)});
    EXPECT_FALSE(one.ensemble.has_value());
    sum += one.iteration.value();
    peak = std::max(peak, one.peak_activation);
  }
  EXPECT_NEAR(together.iteration.value(), sum / 5, 1e-12);
  EXPECT_EQ(together.peak_activation, peak);
  EXPECT_GT(together.ensemble->stddev, Seconds(0));
}

// A microbatch alone is like no other: its draws are counted all the same.
TEST(UnequalBatch, ReportsTheMeanOverItsDrawsBesideOtherCases) {
  const std::string drawn =
      "batch.lengths={distribution: lognormal, mean: 2000, sigma: 1.2, seed: 7, runs: 4}";
  const std::vector<Case> cases{prepare_first(read(kModelled, {drawn, "batch.num_microbatches=1"})),
                                prepare_first(read(kModelled, {"batch.num_microbatches=1"}))};
  Reuse reuse;
  const std::vector<Simulated> all = simulate_all(cases, reuse);
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(all[i].get().report.iteration, simulate(cases[i]).report.iteration) << i;
  }
  EXPECT_NE(
      all[0].get().report.iteration,
      report_of(kModelled, {drawn, "batch.num_microbatches=1", "batch.lengths.runs=1"}).iteration);
}

TEST(UnequalBatch, PutsEveryDrawInAnOrderOfItsOwn) {
  const auto drawn = [](int seed, int runs) {
    return prepare_first(read(
        kModelled, {fmt::format("batch.lengths={{distribution: lognormal, mean: 2000, sigma: 1.2, "
                                "seed: {}, runs: {}}}",
                                seed, runs),
                    "batch.order=longest_first"}));
  };
  const Case twice = drawn(7, 2);
  const std::vector<int> second = drawn(8, 1).microbatch_order;
  EXPECT_EQ(twice.redrawn(twice, 8).microbatch_order, second);
  EXPECT_NE(twice.microbatch_order, second);
  EXPECT_EQ(drawn(8, 1).redrawn, nullptr);
}

TEST(UnequalBatch, CountsItsOwnTokens) {
  const Case made = prepare_first(read(kModelled, {kDrawn}));
  double tokens = 0;
  for (const Documents& each : made.scenario->batch.unequal->documents) tokens += each[0];
  const auto rate = throughput_of(made, *make_program(made), Seconds(2));
  ASSERT_TRUE(rate.has_value());
  EXPECT_NEAR(rate->samples_per_second * 8192, tokens / 2, 1e-6);
}

// A file as a table program saves it: a byte-order mark, CRLF line ends, a line of words.
TEST(UnequalBatch, ReadsAHistogram) {
  const auto drawn = [](const std::string& lines) {
    const auto file = testing::test_folder() / "histogram.csv";
    testing::write_file(file, lines);
    return read(kGiven, {"batch.factors={file: '" + file.string() + "', seed: 5}"})
        .batch.unequal->factors;
  };
  const std::vector<double> plain = drawn("1,3\n2.5,1\n");
  EXPECT_EQ(drawn("\xEF\xBB\xBF"
                  "1,3\r\n2.5,1\r\n"),
            plain);
  EXPECT_EQ(drawn("factor,count\n# few\n1,3\n2.5,1\n"), plain);
  EXPECT_NE(drawn("1,3\n"), drawn("2.5,1\n"));
}

TEST(UnequalBatch, DrawsTheOnlyValueThereIs) {
  const std::string one = "batch.factors={distribution: uniform, min: 2, max: 2}";
  EXPECT_EQ(read(kGiven, {one}).batch.unequal->factors, std::vector<double>(4, 2));
}

TEST(UnequalBatch, RefusesWithAPlace) {
  const std::string three = refusal(kGiven, {"batch.factors=[1, 2, 3]"});
  EXPECT_TRUE(has(three, "3 factors, but there are 4 microbatches")) << three;
  EXPECT_TRUE(has(refusal(kGiven, {"batch.factors=[1, 2, 3, 0]"}), "must be greater than 0"));
  EXPECT_TRUE(has(refusal(kGiven, {"batch={num_microbatches: 2, lengths: [5, 6]}"}),
                  "lengths need a model"));
  EXPECT_TRUE(has(refusal(kModelled, {"batch.factors=[1, 1, 1, 1, 1, 1, 1, 2]"}),
                  "factors are for given costs"));
  EXPECT_TRUE(has(refusal(kModelled, {"batch.lengths=[9000]"}), "8192"));
  EXPECT_TRUE(has(refusal(kModelled, {"batch.lengths=[100]"}), "1 lengths, but 8 microbatches"));
  EXPECT_TRUE(has(refusal(kModelled, {"batch.lengths=[8192, 8192]", "batch.packing=greedy"}),
                  "16384 tokens fill 2 microbatches of 8192, not 8"));
  EXPECT_TRUE(has(refusal(kGiven, {"batch.packing=greedy"}), "give 'lengths'"));
  EXPECT_TRUE(has(refusal(kModelled, {kDrawn, "batch.packing={name: greedy, room: 2}"}),
                  "is of packing balanced"));
  EXPECT_TRUE(
      has(refusal(kModelled, {kDrawn, "memory={flash_attention: false}"}), "need flash attention"));
  EXPECT_TRUE(
      has(refusal(kModelled, {"batch.lengths={distribution: normal, mean: 3}"}), "lognormal"));
  const std::string s = refusal(kModelled, {"batch.lengths={file: tests/case/no_such.csv}"});
  EXPECT_TRUE(has(s, "no_such.csv")) << s;
}

}  // namespace
}  // namespace pipesim::unequal_batch_test
