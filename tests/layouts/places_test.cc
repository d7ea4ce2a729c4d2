// The text about a plan's first places.
#include <gtest/gtest.h>

#include "sim/layouts/report.h"
#include "sim/read/band.h"

namespace pipesim::places_test {
namespace {

Planned layout(double seconds, double ramps, double kernels) {
  Planned planned;
  planned.iteration = Seconds(seconds);
  planned.shares[static_cast<size_t>(PlanShare::kRamps)] = ramps / seconds;
  planned.shares[static_cast<size_t>(PlanShare::kKernels)] = kernels / seconds;
  return planned;
}

ClusterPlan plan_of(std::vector<Planned> best) {
  ClusterPlan plan;
  plan.question.base.hardware.emplace().name = "cluster";
  plan.question.base.band =
      Band{.low = 0.9, .high = 1.2, .difference = 0.05, .rows = 9, .group = "gpu"};
  plan.result.best = std::move(best);
  return plan;
}

TEST(Places, SayWhyTheFirstIsFirstAndWhatIsNotToldApart) {
  const auto plan = plan_of({layout(1.00, 0.10, 0.90), layout(1.02, 0.15, 0.87),
                             layout(1.04, 0.14, 0.90), layout(1.08, 0.18, 0.90)});
  EXPECT_EQ(places_text(plan),
            "cluster: number 2 takes 2.0% longer than the first: ramps +5.0%, kernels -3.0%\n"
            "cluster: places 1 to 3 cannot be told apart: layouts are told apart from 5% on (two "
            "measured runs of one group differ by up to that in how far off they are)\n");
}

TEST(Places, AreToldApartByTheirSchedulesWhereTheLayoutIsTheSame) {
  auto plan =
      plan_of({layout(1, 0.1, 0.9), layout(1, 0.1, 0.9), layout(1, 0.1, 0.9), layout(1, 0.1, 0.9)});
  plan.question.base.roofline.emplace();
  const auto band = read_difference_band(plan.question.base);
  ASSERT_TRUE(band);
  const double least = band->least_told_apart();
  plan.question.base.band->difference = 2 * least;
  auto& best = plan.result.best;
  best[1].iteration = Seconds(1 + 0.9 * least);
  best[2].iteration = best[3].iteration = Seconds(1 + 1.1 * least);
  best[3].point.tensor = 2;  // another layout
  const std::string text = places_text(plan);
  EXPECT_NE(text.find("cluster: places 1 to 2, 4 cannot be told apart: schedules of one layout are "
                      "told apart from "),
            std::string::npos)
      << text;
}

TEST(Places, SayThatTheFirstIsToldApart) {
  const auto text = places_text(plan_of({layout(1, 0.1, 0.9), layout(1.2, 0.3, 0.9)}));
  EXPECT_NE(text.find("the first is told apart"), std::string::npos);
}

TEST(Places, NameWhatContentionAdds) {
  auto plan = plan_of({layout(1, 0.1, 0.9), layout(1, 0.1, 0.9)});
  plan.result.best[0].contended = Contended{Seconds(1.01), {}};
  plan.result.best[1].contended = Contended{Seconds(1.03), {}};
  EXPECT_NE(places_text(plan).find("longer than the first: contention +2.0%"), std::string::npos);
}

TEST(Places, SayNothingOfOneLayoutAndLittleWithoutABand) {
  EXPECT_EQ(places_text(plan_of({layout(1, 0.1, 0.9)})), "");
  auto plan = plan_of({layout(1, 0.1, 0.9), layout(1.02, 0.12, 0.9)});
  plan.question.base.band.reset();
  EXPECT_EQ(places_text(plan).find("told apart"), std::string::npos);
}

}  // namespace
}  // namespace pipesim::places_test
