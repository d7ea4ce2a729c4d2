// tools/trace_torch.py on Debian's PyTorch, and what the reader makes of its files.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/read/traced.h"
#include "tests/app/command.h"
#include "tests/traced_llama.h"

namespace pipesim::testing::trace_test {
namespace {

const std::string kSource = PIPESIM_SOURCE_DIR;
const std::string kModels = kSource + "/tests/torch/models/";

class Trace : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    if (shell("/usr/bin/python3 -c 'import torch'").code != 0) {
      GTEST_SKIP() << "there is no PyTorch (python3-torch)";
    }
  }
  [[nodiscard]] Outcome trace(const std::string& arguments) const {
    return shell("/usr/bin/python3 " + kSource + "/tools/trace_torch.py " + arguments);
  }
  [[nodiscard]] std::string file(const std::string& name) const {
    return (folder_ / name).string();
  }
};

TEST_F(Trace, FindsALlamaAsTheCatalogueHasIt) {
  const Outcome outcome = trace(kModels + "llama.py:llama -o llama.json");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("8.03B parameters, 32 blocks, different: 1"), std::string::npos)
      << outcome.output;
  expect_as_catalogued(read_traced_file(file("llama.json"), {}));
}

TEST_F(Trace, FindsTheSameBlockFromOtherSizes) {
  const std::string of = kModels + "llama.py:llama layers=2 ";
  ASSERT_EQ(trace(of + "-o one.json").code, 0);
  ASSERT_EQ(trace(of + "--batch 3 --seq 1280 -o other.json").code, 0);
  EXPECT_EQ(read("one.json"), read("other.json"));
}

TEST_F(Trace, FindsTheExpertsOfAMixture) {
  const Outcome outcome = trace(kModels + "mixture.py:gpt experts=16 per_token=4 -o m.json");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const Transformer model = read_traced_file(file("m.json"), {});
  ASSERT_TRUE(model.experts);
  EXPECT_EQ(model.experts->num_experts, 16);
  EXPECT_EQ(model.experts->experts_per_token, 4);
  EXPECT_EQ(model.experts->ffn_hidden_size, 2048);
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_EQ(model.max_position_embeddings, 4096);
}

TEST_F(Trace, SaysWhatItCannotDescribe) {
  struct Refused {
    std::string arguments;
    std::string message;
  };
  const std::string llama = kModels + "llama.py:llama layers=2 ";
  for (const Refused& each :
       {Refused{kModels + "nowhere.py:llama", "No module named 'nowhere'"},
        Refused{kModels + "llama.py:lama", "has no function 'lama'; it has Attention"},
        Refused{llama + "width=8", "got an unexpected keyword argument 'width'"},
        Refused{llama + "layers", "'layers' is no argument of the form NAME=value"},
        Refused{llama + "--blocks blocks", "there is no such list; there are layers"},
        Refused{llama + "--rows nothing",
                "o_proj.weight is taken as whole, and reads values that ranks divide"},
        Refused{llama + "--columns nothing", "reads values that ranks hold whole"}}) {
    const Outcome outcome = trace(each.arguments + " -o out.json");
    EXPECT_EQ(outcome.code, 2) << each.arguments << outcome.output;
    EXPECT_NE(outcome.output.find(each.message), std::string::npos) << outcome.output;
    EXPECT_EQ(read("out.json"), "");
  }
}

}  // namespace
}  // namespace pipesim::testing::trace_test
