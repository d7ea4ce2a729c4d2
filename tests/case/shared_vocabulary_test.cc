// Vocabulary placements of a model on a named cluster, costs and memory modelled.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim::shared_vocabulary_test {
namespace {

std::string text(const std::string& model, const std::string& schedule, int devices,
                 const std::string& placement, int vocabulary) {
  return fmt::format(
      "model: {{base: {}, vocab_size: {}}}\n"
      "cluster: a100-roce\n"
      "schedule: {}\n"
      "parallel: {{pipeline_model_parallel_size: {}}}\n"
      "batch: {{num_microbatches: {}, micro_batch_size: 1, seq_length: 2048}}\n"
      "vocabulary: {}\n",
      model, vocabulary, schedule, devices, 4 * devices, placement);
}

Scenario read(const std::string& of, const std::vector<Override>& overrides = {}) {
  return read_scenario(YamlSource("s.yaml", of, overrides));
}
Result run(const std::string& of) {
  const Scenario scenario = read(of);
  return simulate(prepare_first(scenario));
}

template <class Of>
double spread(const Report& report, Of of) {
  double least = of(report.devices.front());
  double most = least;
  for (const DeviceReport& device : report.devices) {
    least = std::min(least, of(device));
    most = std::max(most, of(device));
  }
  return most / least - 1;
}

// The claim of Vocabulary Parallelism for V-Half: balanced compute and memory, whatever the
// vocabulary.
TEST(SharedVocabulary, BalancesVHalfWithinThreePercent) {
  for (const auto& [model, devices] : {std::pair{"vp-7b", 16}, {"vp-16b", 24}, {"vp-30b", 32}}) {
    for (const char* placement : {"vocab-1", "vocab-2"}) {
      for (const int vocabulary : {32000, 64000, 128000, 256000}) {
        const Report report = run(text(model, "v-half", devices, placement, vocabulary)).report;
        SCOPED_TRACE(fmt::format("{} {} {}", model, placement, vocabulary));
        EXPECT_LT(spread(report, [](const DeviceReport& of) { return of.busy.value(); }), 0.03);
        EXPECT_LT(spread(report, [](const DeviceReport& of) { return of.peak_memory()->value(); }),
                  0.03);
      }
    }
  }
}

TEST(SharedVocabulary, IsWhatBalancesIt) {
  const Report report = run(text("vp-7b", "v-half", 16, "first_last", 256000)).report;
  EXPECT_GT(spread(report, [](const DeviceReport& of) { return of.busy.value(); }), 0.5);
  EXPECT_GT(spread(report, [](const DeviceReport& of) { return of.peak_memory()->value(); }), 0.5);
}

TEST(SharedVocabulary, TakesLessTimeThanOneOnTheEnds) {
  for (const char* schedule : {"1f1b", "v-half"}) {
    const char* model = schedule[0] == 'v' ? "vp-7b" : "vp-10b";
    const auto seconds = [&](const char* placement) {
      return run(text(model, schedule, 16, placement, 256000)).report.iteration;
    };
    const Seconds ends = seconds("first_last");
    for (const char* placement : {"vocab-1", "vocab-2", "interlaced"}) {
      EXPECT_LT(seconds(placement), 0.7 * ends) << schedule << " " << placement;
    }
  }
}

TEST(SharedVocabulary, MovesLayersAwayFromTheOutputWhenRedistributed) {
  const auto longest = [](const char* placement) {
    const Scenario scenario = read(text("vp-4b", "1f1b", 8, placement, 256000));
    const Problem problem = prepare_first(scenario).problem;
    Seconds most;
    for (const StageCost& stage : problem.stages) {
      most = std::max(most, stage.forward + stage.backward_input + stage.backward_weight);
    }
    return most;
  };
  EXPECT_LT(longest("redistributed"), 0.75 * longest("first_last"));
}

TEST(SharedVocabulary, RefusesToRedistributeASplitThatIsGivenOrSeveralStagesADevice) {
  const auto refused = [](const std::string& of, const std::vector<Override>& overrides) {
    try {
      (void)read(of, overrides);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto asking = [](const char* what) {
    return std::vector{parse_override(what, {"command line", 1, 1, ""})};
  };
  const std::string of = text("vp-4b", "1f1b", 8, "redistributed", 256000);
  for (const char* split :
       {"parallel.num_layers_per_stage=[4, 4, 4, 4, 4, 4, 4, 4]", "parallel.balance=auto"}) {
    EXPECT_NE(refused(of, asking(split)).find("'redistributed' splits the layers"),
              std::string::npos);
  }
  EXPECT_NE(refused(of, asking("schedule=v-half")).find("s.yaml:6:13: 'redistributed' has one"),
            std::string::npos)
      << refused(of, asking("schedule=v-half"));
}

// Interlaced passes wait for their collectives; the others have them beside compute.
TEST(SharedVocabulary, KnowsItsCollectives) {
  const auto barriers = [](const char* placement) {
    const Scenario scenario = read(text("vp-4b", "1f1b", 8, placement, 128000));
    return prepare_first(scenario).problem.barriers;
  };
  const auto of = [](const BarrierSeconds& all, Barrier barrier) { return all[barrier]; };
  const BarrierSeconds two = barriers("vocab-1");
  const BarrierSeconds one = barriers("vocab-2");
  for (const Barrier each : {Barrier::kEmbedding, Barrier::kOutput, Barrier::kSoftmax,
                             Barrier::kOutputGradient, Barrier::kEmbeddingGradient}) {
    EXPECT_GT(of(two, each), Seconds(0)) << to_text(each);
  }
  EXPECT_EQ(of(two, Barrier::kRendezvous), Seconds(0));
  // vocab-2 reduces the input's gradient with the softmax.
  EXPECT_EQ(of(one, Barrier::kSoftmax),
            of(two, Barrier::kSoftmax) + of(two, Barrier::kOutputGradient));
}

}  // namespace
}  // namespace pipesim::shared_vocabulary_test
