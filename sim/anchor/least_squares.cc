#include "sim/anchor/least_squares.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace pipesim {
namespace {

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

}  // namespace

LeastSquares::LeastSquares(std::vector<std::vector<double>> columns)
    : orthogonal_(std::move(columns)),
      upper_(orthogonal_.size(), std::vector<double>(orthogonal_.size())) {
  constexpr double kDependent = 1e-9;
  for (size_t j = 0; j < orthogonal_.size(); ++j) {
    auto& column = orthogonal_[j];
    const double whole = std::sqrt(dot(column, column));
    for (size_t i = 0; i < j; ++i) {
      upper_[i][j] = dot(orthogonal_[i], column);
      for (size_t n = 0; n < column.size(); ++n) column[n] -= upper_[i][j] * orthogonal_[i][n];
    }
    const double left = std::sqrt(dot(column, column));
    upper_[j][j] = left > kDependent * whole ? left : 0;
    for (double& value : column) value = upper_[j][j] > 0 ? value / left : 0;
  }
}

std::vector<double> LeastSquares::back_substituted(std::span<const double> right) const {
  std::vector<double> x(upper_.size());
  for (size_t j = upper_.size(); j-- > 0;) {
    double sum = right[j];
    for (size_t i = j + 1; i < upper_.size(); ++i) sum -= upper_[j][i] * x[i];
    x[j] = upper_[j][j] > 0 ? sum / upper_[j][j] : 0;
  }
  return x;
}

std::vector<double> LeastSquares::solve(std::span<const double> target) const {
  std::vector<double> right;
  right.reserve(orthogonal_.size());
  for (const auto& column : orthogonal_) right.push_back(dot(column, target));
  return back_substituted(right);
}

std::vector<double> LeastSquares::standard_errors(double noise) const {
  std::vector<double> errors(upper_.size());
  for (size_t i = 0; i < upper_.size(); ++i) {
    std::vector<double> unit(upper_.size());
    unit[i] = noise;
    const auto moved = back_substituted(unit);
    for (size_t j = 0; j < errors.size(); ++j) errors[j] = std::hypot(errors[j], moved[j]);
  }
  for (size_t j = 0; j < errors.size(); ++j) {
    if (upper_[j][j] == 0) errors[j] = std::numeric_limits<double>::infinity();
  }
  return errors;
}

}  // namespace pipesim
