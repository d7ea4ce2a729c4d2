// Expectations of a trace of tests/torch/models/llama.py: the catalogue's llama3-8b.
#pragma once

#include <gtest/gtest.h>
#include <map>
#include <utility>

#include "models/layer_memory.h"
#include "models/layer_parameters.h"
#include "models/layer_work.h"
#include "sim/read/model.h"

namespace pipesim::testing {

// Bytes of a work's collectives by kind and group.
inline std::map<std::pair<CollectiveKind, Group>, double> exchanged(const Work& work) {
  std::map<std::pair<CollectiveKind, Group>, double> sums;
  for (const Collective& each : work.collectives) {
    sums[{each.kind, each.group}] += each.bytes.value();
  }
  return sums;
}

inline void expect_layer_as_catalogued(const Transformer& traced, const LayerContext& context) {
  constexpr double kSaved = 0.05;
  const Transformer known = find_model("llama3-8b", {});
  ASSERT_EQ(fault_of(traced, context), "");
  for (const PassKind pass : {PassKind::kF, PassKind::kB, PassKind::kW, PassKind::kR}) {
    const Work own = layer_work(traced, LayerKind::kTraced1, pass, context);
    const Work theirs = layer_work(known, LayerKind::kDense, pass, context);
    EXPECT_DOUBLE_EQ(flops(own).value(), flops(theirs).value()) << to_text(pass);
    EXPECT_EQ(exchanged(own), exchanged(theirs)) << to_text(pass);
    ASSERT_EQ(own.attention.size(), theirs.attention.size()) << to_text(pass);
    for (size_t i = 0; i < own.attention.size(); ++i) {
      EXPECT_DOUBLE_EQ(own.attention[i].moved.value(), theirs.attention[i].moved.value());
      EXPECT_DOUBLE_EQ(own.attention[i].rows, theirs.attention[i].rows);
    }
    // Norm, rotation and activation are several kernels each in PyTorch.
    EXPECT_GE(own.moved, theirs.moved) << to_text(pass);
  }
  const LayerMemory own = layer_memory(traced, LayerKind::kTraced1, context);
  const LayerMemory theirs = layer_memory(known, LayerKind::kDense, context);
  EXPECT_EQ(own.dense_parameters, theirs.dense_parameters);
  EXPECT_EQ(own.weights, theirs.weights);
  EXPECT_EQ(own.checkpoint, theirs.checkpoint);
  EXPECT_NEAR(own.activation / theirs.activation, 1, kSaved);
  EXPECT_NEAR(own.weight_stash / theirs.weight_stash, 1, kSaved);
}

inline void expect_as_catalogued(const Transformer& traced) {
  const Transformer known = find_model("llama3-8b", {});
  EXPECT_EQ(traced.num_layers, known.num_layers);
  EXPECT_EQ(total_parameters(traced), total_parameters(known));
  EXPECT_DOUBLE_EQ(model_flops(traced, 4096, true).value(), model_flops(known, 4096, true).value());
  EXPECT_DOUBLE_EQ(model_flops(traced, 4096, false).value(),
                   model_flops(known, 4096, false).value());
  LayerContext context{.micro_batch_size = 2, .seq_length = 4096};
  expect_layer_as_catalogued(traced, context);
  context.tensor = 4;
  expect_layer_as_catalogued(traced, context);
  context.sequence_parallel = true;
  expect_layer_as_catalogued(traced, context);
  context.keeps_gathered = true;
  expect_layer_as_catalogued(traced, context);
  context.precision = Precision::kFp32;
  expect_layer_as_catalogued(traced, context);
}

}  // namespace pipesim::testing
