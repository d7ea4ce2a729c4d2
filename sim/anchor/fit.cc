#include "sim/anchor/fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <string>

#include "sim/anchor/fitted_factor.h"
#include "sim/anchor/least_squares.h"
#include "sim/case/simulate.h"
#include "sim/prepare/prepare.h"

namespace pipesim {
namespace {

constexpr double kNoise = 0.01;  // of a measured step
constexpr double kLeastFactor = 0.05;
constexpr double kMostFactor = 20;

enum Unknown : std::size_t { kCompute, kFixed, kReduction };
constexpr std::array<const char*, 3> kNames{"compute", "fixed_seconds", "reduction"};
using Values = std::array<double, kNames.size()>;
constexpr Values kNothingAnchored{1, 0, 1};

CostFactors factors_of(const Values& values) {
  return {values[kCompute], values[kReduction], Seconds(values[kFixed])};
}

class Fit {
 public:
  explicit Fit(std::span<const MeasuredStep> runs) : runs_(runs) {}

  AnchorFit result() {
    for (const MeasuredStep& run : runs_) fit_.runs.push_back({step_with(run.scenario, {}), {}});
    choose();
    solve();
    if (values_[kFixed] < 0) {
      leave_out(kFixed, "the runs have less of a fixed part than is simulated");
      std::erase(active_, kFixed);
      values_ = kNothingAnchored;
      solve();
    }
    fit_.factors = factors_of(values_);
    for (size_t i = 0; i < runs_.size(); ++i) {
      fit_.runs[i].anchored = step_with(runs_[i].scenario, fit_.factors);
    }
    return std::move(fit_);
  }

 private:
  void leave_out(Unknown which, const std::string& why) {
    fit_.unidentified.push_back(fmt::format("{}: {}", kNames[which], why));
  }

  // Which unknowns the runs tell apart; why not, of the others.
  void choose() {
    const auto microbatches = [](const MeasuredStep& run) {
      return run.scenario.batch.microbatches;
    };
    const auto ranks = [](const MeasuredStep& run) { return run.scenario.parallel.data; };
    choose(kFixed, microbatches, "microbatches");
    choose(kReduction, ranks, "data-parallel ranks");
  }

  // An unknown needs runs that differ in what it depends on.
  template <class Of>
  void choose(Unknown which, const Of& of, const char* what) {
    const int first = of(runs_.front());
    const bool same =
        std::ranges::all_of(runs_, [&](const MeasuredStep& run) { return of(run) == first; });
    if (runs_.size() == 1) {
      leave_out(which, "one run does not tell it from compute");
    } else if (same) {
      leave_out(which, fmt::format("all runs have {} {}", first, what));
    } else {
      take_where_told_apart(which);
    }
  }

  void take_where_told_apart(Unknown which) {
    active_.push_back(which);
    const double noise = noise_of_active();
    if (noise <= kMostNoise) return;
    active_.pop_back();
    leave_out(which, noise < 10 ? fmt::format(
                                      "the runs are too much alike: 1% of noise in each moves what "
                                      "is found by {:.0f}%",
                                      100 * noise)
                                : "the runs do not tell it from the others");
  }

  // The largest standard error of the unknowns at hand, each as a share of what it stands beside.
  [[nodiscard]] double noise_of_active() const {
    if (active_.size() > runs_.size()) return std::numeric_limits<double>::infinity();
    constexpr double kOfReduction = 0.2;  // seldom more than a tenth of a step
    const double shortest = std::ranges::min(runs_, {}, &MeasuredStep::measured).measured.value();
    const Values scale{1, 1 / shortest, kOfReduction};
    const auto errors = LeastSquares(sensitivities(differences())).standard_errors(kNoise);
    double most = 0;
    for (size_t i = 0; i < active_.size(); ++i) {
      most = std::max(most, scale[active_[i]] * errors[i]);
    }
    return most;
  }

  // By run, as shares of what was measured: measured less simulated.
  [[nodiscard]] std::vector<double> differences() const { return differences(values_); }
  [[nodiscard]] std::vector<double> differences(Values values) const {
    const double fixed = values[kFixed];
    values[kFixed] = 0;
    std::vector<double> all;
    for (const MeasuredStep& run : runs_) {
      const Seconds step = step_with(run.scenario, factors_of(values)) + Seconds(fixed);
      all.push_back(1 - step / run.measured);
    }
    return all;
  }

  // By unknown at hand and run: how much less is left for one more of it.
  [[nodiscard]] std::vector<std::vector<double>> sensitivities(
      const std::vector<double>& now) const {
    constexpr double kStep = 0.01;
    std::vector<std::vector<double>> columns;
    for (const Unknown which : active_) {
      Values moved = values_;
      moved[which] += kStep;
      auto column = differences(moved);
      for (size_t i = 0; i < column.size(); ++i) column[i] = (now[i] - column[i]) / kStep;
      columns.push_back(std::move(column));
    }
    return columns;
  }

  void solve() {
    if (runs_.size() == 1) {
      const MeasuredStep& only = runs_.front();
      values_[kCompute] = fitted_factor(only.measured, [&only](double factor) {
        return step_with(only.scenario, CostFactors{.compute = factor});
      });
      return;
    }
    // Steps are convex and piecewise linear in the unknowns: a few of Gauss and Newton's are there.
    constexpr int kMostSteps = 8;
    constexpr double kEnough = 1e-7;
    for (int step = 0; step < kMostSteps; ++step) {
      const auto left = differences();
      const auto moves = LeastSquares(sensitivities(left)).solve(left);
      double most = 0;
      for (size_t i = 0; i < active_.size(); ++i) {
        double& value = values_[active_[i]];
        const double before = value;
        value += moves[i];
        if (active_[i] == kCompute) value = std::clamp(value, kLeastFactor, kMostFactor);
        if (active_[i] == kReduction) value = std::clamp(value, 0.0, kMostFactor);
        most = std::max(most, std::abs(value - before));
      }
      if (most < kEnough) return;
    }
  }

  std::span<const MeasuredStep> runs_;
  AnchorFit fit_;
  Values values_ = kNothingAnchored;
  std::vector<Unknown> active_{kCompute};
};

}  // namespace

Seconds step_with(const Scenario& scenario, const CostFactors& factors) {
  Scenario run = scenario;
  run.roofline->anchor.emplace().factors = factors;
  return simulate(prepare_first(std::move(run))).report.iteration;
}

AnchorFit fit_anchor(std::span<const MeasuredStep> runs) { return Fit(runs).result(); }

}  // namespace pipesim
