// A forward and a backward through the same layers at once, as Megatron-LM issues them
// (data/pairs).
#include "models/pair.h"

#include <gtest/gtest.h>

#include "tests/golden/data.h"

namespace pipesim::pair_test {
namespace {

using golden::data_files;
using golden::read_json;
using nlohmann::json;

PairTimes times_of(const json& params) {
  const json& given = params.at("seconds");
  const auto seconds = [&](const char* part) { return Seconds(given.value(part, 0.0)); };
  const ForwardParts forward{seconds("attn.fwd"), seconds("dispatch.fwd"), seconds("mlp.fwd"),
                             seconds("combine.fwd")};
  const BackwardParts backward{seconds("combine.bwd"), seconds("mlp.bwd"), seconds("dispatch.bwd"),
                               seconds("attn.bwd"),    seconds("mlp.dw"),  seconds("attn.dw")};
  const std::vector<ForwardParts> forwards(params.at("forward_layers").get<size_t>(), forward);
  const std::vector<BackwardParts> backwards(params.at("backward_layers").get<size_t>(), backward);
  const PairOptions options{.delay_weight = params.at("delay_wgrad").get<bool>(),
                            .early_attention = params.at("early_attn_release").get<bool>()};
  return pair_times(forwards, backwards, options);
}

TEST(Pair, TakesWhatTheOrderOfMegatronTakesOnTwoStreams) {
  const auto files = data_files("pairs");
  EXPECT_EQ(files.size(), 4U);
  for (const auto& file : files) {
    const json data = read_json(file);
    const PairTimes times = times_of(data.at("params"));
    const json& wanted = data.at("eval");
    EXPECT_EQ(times.total.value(), wanted.at("duration").get<double>()) << file;
    const auto expect_ready = [&](const char* key, Seconds ready) {
      if (wanted.at(key).is_number()) {
        EXPECT_EQ(ready.value(), wanted.at(key).get<double>()) << file << ", " << key;
      }
    };
    expect_ready("send_forward_ready", times.forward_ready);
    expect_ready("send_backward_ready", times.backward_ready);
  }
}

}  // namespace
}  // namespace pipesim::pair_test
