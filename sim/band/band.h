// How far off a simulated time may be, learned from measured runs that are near.
//
// A run's error is e = ln(published / simulated). Two runs are near at the finest level at which
// they agree: model and group (GPU, precision, kind, framework, year); group; framework and kind;
// GPU, precision and kind; precision and kind; GPU and kind; kind. A run on more GPUs than any
// measured of its framework has no group. A level does not count where the query's network is
// slower or faster, by more than a fourth, than that of all its rows. The band then reaches from
// the least to the most of those with and without such levels.
//
//   centre   each level's rows, those at a finer level apart, have a median; it is drawn to the
//            centre of the next coarser level, and in the end to 0, with the weight of one row:
//              c = (S median + c_coarser) / (S + 1).
//            Runs of a group are much alike: each of its n counts n^-0.4, and S is their sum.
//   width    how far each row is from the centre that rows no nearer than the query's nearest give
//            it: for a known model the row itself is left out, for a known group its model, for a
//            known framework its group, for a new framework the framework, and so on. The 10% and
//            90% quantiles, rows weighted by n^-0.4 and by their nearness to the query: 1 for its
//            own group, 1/4 for its framework or its GPU and precision, 1/16 where only GPU or
//            precision agrees, 1/64 else. n rows near count for n / (n + 1) of the weight; the rest
//            comes from the next coarser level. Deviations are divided by sqrt(1 + 1/(S + 1)) of
//            their own centre and multiplied by the query's: wider where there are few.
//
// One row and 1/4 are assumed, n^-0.4 is chosen for its coverage, which coverage_of measures. A
// kind of conformal prediction by leaving out (Barber et al. 2021, the jackknife+), with weights
// (Barber et al. 2023). It lacks its guarantee, since groups are few.
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
  // By how much two runs of one group differ in their factors, at the same level, as a share.
  // Errors that are alike in both are not in it.
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
  std::string model = {};      // as Residual::model; empty: not known
  int gpus = 0;                // 0: not known
  double network = 0;          // as Residual::network; 0 also: not known
};

// "h100-sxm fp8 dense, NeMo 2025"
std::string group_of(const Residual& row);
BandQuery query_of(const Residual& row);

// The centres of all measured models, and the bands around a query's.
class BandModel {
 public:
  // O(models n) for n rows.
  explicit BandModel(std::vector<Residual> rows);

  // Empty where no run is of the query's kind. O(n log n).
  [[nodiscard]] std::optional<Band> band(const BandQuery& query) const;
  // The band without its `difference`.
  [[nodiscard]] std::optional<Band> interval(const BandQuery& query) const;

 private:
  static constexpr std::size_t kLevels = 7;
  using Names = std::array<std::string, kLevels>;  // what rows of a level have in common
  using Keys = std::array<int, kLevels>;           // the same as numbers; -1: no row has it
  struct Bucket {                                  // rows whose nearest level this is
    double median = 0;
    double support = 0;
    std::size_t rows = 0;
  };
  struct Range {
    double least;
    double most;
  };
  using Buckets = std::array<Bucket, kLevels>;
  struct Centre {
    double value = 0;
    double support = 0;
  };
  struct Weighted {
    double value;
    double weight;
    auto operator<=>(const Weighted&) const = default;
  };

  static Names names_of(const BandQuery& query);
  [[nodiscard]] Keys keys_of(const BandQuery& query) const;
  [[nodiscard]] std::optional<Band> interval_by(const Keys& keys, const BandQuery& query) const;
  static std::size_t nearest_level(const Keys& a, const Keys& b);
  static double nearness(std::size_t level);
  static double quantile(std::vector<Weighted> values, double q);
  static Centre centre(const Buckets& buckets, std::size_t from);
  [[nodiscard]] Buckets buckets(const Keys& keys) const;
  // The others of a row's model.
  [[nodiscard]] Bucket others(std::size_t row) const;
  [[nodiscard]] std::vector<Weighted> deviations(const Keys& keys, std::size_t level) const;
  [[nodiscard]] double difference(const Keys& keys) const;

  std::vector<Residual> rows_;                       // by log_ratio
  std::map<std::string, int, std::less<>> numbers_;  // of all names
  std::map<int, int> most_gpus_;                     // by key of the framework
  std::map<int, Range> networks_;                    // by key of any level
  std::vector<double> weights_;                      // n^-0.4
  std::vector<int> models_;                          // of rows_, in keys_
  std::vector<Keys> keys_;                           // by measured model
  std::vector<Buckets> buckets_;                     // by measured model
  std::vector<std::vector<std::size_t>> members_;    // rows, by measured model
};

// For each row, the band that the rows of other groups give it; empty where none is near.
// O(groups models n).
std::vector<std::optional<Band>> bands_without_their_groups(const std::vector<Residual>& rows);

// How many rows of a group lie in bands that are made without them.
struct BandCoverage {
  std::string group;
  std::size_t rows = 0;
  std::size_t near = 0;   // of these: with a band
  std::size_t held = 0;   // of those: in it
  double half_width = 0;  // of their bands, the median
};

// By group, in order of first appearance, at last "all". `coverage_of` leaves each group out as a
// whole, the other each row alone, as for a run whose group is known. O(groups models n) and
// O(models n^2), on all threads.
std::vector<BandCoverage> coverage_of(const std::vector<Residual>& rows);
std::vector<BandCoverage> coverage_within_groups(const std::vector<Residual>& rows);

}  // namespace pipesim
