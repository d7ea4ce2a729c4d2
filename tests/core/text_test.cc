#include "sim/core/text.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace pipesim::text_test {
namespace {

const std::vector<std::string> kKeys{"pipeline_model_parallel_size", "num_microbatches",
                                     "micro_batch_size", "global_batch_size"};
const std::vector<std::string> kNames{"gpipe", "1f1b", "zb-h1", "zb-h2", "zb-h1-light"};

TEST(NearestName, ForgivesSlips) {
  EXPECT_EQ(nearest_name("num_microbatch", kKeys), "num_microbatches");
  EXPECT_EQ(nearest_name("gpip", kNames), "gpipe");
  EXPECT_EQ(nearest_name("zb-h1-ligth", kNames), "zb-h1-light");
  EXPECT_EQ(nearest_name("f1b", kNames), "1f1b");
}

TEST(SameName, DiffersInCaseAndDashesAlone) {
  const std::vector<std::string> names{"zb", "zb-v", "1f1b", "v-min", "v_min"};
  EXPECT_EQ(same_name("zbv", names), "zb-v");
  EXPECT_EQ(same_name("1F1B", names), "1f1b");
  EXPECT_EQ(same_name("ZB_V", names), "zb-v");
  EXPECT_EQ(same_name("zb-w", names), "");
  EXPECT_EQ(same_name("vmin", names), "");  // of two
}

TEST(NearestName, CountsNeitherCaseNorDashes) {
  EXPECT_EQ(nearest_name("GPipe", kNames), "gpipe");
  EXPECT_EQ(nearest_name("ZB_H2", kNames), "zb-h2");
  EXPECT_EQ(nearest_name("Pipeline-Model-Parallel-Size", kKeys), "pipeline_model_parallel_size");
}

TEST(NearestName, CountsASwapOfNeighboursOnce) {
  // Two swaps are within the two slips that a short name may have; as four edits they would not be.
  EXPECT_EQ(nearest_name("badc", std::vector<std::string>{"abcd"}), "abcd");
}

TEST(NearestName, TakesTheFirstOfEquallyNearOnes) {
  EXPECT_EQ(nearest_name("zb-h3", kNames), "zb-h1");
}

TEST(NearestName, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(nearest_name("checkpoint", kNames), "");
  EXPECT_EQ(nearest_name("x", kNames), "");
  EXPECT_EQ(nearest_name("", kNames), "");
  EXPECT_EQ(nearest_name("gpipe", std::vector<std::string>{}), "");
}

TEST(NearestName, DoesNotReplaceAShortNameWhole) {
  EXPECT_EQ(nearest_name("ab", std::vector<std::string>{"cd"}), "");
}

TEST(Suggestion, NamesTheNearestOrAll) {
  EXPECT_EQ(suggestion("gpip", kNames), "; did you mean 'gpipe'?");
  EXPECT_EQ(suggestion("checkpoint", kNames), "; valid: gpipe, 1f1b, zb-h1, zb-h2, zb-h1-light");
  EXPECT_EQ(suggestion("gpip", std::vector<std::string>{}), "");
}

TEST(Suggestion, NamesThreeThatHoldPartOfTheName) {
  const std::vector<std::string> models{"gpt3-175b", "llama2-13b", "llama3-8b", "llama3-70b",
                                        "olmo-2-13b"};
  EXPECT_EQ(suggestion("13b", models), "; did you mean 'llama2-13b', 'olmo-2-13b'?");
  EXPECT_EQ(suggestion("Llama", models), "; did you mean 'llama2-13b', 'llama3-8b', 'llama3-70b'?");
  EXPECT_EQ(suggestion("Meta-Llama-3-8B-Chat", models), "; did you mean 'llama3-8b'?");
}

TEST(Suggestion, NamesThoseWithTheWordsBeforeTheNearest) {
  const std::vector<std::string> models{"po-5.8b", "megatron-18b", "llama3-8b", "qwen3-32b",
                                        "qwen3-30b-a3b"};
  EXPECT_EQ(suggestion("8b", models), "; did you mean 'llama3-8b'?");
  EXPECT_EQ(suggestion("Qwen3 30b", models), "; did you mean 'qwen3-30b-a3b', 'qwen3-32b'?");
}

TEST(Suggestion, NamesThoseOfTheFamilyAndSizeFirst) {
  const std::vector<std::string> models{"llama2-70b", "llama3-70b", "llama3.1-405b", "opt-175b"};
  EXPECT_EQ(suggestion("llama3-405b", models), "; did you mean 'llama3.1-405b', 'llama3-70b'?");
  EXPECT_EQ(suggestion("llama3.3-70b", models), "; did you mean 'llama3-70b', 'llama2-70b'?");
}

TEST(MeantName, IsTheSameButForCaseAndDashes) {
  EXPECT_EQ(meant_name("ZBH1", kNames), "zb-h1");
  EXPECT_EQ(meant_name("1F1B", kNames), "1f1b");
  EXPECT_EQ(meant_name("ZB H1 Light", kNames), "zb-h1-light");
  EXPECT_EQ(meant_name("zb", kNames), "zb");
}

TEST(Human, WritesSecondsInAFittingUnit) {
  EXPECT_EQ(human(Seconds(0)), "0 s");
  EXPECT_EQ(human(Seconds(2.5)), "2.500 s");
  EXPECT_EQ(human(Seconds(0.018522)), "18.522 ms");
  EXPECT_EQ(human(Seconds(5e-6)), "5.000 us");
  EXPECT_EQ(human(Seconds(7.25e-9)), "7.250 ns");
  EXPECT_EQ(human(Seconds(-0.001)), "-1.000 ms");
  EXPECT_EQ(human(Seconds(3e-12)), "0.003 ns");
}

TEST(Human, WritesBytesInPowersOfTwo) {
  EXPECT_EQ(human(Bytes(0)), "0.00 B");
  EXPECT_EQ(human(Bytes(512)), "512.00 B");
  EXPECT_EQ(human(Bytes(1536)), "1.50 KiB");
  EXPECT_EQ(human(3.7 * kGiB), "3.70 GiB");
  EXPECT_EQ(human(2048 * kGiB), "2.00 TiB");
}

TEST(Human, GoesToTheNextUnitWhenRoundingReachesIt) {
  EXPECT_EQ(human(Seconds(0.9999999)), "1.000 s");
  EXPECT_EQ(human(Bytes(1023.999)), "1.00 KiB");
}

}  // namespace
}  // namespace pipesim::text_test
