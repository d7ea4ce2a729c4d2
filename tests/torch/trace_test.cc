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
  ASSERT_EQ(trace(of + "--batch 3 --seq 1280 --longest 3000 -o other.json").code, 0);
  std::string one = read("one.json");
  const std::string lengths = "[512, 4096]";
  ASSERT_NE(one.find(lengths), std::string::npos);
  EXPECT_EQ(one.replace(one.find(lengths), lengths.size(), "[1280, 3000]"), read("other.json"));
}

// Heads are counted where they are turned to the front; positions have a row for each token, which
// a square matrix beside the blocks has not.
TEST_F(Trace, FindsHeadsAndPositions) {
  const Outcome outcome = trace(kModels + "unfused.py:build -o u.json");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const std::string text = read("u.json");
  EXPECT_NE(text.find("\"max_positions\": 8192"), std::string::npos);
  EXPECT_NE(text.find("\"other_parameters\": {\"between.weight\": [768, 768]}"), std::string::npos);
  for (const char* heads :
       {R"("q_proj.weight", "shape": [768, 768], "division": "columns", "heads": [12])",
        R"("k_proj.weight", "shape": [256, 768], "division": "columns", "heads": [4])"}) {
    EXPECT_NE(text.find(heads), std::string::npos) << heads;
  }
}

// A function that is taken by name when the inputs' file loads is the traced one, too.
TEST_F(Trace, SeesAttentionThatInputsImport) {
  write("own.py", R"(
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(64, 192)

    def forward(self, x):
        q, k, v = (each.unflatten(-1, (4, 16)).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
        return x + scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(1000, 64)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(64, 1000)

    def forward(self, ids):
        x = self.table(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def build():
    return Model()


def inputs(batch, seq):
    return {"ids": torch.zeros(batch, seq, dtype=torch.long)}
)");
  const Outcome outcome = trace("own.py:build --inputs own.py:inputs --whole '.*' -o own.json");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(read("own.json").find("{\"op\": \"attention\""), std::string::npos);
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
  const std::string unfused = kModels + "unfused.py:build ";
  for (const Refused& each :
       {Refused{kModels + "nowhere.py:llama", "No module named 'nowhere'"},
        Refused{kModels + "llama.py:lama", "has no function 'lama'; it has Attention"},
        Refused{llama + "width=8", "got an unexpected keyword argument 'width'"},
        Refused{llama + "layers", "'layers' is no argument of the form NAME=value"},
        Refused{llama + "--blocks blocks", "there is no such list; there are layers"},
        Refused{llama + "--rows nothing",
                "o_proj.weight is taken as whole, and reads values that ranks divide"},
        Refused{llama + "--columns nothing", "reads values that ranks hold whole"},
        Refused{llama + "--columns '('", "trace_torch.py: --columns (: error: missing )"},
        Refused{llama + "--seq 0", "--seq of 1 or more"},
        Refused{llama + "heads=0", "llama.py:llama: ZeroDivisionError: "},
        Refused{kModels + "mixture.py:gpt layers=2 positions=2048",
                "wpe.weight has 2048 rows, fewer than the 4096 tokens of --longest"},
        Refused{unfused + "window=1024", "trace a range of lengths (--seq, --longest)"},
        Refused{unfused + "positions=2048",
                "the forward of 2 x 4096 tokens (--batch, --seq, --longest): aten.add.Tensor of "
                "shapes without numbers: RuntimeError: The size of tensor a (4096) must match"}}) {
    const Outcome outcome = trace(each.arguments + " -o out.json");
    EXPECT_EQ(outcome.code, 2) << each.arguments << outcome.output;
    EXPECT_NE(outcome.output.find(each.message), std::string::npos) << outcome.output;
    EXPECT_EQ(read("out.json"), "");
  }
}

}  // namespace
}  // namespace pipesim::testing::trace_test
