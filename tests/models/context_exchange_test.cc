// Bytes that context ranks exchange for attention, kind by kind, counted by hand.
#include <gtest/gtest.h>
#include <vector>

#include "models/layer_cost.h"
#include "models/layer_memory.h"
#include "models/layer_work.h"
#include "models/temporaries.h"
#include "tests/models/shapes.h"

namespace pipesim::context_exchange_test {
namespace {

using testing::deepseek_v3;
using testing::gpt;
using testing::llama3_70b;

constexpr ContextExchange kAll[] = {ContextExchange::kAllGather, ContextExchange::kRing,
                                    ContextExchange::kHeads, ContextExchange::kHeadsAndRing};

// 8192 tokens a rank of 32768; 64 heads and 8 groups of 128, over two tensor ranks.
LayerContext divided(ContextExchange exchange, int tensor = 2) {
  LayerContext context;
  context.seq_length = 32768;
  context.tensor = tensor;
  context.sequence_parallel = tensor > 1;
  context.context = 4;
  context.exchange = exchange;
  context.hierarchy = {2, 2};
  return context;
}
constexpr double kQueries = 8192.0 * 64 * 128 * 2 / 2;  // outputs too
constexpr double kKeys = 8192.0 * 8 * 128 * 2 / 2;      // values too

struct Sent {
  CollectiveKind kind;
  Group group;
  double bytes;
  int steps;
  int beside;
  friend bool operator==(const Sent&, const Sent&) = default;
};

std::vector<Sent> sent(PassKind pass, const LayerContext& context,
                       const Transformer& model = llama3_70b()) {
  std::vector<Sent> all;
  for (const Collective& each : layer_work(model, LayerKind::kDense, pass, context).collectives) {
    if (each.group == Group::kTensor) continue;
    all.push_back({each.kind, each.group, each.bytes.value(), each.steps, each.beside});
  }
  return all;
}

TEST(ContextExchange, GathersKeysAndValuesAndScattersTheirGradients) {
  const LayerContext context = divided(ContextExchange::kAllGather);
  const Sent gather{CollectiveKind::kAllGather, Group::kContext, 4 * 2 * kKeys, 1, -1};
  const Sent scatter{CollectiveKind::kReduceScatter, Group::kContext, 4 * 2 * kKeys, 1, -1};
  EXPECT_EQ(sent(PassKind::kF, context), std::vector{gather});
  EXPECT_EQ(sent(PassKind::kB, context), (std::vector{gather, scatter}));
  EXPECT_TRUE(sent(PassKind::kW, context).empty());
}

// Keys and values go three times around four ranks; backward so do their gradients, a step behind.
TEST(ContextExchange, PassesKeysAndValuesAroundARing) {
  const LayerContext context = divided(ContextExchange::kRing);
  const auto message = [](double bytes, int steps, int beside) {
    return Sent{CollectiveKind::kSendReceive, Group::kContext, bytes, steps, beside};
  };
  EXPECT_EQ(sent(PassKind::kF, context), std::vector{message(2 * kKeys, 3, 0)});
  EXPECT_EQ(sent(PassKind::kB, context),
            (std::vector{message(2 * kKeys, 2, 0), message(4 * kKeys, 2, 0)}));
  EXPECT_TRUE(sent(PassKind::kW, context).empty());
  LayerContext again = context;
  again.recompute = RecomputeGranularity::kSelective;
  EXPECT_EQ(
      sent(PassKind::kB, again),
      (std::vector{message(2 * kKeys, 3, 0), message(2 * kKeys, 2, 1), message(4 * kKeys, 2, 1)}))
      << "the kernel that runs again first, and its ring";
  LayerContext two = context;
  two.context = 2;
  EXPECT_EQ(sent(PassKind::kB, two), std::vector{message(4 * kKeys, 2, 0)})
      << "of 16384 tokens: keys and values beside the first part, gradients beside the second";
}

TEST(ContextExchange, DividesHeadsByAllToAlls) {
  const LayerContext context = divided(ContextExchange::kHeads);
  const auto all_to_all = [](double bytes) {
    return Sent{CollectiveKind::kAllToAll, Group::kContextHeads, bytes, 1, -1};
  };
  const std::vector forward{all_to_all(kQueries), all_to_all(kKeys), all_to_all(kKeys),
                            all_to_all(kQueries)};
  EXPECT_EQ(sent(PassKind::kF, context), forward);
  std::vector<Sent> backward = forward;
  backward.push_back(all_to_all(kQueries));  // the output beside its gradient
  EXPECT_EQ(sent(PassKind::kB, context), backward);
  EXPECT_TRUE(sent(PassKind::kW, context).empty());
}

// All 64 heads' keys and values travel and are kept; making them reads 8 heads and writes 64.
TEST(ContextExchange, RepeatsKeysForEveryHeadBeforeHeadsAreDivided) {
  LayerContext context = divided(ContextExchange::kHeads);
  context.repeats_keys = true;
  const Sent whole{CollectiveKind::kAllToAll, Group::kContextHeads, kQueries, 1, -1};
  EXPECT_EQ(sent(PassKind::kF, context), std::vector(4, whole));
  EXPECT_EQ(sent(PassKind::kB, context), std::vector(5, whole));
  const auto work = [](const LayerContext& of) {
    return layer_work(llama3_70b(), LayerKind::kDense, PassKind::kF, of);
  };
  const LayerContext grouped = divided(ContextExchange::kHeads);
  const auto streamed = [&](const LayerContext& of) { return work(of).moved.value(); };
  EXPECT_DOUBLE_EQ(streamed(context) - streamed(grouped),
                   2 * (kQueries + kKeys) + 2 * 4 * (kQueries - kKeys))
      << "repeated, and laid out anew before and after the exchange";
  EXPECT_DOUBLE_EQ(flops(work(context)).value(), flops(work(grouped)).value());
  const auto kept = [](const LayerContext& of) {
    double bytes = 0;
    for (const KeptTensor& each : kept_tensors(llama3_70b(), LayerKind::kDense, of)) {
      bytes += each.bytes.value();
    }
    return bytes;
  };
  EXPECT_DOUBLE_EQ(kept(context) - kept(grouped), 2 * (kQueries - kKeys));
  EXPECT_NE(fault_of(llama3_70b(), divided(ContextExchange::kHeads, 4)), "");
  context.tensor = 4;
  EXPECT_EQ(fault_of(llama3_70b(), context), "") << "16 ranks for 8 key heads";
}

TEST(ContextExchange, DividesHeadsAmongNeighboursWithinARing) {
  const LayerContext context = divided(ContextExchange::kHeadsAndRing);
  const std::vector<Sent> forward = sent(PassKind::kF, context);
  ASSERT_EQ(forward.size(), 5U);
  EXPECT_EQ(forward[0].bytes, kQueries);
  EXPECT_EQ(forward[4], (Sent{CollectiveKind::kSendReceive, Group::kContext, 2 * kKeys, 1, 0}))
      << "twice the tokens of half the heads, to one other group";
}

// 192 of a key, 128 of a value, for each of 128 heads.
TEST(ContextExchange, SendsLatentKeysAndValuesAsAttentionReadsThem) {
  const LayerContext context = divided(ContextExchange::kRing);
  EXPECT_EQ(sent(PassKind::kF, context, deepseek_v3()).front().bytes,
            8192.0 * 128 * (192 + 128) * 2 / 2);
}

TEST(ContextExchange, EveryKindComputesAsMuchAndKeepsAsMuch) {
  const double pairs = 32768.0 * 32768 / 2 / 4;
  for (const ContextExchange exchange : kAll) {
    const LayerContext context = divided(exchange);
    const Work work = layer_work(llama3_70b(), LayerKind::kDense, PassKind::kF, context);
    ASSERT_EQ(work.attention.size(), 1U);
    EXPECT_DOUBLE_EQ(work.attention[0].flops.value(), 2 * pairs * 32 * (128 + 128));
    EXPECT_EQ(layer_memory(llama3_70b(), LayerKind::kDense, context).activation,
              layer_memory(llama3_70b(), LayerKind::kDense, divided(kAll[0])).activation);
  }
}

// Gathered and in a ring attention reads keys and values of all tokens, with heads divided of its
// own heads alone; a ring reads queries and writes outputs in each of its four parts.
TEST(ContextExchange, AttentionReadsWhatIsThere) {
  const auto moved = [](ContextExchange exchange) {
    return layer_work(llama3_70b(), LayerKind::kDense, PassKind::kF, divided(exchange))
        .attention[0]
        .moved.value();
  };
  EXPECT_DOUBLE_EQ(moved(ContextExchange::kAllGather), 2 * kQueries + 4 * 2 * kKeys);
  EXPECT_DOUBLE_EQ(moved(ContextExchange::kRing), 4 * 2 * kQueries + 4 * 2 * kKeys);
  EXPECT_DOUBLE_EQ(moved(ContextExchange::kHeads), 2 * kQueries + 2 * kKeys);
  EXPECT_DOUBLE_EQ(moved(ContextExchange::kHeadsAndRing), 2 * 2 * kQueries + 2 * 2 * kKeys);
}

TEST(ContextExchange, GroupsStandWhereRanksDo) {
  CostSetting setting;
  setting.context = divided(ContextExchange::kHeadsAndRing, 4);
  const auto shape = [&](Group group) { return group_shape(setting, 8, group); };
  EXPECT_EQ(shape(Group::kContextHeads).ranks, 2);
  EXPECT_EQ(shape(Group::kContextHeads).ranks_per_node, 2);
  EXPECT_EQ(shape(Group::kContext).ranks, 2);
  EXPECT_EQ(shape(Group::kContext).ranks_per_node, 1) << "two nodes, a group of heads in each";
  setting.context = divided(ContextExchange::kRing, 4);
  EXPECT_EQ(shape(Group::kContext).ranks, 4);
  EXPECT_EQ(shape(Group::kContext).ranks_per_node, 2);
  EXPECT_EQ(shape(Group::kContextHeads).ranks, 1);
}

// 1 TFLOP/s and links of 1 GB/s; memory takes no time.
Hardware simple() {
  Hardware hardware;
  Gpu& gpu = hardware.gpu;
  gpu.peak = {FlopsPerSecond(1e12), FlopsPerSecond(2e12)};
  gpu.memory_bandwidth = BytesPerSecond(1e30);
  gpu.matmul.tail = 0;
  hardware.interconnect.gpus_per_node = 8;
  hardware.interconnect.exchange_share = 0.25;
  for (CollectiveCurve& curve : hardware.interconnect.curves) {
    curve.bandwidth = BytesPerSecond(1e9);
  }
  return hardware;
}

LayerCost cost_of(ContextExchange exchange) {
  CostSetting setting;
  setting.context = divided(exchange, 1);
  setting.context.seq_length = 4096;
  return layer_cost(gpt(4, 512, 8, 1024), LayerKind::kDense, setting, simple());
}

constexpr double kBlock = 1024.0 * 8 * 64 * 2 * 2 / 1e9;  // seconds of keys and values of a rank

TEST(ContextExchange, ARingHidesWhatFitsBesideEachPartOfAttention) {
  const LayerCost cost = cost_of(ContextExchange::kRing);
  const double part = 4096.0 * 4096 / 2 / 4 * 2 * 8 * 128 / 1e12 / 4;
  const double backward = 2.5 * part;
  ASSERT_LT(part, kBlock);
  ASSERT_LT(kBlock, backward);
  ASSERT_LT(backward, 2 * kBlock);
  EXPECT_NEAR(cost.forward.context.value(), 3 * kBlock, 1e-12);
  EXPECT_NEAR(cost.forward.hidden.value(), 0.75 * 3 * part, 1e-12);
  EXPECT_NEAR(cost.backward_input.context.value(), 6 * kBlock, 1e-12);
  EXPECT_NEAR(cost.backward_input.hidden.value(), 0.75 * 2 * (kBlock + backward), 1e-12);
  EXPECT_EQ(cost.backward_weight.context, Seconds(0));
}

TEST(ContextExchange, GathersAndAllToAllsAreExposed) {
  const LayerCost gathered = cost_of(ContextExchange::kAllGather);
  EXPECT_NEAR(gathered.forward.context.value(), 3 * kBlock, 1e-12);
  EXPECT_NEAR(gathered.backward_input.context.value(), 6 * kBlock, 1e-12);
  const LayerCost heads = cost_of(ContextExchange::kHeads);
  EXPECT_NEAR(heads.forward.context.value(), 4 * 0.75 * kBlock / 2, 1e-12)
      << "four tensors of half a block, of which a rank keeps a quarter";
  EXPECT_NEAR(heads.backward_input.context.value(), 5 * 0.75 * kBlock / 2, 1e-12);
  for (const LayerCost& cost : {gathered, heads}) {
    EXPECT_EQ(cost.forward.hidden, Seconds(0));
    EXPECT_EQ(cost.backward_input.hidden, Seconds(0));
  }
}

// A narrow model, so that attention's backward is the larger of two moments: the MLP's kept tensors
// (twice a residual's bytes, three times its width of 1 a rank) are free by then.
TEST(ContextExchange, BackwardHoldsWhatItExchanges) {
  Transformer model = llama3_70b();
  model.hidden_size = 1024;
  model.ffn_hidden_size = 2;
  const double residual = 8192.0 * 1024 * 2 / 2;
  const auto held = [&](ContextExchange exchange) {
    return temporaries(model, LayerKind::kDense, divided(exchange)).value() -
           (residual - 2 * residual - 3 * 8192.0 * 2);
  };
  EXPECT_DOUBLE_EQ(held(ContextExchange::kAllGather), 2 * 4 * 2 * kKeys);
  EXPECT_DOUBLE_EQ(held(ContextExchange::kRing), 2 * 2 * 2 * kKeys);
  EXPECT_DOUBLE_EQ(held(ContextExchange::kHeads), 2 * kQueries);
  EXPECT_DOUBLE_EQ(held(ContextExchange::kHeadsAndRing), 2 * 2 * 2 * kKeys + 2 * kQueries);
}

// Layers with windows divide heads, the others pass keys and values on: each sends and holds what
// it would where all exchange alike.
TEST(ContextExchange, OfWindowsMayBeAnother) {
  Transformer model = llama3_70b();
  model.hidden_size = 1024;
  model.ffn_hidden_size = 2;
  model.attention_window = 4096;
  model.layer_pattern = "WG";
  LayerContext mixed = divided(ContextExchange::kRing, 1);
  mixed.window_exchange = ContextExchange::kHeads;
  EXPECT_EQ(fault_of(model, mixed), "");
  Hardware hardware;
  hardware.gpu.peak = {FlopsPerSecond(1e15)};
  hardware.gpu.memory_bandwidth = BytesPerSecond(1e12);
  hardware.interconnect.gpus_per_node = 2;
  hardware.interconnect.nics_per_node = 2;
  hardware.interconnect.nic_bandwidth = BytesPerSecond(50e9);
  for (CollectiveCurve& curve : hardware.interconnect.curves) {
    curve.bandwidth = BytesPerSecond(400e9);
  }
  CostSetting of_mixed;
  of_mixed.context = mixed;
  for (const auto& [kind, exchange] : {std::pair{LayerKind::kWindowDense, ContextExchange::kHeads},
                                       {LayerKind::kDense, ContextExchange::kRing}}) {
    CostSetting alike;
    alike.context = divided(exchange, 1);
    for (const PassKind pass : {PassKind::kF, PassKind::kB}) {
      const auto sends = [&, of = kind](const LayerContext& context) {
        double bytes = 0;
        for (const Collective& each : layer_work(model, of, pass, context).collectives) {
          bytes += each.steps * each.bytes.value();
        }
        return bytes;
      };
      EXPECT_GT(sends(mixed), 0);
      EXPECT_EQ(sends(mixed), sends(alike.context));
    }
    EXPECT_EQ(temporaries(model, kind, mixed), temporaries(model, kind, alike.context));
    const LayerCost cost = layer_cost(model, kind, of_mixed, hardware);
    const LayerCost same = layer_cost(model, kind, alike, hardware);
    EXPECT_EQ(cost.forward.context, same.forward.context);
    EXPECT_EQ(cost.backward_input.context, same.backward_input.context);
    EXPECT_EQ(cost.forward.hidden, same.forward.hidden);
  }
  EXPECT_EQ(exchanges_of_layers(model, mixed)[0], ContextExchange::kHeads);
  EXPECT_EQ(exchanges_of_layers(model, mixed)[1], ContextExchange::kRing);
  std::swap(mixed.exchange, *mixed.window_exchange);
  EXPECT_EQ(fault_of(model, mixed),
            "cp_comm_type p2p knows no windows and no sparse attention: use all_gather or a2a");
}

TEST(ContextExchange, RefusesWhatTransformerEngineDoes) {
  const auto fault = [](const Transformer& model, ContextExchange exchange, int tensor) {
    return fault_of(model, divided(exchange, tensor));
  };
  for (const ContextExchange exchange : kAll) EXPECT_EQ(fault(llama3_70b(), exchange, 2), "");
  EXPECT_EQ(fault(llama3_70b(), ContextExchange::kHeads, 4),
            "num_query_groups 8 does not divide by tensor x context ranks that divide heads "
            "(cp_comm_type) 16");
  EXPECT_EQ(fault(llama3_70b(), ContextExchange::kHeadsAndRing, 4), "") << "2 x 4 divide 8";
  EXPECT_EQ(fault(llama3_70b(), ContextExchange::kRing, 8), "");
  Transformer windows = llama3_70b();
  windows.attention_window = 4096;
  windows.layer_pattern = "WG";
  EXPECT_EQ(fault(windows, ContextExchange::kRing, 2),
            "cp_comm_type p2p knows no windows and no sparse attention: use all_gather or a2a");
  EXPECT_EQ(fault(windows, ContextExchange::kHeads, 2), "");
  LayerContext unfused = divided(ContextExchange::kHeads);
  unfused.flash_attention = false;
  EXPECT_NE(fault_of(llama3_70b(), unfused).find("needs flash_attention"), std::string::npos);
  LayerContext other = divided(ContextExchange::kHeadsAndRing);
  other.hierarchy = {2, 4};
  EXPECT_EQ(fault_of(llama3_70b(), other),
            "hierarchical_context_parallel_sizes 2 x 4 do not make context_parallel_size 4");
  other.context = 1;
  EXPECT_EQ(fault_of(llama3_70b(), other), "") << "nothing is exchanged";
}

}  // namespace
}  // namespace pipesim::context_exchange_test
