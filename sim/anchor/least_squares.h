// Linear least squares in a few unknowns, by orthogonal columns (modified Gram-Schmidt). Columns
// have one length; one that is 0, or a combination of those before it, gets no part.
#pragma once

#include <span>
#include <vector>

namespace pipesim {

class LeastSquares {
 public:
  // O(n k^2).
  explicit LeastSquares(std::vector<std::vector<double>> columns);

  // x with the least |sum x_j columns_j - target|^2.
  [[nodiscard]] std::vector<double> solve(std::span<const double> target) const;
  // Standard error of each unknown when every row of the target has independent noise of this size;
  // infinite where the rows do not determine it.
  [[nodiscard]] std::vector<double> standard_errors(double noise) const;

 private:
  [[nodiscard]] std::vector<double> back_substituted(std::span<const double> right) const;

  std::vector<std::vector<double>> orthogonal_;  // of length 1, or 0
  std::vector<std::vector<double>> upper_;       // columns = orthogonal x upper
};

}  // namespace pipesim
