// Bands: what they are learned from, where there is none, and that they hold what they say.
#include "sim/band/band.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "tests/folder.h"

namespace pipesim::band_test {
namespace {

Residual row(const std::string& gpu, const std::string& kind, int year, double factor) {
  return {"run", gpu, "bf16", kind, "nemo", year, std::log(factor), "80x8192", 64};
}

// Groups whose own error has a spread of 10%, rows that differ by 3% within one.
std::vector<Residual> drawn(int groups, int rows, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> of_group(0.05, 0.1);
  std::normal_distribution<double> of_row(0, 0.03);
  std::vector<Residual> all;
  for (int group = 0; group < groups; ++group) {
    const double off = of_group(random);
    for (int i = 0; i < rows; ++i) {
      all.push_back(row("gpu", "dense", 2000 + group, std::exp(off + of_row(random))));
    }
  }
  return all;
}

TEST(Band, HoldsFourFifthsOfRowsWhoseGroupIsLeftOut) {
  std::size_t rows = 0;
  std::size_t held = 0;
  for (unsigned seed = 0; seed < 8; ++seed) {
    const auto all = coverage_of(drawn(16, 5, seed)).back();
    rows += all.rows;
    held += all.held;
    EXPECT_EQ(all.group, "all");
    EXPECT_EQ(all.near, all.rows);
  }
  const double share = static_cast<double>(held) / static_cast<double>(rows);
  EXPECT_GT(share, 0.75);
  EXPECT_LT(share, 0.88);
}

TEST(Band, OfAKnownGroupIsNarrowerAndHoldsAsMuch) {
  const auto rows = drawn(12, 6, 1);
  const auto within = coverage_within_groups(rows).back();
  EXPECT_LT(within.half_width, 0.6 * coverage_of(rows).back().half_width);
  EXPECT_GT(static_cast<double>(within.held), 0.7 * static_cast<double>(within.rows));
}

TEST(Band, StandsWhereTheRunsNearItStand) {
  std::vector<Residual> rows;
  for (int i = 0; i < 40; ++i) rows.push_back(row("gpu", "dense", 2023, 1.2 + 0.001 * (i % 5)));
  const auto band = BandModel(rows).band(query_of(rows.front()));
  ASSERT_TRUE(band);
  EXPECT_GT(band->low, 1.1);
  EXPECT_LE(band->low, 1.204);
  EXPECT_LT(band->high, 1.25);
  EXPECT_EQ(band->rows, 40U);
  EXPECT_EQ(band->group, "gpu bf16 dense, nemo 2023, 80x8192");
  EXPECT_LT(band->difference, 0.01);
}

TEST(Band, IsWiderWhereThereAreFew) {
  std::vector<Residual> rows = drawn(10, 6, 3);
  const Residual lonely = row("other", "dense", 2023, 1.05);
  rows.push_back(lonely);
  const BandModel model(rows);
  const auto few = model.band({.gpu = "other", .precision = "bf16", .kind = "dense"});
  const auto many = model.band({.gpu = "gpu", .precision = "bf16", .kind = "dense"});
  ASSERT_TRUE(few && many);
  EXPECT_EQ(few->rows, 1U);
  EXPECT_GT(std::log(few->high / few->low), 1.1 * std::log(many->high / many->low));
}

TEST(Band, FallsBackToCoarserLevelsAndEndsWhereNothingIsNear) {
  std::vector<Residual> rows = drawn(6, 4, 2);
  const BandModel model(rows);
  EXPECT_EQ(model.band({.gpu = "gpu", .precision = "bf16", .kind = "dense"})->group,
            "gpu bf16 dense");
  EXPECT_EQ(model.band({.gpu = "else", .precision = "bf16", .kind = "dense"})->group, "bf16 dense");
  EXPECT_EQ(model.band({.gpu = "gpu", .precision = "fp8", .kind = "dense"})->group, "gpu dense");
  EXPECT_FALSE(model.band({.gpu = "gpu", .precision = "bf16", .kind = "moe"}));
  EXPECT_EQ(model.band({.gpu = "else", .precision = "fp8", .kind = "dense"})->group, "dense");
  EXPECT_FALSE(BandModel({}).band({.gpu = "gpu", .precision = "bf16", .kind = "dense"}));
}

// Runs of a framework that are 2% apart around a factor.
void add(std::vector<Residual>& rows, int number, const std::string& framework, double factor,
         const std::string& gpu) {
  for (int i = 0; i < number; ++i) {
    rows.push_back(row(gpu, "dense", 2020, factor * (1 + 0.02 * (i % 3 - 1))));
    rows.back().framework = framework;
  }
}

TEST(Band, OfAGroupOfOneRowBorrowsFromItsNeighbours) {
  std::vector<Residual> rows;
  for (const auto& [gpu, factor] :
       {std::pair("a", 0.85), std::pair("b", 1.0), std::pair("c", 1.1), std::pair("d", 1.25)}) {
    add(rows, 8, "core", factor, gpu);
    add(rows, 8, "other", 1.05 * factor, gpu);
  }
  add(rows, 1, "core", 1.4, "new");
  const BandQuery query{.gpu = "new",
                        .precision = "bf16",
                        .kind = "dense",
                        .framework = "core",
                        .year = 2020,
                        .model = "80x8192"};
  const auto one = *BandModel(rows).band(query);
  EXPECT_EQ(one.rows, 1U);
  const auto middle = [](const Band& band) { return std::sqrt(band.low * band.high); };
  EXPECT_GT(middle(one), 1.1);
  EXPECT_LT(middle(one), 1.3);  // its own band would stand around 1.4
  add(rows, 20, "core", 1.4, "new");
  const auto many = *BandModel(rows).band(query);
  EXPECT_GT(middle(many), 1.3);
  EXPECT_LT(many.high / many.low, one.high / one.low);
}

// Neighbours that are far off weigh less, the more rows the group has.
TEST(Band, OfAGroupTakesItsWidthFromItsOwnRowsByTheirCount) {
  const auto width = [](int own) {
    std::vector<Residual> rows;
    for (const char* gpu : {"a", "b", "c", "d"}) {
      add(rows, 6, "core", 0.7, gpu);
      add(rows, 6, "other", 1.4, gpu);
    }
    add(rows, own, "core", 1, "new");
    const auto band = *BandModel(rows).band({.gpu = "new",
                                             .precision = "bf16",
                                             .kind = "dense",
                                             .framework = "core",
                                             .year = 2020,
                                             .model = "80x8192"});
    return band.high / band.low;
  };
  EXPECT_GT(width(2), width(6));
  EXPECT_GT(std::log(width(2)), 2 * std::log(width(40)));
}

TEST(Band, OfAnotherModelOrMoreGpusThanAnyRunIsWider) {
  std::vector<Residual> rows;
  for (const char* gpu : {"a", "b", "c"}) {
    for (const auto& [model, factor] :
         {std::pair("80x8192", 1.0), std::pair("32x4096", 0.8), std::pair("60x6144", 1.25)}) {
      add(rows, 8, "core", factor, gpu);
      for (auto row = rows.end() - 8; row != rows.end(); ++row) row->model = model;
    }
  }
  const BandModel bands(rows);
  const auto width = [&bands](const BandQuery& query) {
    const auto band = *bands.band(query);
    return band.high / band.low;
  };
  BandQuery query = query_of(rows.front());
  const double known = width(query);
  query.model = "12x768";
  const double other = width(query);
  EXPECT_GT(std::log(other), 2 * std::log(known));
  query.gpus = rows.front().gpus + 1;
  EXPECT_EQ(bands.band(query)->group, "core dense");
  EXPECT_GT(std::log(width(query)), 1.5 * std::log(known));
}

TEST(Band, OfASlowerNetworkThanAnyRunsIsWider) {
  std::vector<Residual> rows;
  for (const auto& [gpu, factor] :
       {std::pair("a", 1.0), std::pair("b", 0.8), std::pair("c", 1.2)}) {
    add(rows, 8, "core", factor, gpu);
    for (auto row = rows.end() - 8; row != rows.end(); ++row) {
      row->network = std::string(gpu) == "b" ? 100 : 400;
    }
  }
  const BandModel bands(rows);
  BandQuery query = query_of(rows.front());
  const auto known = *bands.band(query);
  for (const double near : {0.0, 320.0, 400.0, 500.0}) {
    query.network = near;
    EXPECT_EQ(bands.band(query)->group, known.group) << near;
  }
  query.network = 100;  // of b's runs, which share the framework
  EXPECT_EQ(bands.band(query)->group, "core dense");
  for (const double far : {40.0, 4000.0}) {
    query.network = far;
    const auto band = *bands.band(query);
    EXPECT_EQ(band.group, "dense");
    EXPECT_GT(std::log(band.high / band.low), 2 * std::log(known.high / known.low)) << far;
  }
}

TEST(Band, DoesNotDependOnTheOrderOfRows) {
  std::vector<Residual> rows = drawn(6, 4, 5);
  const BandQuery query{.gpu = "gpu", .precision = "bf16", .kind = "dense"};
  const auto before = BandModel(rows).band(query);
  std::ranges::reverse(rows);
  const auto after = BandModel(rows).band(query);
  EXPECT_NEAR(before->low, after->low, 1e-12);
  EXPECT_NEAR(before->high, after->high, 1e-12);
}

constexpr const char* kHeader =
    "id,group,model,gpu,precision,kind,framework,year,gpus,network,published_seconds,"
    "simulated_seconds\n";

TEST(Residuals, AreReadByTheirColumns) {
  const auto rows = parse_residuals(
      std::string(kHeader) +
          "a,\"h100 bf16 dense, NeMo 2023\",80x8192,h100,bf16,dense,NeMo,2023,8,376,2,1\n",
      "r.csv");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(group_of(rows[0]), "h100 bf16 dense, NeMo 2023");
  EXPECT_NEAR(rows[0].log_ratio, std::log(2.0), 1e-15);
  EXPECT_EQ(rows[0].network, 376);
}

TEST(Residuals, ThatAreWrongAreRefusedWhereTheyStand) {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      (void)parse_residuals(text, "r.csv");
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal("id,group\n").find("r.csv:1:1: has no column 'model'"), std::string::npos);
  const std::string header = kHeader;
  EXPECT_NE(refusal(header + "a,b,c\n").find("r.csv:2:1: has too few fields"), std::string::npos);
  EXPECT_NE(
      refusal(header + "a,g,1x1,h,bf16,dense,n,2023,8,0,0,1\n").find("greater than 0, not '0'"),
      std::string::npos);
  EXPECT_NE(refusal(header + "a,g,1x1,h,bf16,dense,n,2023,8,0,nan,1\n").find("not 'nan'"),
            std::string::npos);
  EXPECT_NE(refusal(header + "a,g,1x1,h,bf16,dense,n,1e29,8,0,1,1\n").find("a year, not '1e29'"),
            std::string::npos);
  EXPECT_NE(
      refusal(header + "a\\b,g,1x1,h,bf16,dense,n,2023,8,0,1,1\n").find("r.csv:2:1: is no line"),
      std::string::npos);
}

}  // namespace
}  // namespace pipesim::band_test
