// The references that kernels are held against on a card, against their definitions.
#include "tests/calibration/reference.h"

#include <cmath>
#include <gtest/gtest.h>

namespace pipesim::calibration::reference::reference_test {
namespace {

constexpr std::size_t kKvHeads = 2;

HeadTensor queries(HeadLayout layout) { return {layout, 2, 4, 5, 3}; }
HeadTensor keys(HeadLayout layout) { return {layout, 2, kKvHeads, 5, 3}; }

// Numbers of an order of their own, which no layout has.
Values numbers(const HeadTensor& tensor, unsigned seed) {
  Values all(tensor.size());
  const Values drawn = values(random_bf16(tensor.size(), seed));
  std::size_t next = 0;
  for (std::size_t h = 0; h < tensor.heads; ++h) {
    for (std::size_t s = 0; s < tensor.sequence; ++s) {
      for (std::size_t d = 0; d < tensor.depth; ++d) {
        for (std::size_t b = 0; b < tensor.batch; ++b)
          all.at(tensor.at(b, s, h, d)) = drawn[next++];
      }
    }
  }
  return all;
}

// One element of the output, written out.
double output(HeadLayout layout, const Values& q, const Values& k, const Values& v, std::size_t b,
              std::size_t s, std::size_t h, std::size_t d) {
  const HeadTensor of_q = queries(layout), of_k = keys(layout);
  const std::size_t served = h / 2;  // two heads of queries to one of keys
  double weights = 0, sum = 0;
  for (std::size_t seen = 0; seen <= s; ++seen) {
    double score = 0;
    for (std::size_t i = 0; i < of_q.depth; ++i) {
      score += q[of_q.at(b, s, h, i)] * k[of_k.at(b, seen, served, i)];
    }
    const double weight = std::exp(score / std::sqrt(static_cast<double>(of_q.depth)));
    weights += weight;
    sum += weight * v[of_k.at(b, seen, served, d)];
  }
  return sum / weights;
}

class Attention : public ::testing::TestWithParam<HeadLayout> {
 protected:
  HeadTensor q_shape_ = queries(GetParam()), k_shape_ = keys(GetParam());
  Values q_ = numbers(q_shape_, 1), k_ = numbers(k_shape_, 2), v_ = numbers(k_shape_, 3),
         d_o_ = numbers(q_shape_, 4);

  [[nodiscard]] AttentionResult all() const {
    return attention(q_shape_, kKvHeads, q_, k_, v_, d_o_);
  }
  // d_o times the output, which has d_o's gradients.
  [[nodiscard]] double scalar() const {
    const Values o = all().o;
    double sum = 0;
    for (std::size_t i = 0; i < o.size(); ++i) sum += d_o_[i] * o[i];
    return sum;
  }
  void expect_slopes(Values& by, const Values& gradient) {
    constexpr double kStep = 1e-5;
    ASSERT_EQ(by.size(), gradient.size());
    for (std::size_t i = 0; i < by.size(); i += 7) {
      const double at = by[i];
      by[i] = at + kStep;
      const double above = scalar();
      by[i] = at - kStep;
      const double below = scalar();
      by[i] = at;
      EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-7) << i;
    }
  }
};

TEST_P(Attention, OfSeveralHeadsIsItsDefinition) {
  const Values o = all().o;
  for (std::size_t b = 0; b < q_shape_.batch; ++b) {
    for (std::size_t s = 0; s < q_shape_.sequence; ++s) {
      for (std::size_t h = 0; h < q_shape_.heads; ++h) {
        for (std::size_t d = 0; d < q_shape_.depth; ++d) {
          EXPECT_NEAR(o.at(q_shape_.at(b, s, h, d)), output(GetParam(), q_, k_, v_, b, s, h, d),
                      1e-12);
        }
      }
    }
  }
}

TEST_P(Attention, HasTheGradientsOfItsOutput) {
  const AttentionResult result = all();
  expect_slopes(q_, result.d_q);
  expect_slopes(k_, result.d_k);
  expect_slopes(v_, result.d_v);
}

TEST_P(Attention, NamesEveryElementOnce) {
  std::vector<int> seen(q_shape_.size());
  for (std::size_t b = 0; b < q_shape_.batch; ++b) {
    for (std::size_t s = 0; s < q_shape_.sequence; ++s) {
      for (std::size_t h = 0; h < q_shape_.heads; ++h) {
        for (std::size_t d = 0; d < q_shape_.depth; ++d) ++seen.at(q_shape_.at(b, s, h, d));
      }
    }
  }
  EXPECT_EQ(seen, std::vector<int>(q_shape_.size(), 1));
}

INSTANTIATE_TEST_SUITE_P(Layouts, Attention,
                         ::testing::Values(HeadLayout::kPacked, HeadLayout::kByHeads),
                         [](const auto& each) {
                           return each.param == HeadLayout::kPacked ? "Packed" : "ByHeads";
                         });

TEST(HeadLayouts, LieAsTheirNamesSay) {
  const HeadTensor packed = queries(HeadLayout::kPacked);
  const HeadTensor by_heads = queries(HeadLayout::kByHeads);
  // A step along heads is a head's depth in one, and a head's whole matrix in the other.
  EXPECT_EQ(packed.at(0, 0, 1, 0) - packed.at(0, 0, 0, 0), 3U);
  EXPECT_EQ(packed.at(0, 1, 0, 0) - packed.at(0, 0, 0, 0), 12U);
  EXPECT_EQ(by_heads.at(0, 0, 1, 0) - by_heads.at(0, 0, 0, 0), 15U);
  EXPECT_EQ(by_heads.at(0, 1, 0, 0) - by_heads.at(0, 0, 0, 0), 3U);
}

}  // namespace
}  // namespace pipesim::calibration::reference::reference_test
