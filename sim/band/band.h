// How far off a simulated time may be, learned from measured runs that are near.
//
// Of a run e = ln(published / simulated). Runs count as near at a level: the same GPU, precision,
// kind, framework and year (its group); the same GPU, precision and kind; the same precision and
// kind; the same GPU and kind.
//
//   centre   of a level's rows the median, drawn to that of the next coarser level, and in the end
//            to 0, with the weight of one row:  c = (S median + c_coarser) / (S + 1).
//            Runs of a group are much alike: each of its n counts n^-0.4, and S is their sum.
//   width    from how far every row was from the centre that the others gave it, itself left out
//            where the query has rows of its own group, else its whole group left out; divided by
//            sqrt(1 + 1/S) there and multiplied by it here: wider where there are few. The 10% and
//            90% quantiles, rows weighted by n^-0.4 and by nearness to the
//            query: 1 for its own group, 1/4 for another of its GPU, precision and kind, 1/16 where
//            GPU or precision is another, 1/64 else.
//
// One row and 1/4 are assumed, n^-0.4 is chosen for its coverage; coverage_of says what comes
// of them. Of the kind of a conformal prediction by leaving out (Barber et al. 2021, the
// jackknife+), with weights (Barber et al. 2023); without its guarantee, since groups are few.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/band/residuals.h"

namespace pipesim {

inline constexpr double kBandLevel = 0.8;

// Factors on simulated seconds between which, as measured runs say, a measured time lies with
// probability kBandLevel. They need not stand around 1: where all runs near took longer, both are
// more.
struct Band {
  double low = 1;
  double high = 1;
  // By how much two runs of one group differ in their factors, at the same level, as a share: what
  // is off alike in both is not in it.
  double difference = 0;
  std::size_t rows = 0;    // of the level, that it rests on
  std::string group = {};  // what they have in common with the query: "h100-sxm fp8 dense"

  [[nodiscard]] double half_width() const { return (high - low) / 2; }
};

struct BandQuery {
  std::string gpu;
  std::string precision;
  std::string kind;
  std::string framework = {};  // empty: not known
  int year = 0;                // 0: not known
};

// "h100-sxm fp8 dense, NeMo 2025"
std::string group_of(const Residual& row);
BandQuery query_of(const Residual& row);

class BandModel {
 public:
  explicit BandModel(std::vector<Residual> rows);

  // Empty where no run is near. O(n^2) for n rows.
  [[nodiscard]] std::optional<Band> band(const BandQuery& query) const;
  [[nodiscard]] const std::vector<Residual>& rows() const { return rows_; }

 private:
  static constexpr std::size_t kLevels = 5;        // the last, of a kind, only draws centres
  using Names = std::array<std::string, kLevels>;  // what rows of a level have in common
  using Keys = std::array<int, kLevels>;           // the same as numbers; -1: no row has it
  struct Estimate {
    double centre = 0;
    double support = 0;
    std::size_t level = kLevels;
    std::size_t rows = 0;
  };
  struct LeftOut {
    std::size_t row = 0;
    bool group = false;  // its whole group
  };
  struct Weighted {
    double value;
    double weight;
    auto operator<=>(const Weighted&) const = default;
  };

  static Names names_of(const BandQuery& query);
  [[nodiscard]] Keys keys_of(const Names& names) const;
  static double quantile(std::vector<Weighted> values, double q);
  [[nodiscard]] Estimate estimate(const Keys& keys, const std::optional<LeftOut>& left_out) const;
  [[nodiscard]] std::vector<Weighted> deviations(const Keys& keys, bool of_group) const;
  [[nodiscard]] double nearness(const Keys& query, const Keys& row) const;
  [[nodiscard]] double difference(const Keys& keys) const;

  std::vector<Residual> rows_;
  std::map<std::string, int, std::less<>> numbers_;  // of all names
  std::vector<Keys> keys_;
  std::vector<double> weights_;  // n^-0.4
};

// Of every row the band that the rows of other groups give it; empty where none is near.
// O(groups n^2).
std::vector<std::optional<Band>> bands_without_their_groups(const std::vector<Residual>& rows);

// How many rows of a group lie in bands that are made without them.
struct BandCoverage {
  std::string group;
  std::size_t rows = 0;
  std::size_t near = 0;   // of these: with a band
  std::size_t held = 0;   // of those: in it
  double half_width = 0;  // of their bands, the median
};

// By group, in order of first appearance, at last "all": with each group left out as a whole, or
// with each row left out alone, as for a run whose group is known. O(groups n^2), O(n^3).
std::vector<BandCoverage> coverage_of(const std::vector<Residual>& rows);
std::vector<BandCoverage> coverage_within_groups(const std::vector<Residual>& rows);

}  // namespace pipesim
