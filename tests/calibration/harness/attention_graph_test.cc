// cuDNN's own word, without a GPU, on whether the attention graphs are ones that it can run.
#include "validate/calibration/harness/attention_graph.h"

#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace pipesim::calibration {
namespace {

std::string hopper() {
  std::ifstream file(PIPESIM_SOURCE_DIR "/tests/calibration/data/cudnn_hopper.json");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The longest of the planned shapes of each head size and grouping: what decides the kernel.
std::vector<AttentionShape> kinds_of_shape() {
  std::map<std::pair<int64_t, int64_t>, AttentionShape> kinds;
  for (const AttentionShape& shape : make_plan(Mode::kFull).attention) {
    AttentionShape& kind = kinds[{shape.head_dim, shape.heads / shape.kv_heads}];
    if (shape.sequence > kind.sequence) kind = shape;
  }
  std::vector<AttentionShape> shapes;
  for (const auto& [key, shape] : kinds) shapes.push_back(shape);
  return shapes;
}

TEST(AttentionGraph, CompilesForAHopperCardInEveryKindOfPlannedShape) {
  const std::vector<AttentionShape> shapes = kinds_of_shape();
  ASSERT_GE(shapes.size(), 3u);  // heads of 96 and 128, and grouped queries
  for (const AttentionShape& shape : shapes) {
    const auto name = ::testing::Message()
                      << shape.batch << " x " << shape.heads << "/" << shape.kv_heads << " x "
                      << shape.sequence << " x " << shape.head_dim;
    EXPECT_TRUE(attention_forward_graph(shape).graph.compiles_without_device(hopper())) << name;
    EXPECT_TRUE(attention_backward_graph(shape).graph.compiles_without_device(hopper())) << name;
  }
}

TEST(AttentionGraph, DoesNotCompileForAHeadThatIsNoMultipleOfEight) {
  const AttentionShape shape{1, 8, 8, 1024, 100};
  EXPECT_FALSE(attention_forward_graph(shape).graph.compiles_without_device(hopper()));
  EXPECT_FALSE(attention_backward_graph(shape).graph.compiles_without_device(hopper()));
}

TEST(AttentionGraph, HeadsThatDoNotDivideAreRefusedWithCudnnsReason) {
  try {
    (void)attention_forward_graph({1, 8, 3, 1024, 128}).graph.compiles_without_device(hopper());
    FAIL() << "8 heads over 3 kv heads were accepted";
  } catch (const CudnnError& error) {
    EXPECT_NE(std::string(error.what()).find("CUDNN_STATUS_BAD_PARAM"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace pipesim::calibration
