// Splits over several stages a device, and of two kinds of layers, against all splits.
#include "models/balance.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "sim/core/error.h"
#include "tests/models/shapes.h"

namespace pipesim::balance_test {
namespace {

using testing::deepseek_v3;
using testing::gpt;

// A layer of either kind weighs what its chunk says, and an MTP module 2.
class Weights : public DeviceRoom {
 public:
  Weights(const Transformer& model, std::vector<double> of_chunk, double capacity)
      : model_(model), of_chunk_(std::move(of_chunk)), capacity_(capacity) {}

  bool fits(int /*device*/, std::span<const StageLayers> chunks) override {
    return weight(chunks) <= capacity_;
  }
  int most_more(int /*device*/, std::span<const StageLayers> chunks,
                std::span<const int> open) override {
    double least = 1e9;
    for (const int chunk : open) least = std::min(least, of_chunk_[chunk]);
    return std::max(0, static_cast<int>((capacity_ - weight(chunks)) / least));
  }

 private:
  double weight(std::span<const StageLayers> chunks) const {
    double sum = 0;
    for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      const int moe = count_layers(model_, chunks[chunk])[LayerKind::kMoe];
      sum += of_chunk_[chunk] * (chunks[chunk].layers + moe) + 2 * chunks[chunk].mtp;
    }
    return sum;
  }

  const Transformer& model_;
  std::vector<double> of_chunk_;
  double capacity_;
};

double slowest(const Transformer& model, const Layout& layout, const LayerSeconds& seconds) {
  double most = 0;
  for (const StageLayers& stage : layout.stages) {
    most = std::max(most, stage_seconds(model, stage, seconds).value());
  }
  return most;
}

bool fits(const Layout& layout, const Placement& place, DeviceRoom& room) {
  for (int device = 0; device < place.devices(); ++device) {
    std::vector<StageLayers> chunks;
    for (int chunk = 0; chunk < place.chunks(); ++chunk) {
      const int stage = place.model_stage(place.virtual_stage(device, chunk));
      chunks.push_back(layout.stages[stage]);
    }
    if (!room.fits(device, chunks)) return false;
  }
  return true;
}

// The least maximum of all splits that fit; 1e9 where none does.
double least_by_trying(const Transformer& model, const Placement& place,
                       const LayerSeconds& seconds, DeviceRoom& room) {
  double least = 1e9;
  const auto last = static_cast<size_t>(place.model_stages()) - 1;
  std::vector<int> list(last + 1, 0);
  const auto visit = [&](auto&& self, size_t stage, int left) -> void {
    if (stage < last) {
      for (list[stage] = 0; list[stage] <= left; ++list[stage]) {
        self(self, stage + 1, left - list[stage]);
      }
      return;
    }
    list[last] = left;
    Layout layout = listed_layout(model, list);
    for (const bool before : {false, true}) {
      if (before && (model.mtp_layers == 0 || left > 0)) break;
      if (before) std::swap(layout.stages[last].mtp, layout.stages[last - 1].mtp);
      if (fits(layout, place, room)) least = std::min(least, slowest(model, layout, seconds));
    }
  };
  visit(visit, 0, model.num_layers);
  return least;
}

void expect_least(const Transformer& model, const Placement& place, const LayerSeconds& seconds) {
  int possible = 0;
  for (const double capacity : {8.0, 11.0, 14.0, 17.0, 22.0, 30.0, 100.0}) {
    for (const auto& weights : {std::vector<double>{3, 2}, {1, 2.5}}) {
      Weights room(model, weights, capacity);
      const double least = least_by_trying(model, place, seconds, room);
      if (least == 1e9) {
        EXPECT_THROW((void)balance(model, place, seconds, &room), InfeasibleError) << capacity;
        continue;
      }
      ++possible;
      const Layout layout = balance(model, place, seconds, &room);
      EXPECT_TRUE(fits(layout, place, room)) << to_megatron_layout(layout);
      EXPECT_NEAR(slowest(model, layout, seconds), least, 1e-9)
          << capacity << ": " << to_megatron_layout(layout);
      EXPECT_EQ(parse_megatron_layout(model, to_megatron_layout(layout)), layout);
    }
  }
  EXPECT_GE(possible, 5);
}

constexpr LayerSeconds kSeconds{.embedding = Seconds(0.1),
                                .dense = Seconds(0.8),
                                .moe = Seconds(1),
                                .mtp = Seconds(2.1),
                                .output = Seconds(1.3)};

TEST(Balance, MissesNoFasterSplitWithSeveralChunks) {
  expect_least(gpt(9, 64, 4), Placement::looped(2, 2), kSeconds);
  expect_least(gpt(9, 64, 4), Placement::vee(2), kSeconds);
  expect_least(gpt(7, 64, 4), Placement::looped(3, 2), kSeconds);
  expect_least(gpt(7, 64, 4), Placement::bidirectional(4), kSeconds);
}

TEST(Balance, MissesNoFasterSplitWithDenseLayersBeforeExperts) {
  Transformer model = deepseek_v3();
  model.num_layers = 8;
  for (const int modules : {0, 1}) {
    model.mtp_layers = modules;
    expect_least(model, Placement::looped(2, 2), kSeconds);
    expect_least(model, Placement::vee(2), kSeconds);
  }
}

TEST(Balance, EvensDevicesOutWhereTheSlowestStageLeavesAChoice) {
  // Ten layers and an output of 1.3 over 2 x 2 stages: three layers somewhere, least where the
  // output is not.
  const Layout layout = balance(gpt(10, 64, 4), Placement::looped(2, 2), kSeconds);
  const auto layers = [&](size_t stage) { return layout.stages[stage].layers; };
  EXPECT_EQ(layers(0) + layers(2), 6);
  EXPECT_EQ(layers(1) + layers(3), 4);
}

}  // namespace
}  // namespace pipesim::balance_test
