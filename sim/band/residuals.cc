#include "sim/band/residuals.h"

#include <array>
#include <cmath>
#include <fmt/format.h>

#include "sim/band/columns.h"
#include "sim/core/input_text.h"

namespace pipesim {
namespace {

enum Column : size_t {
  kId,
  kShape,
  kGpu,
  kPrecision,
  kKind,
  kFramework,
  kYear,
  kGpus,
  kNetwork,
  kPublished,
  kSimulated
};
constexpr std::array<const char*, 11> kColumns{"id",
                                               "model",
                                               "gpu",
                                               "precision",
                                               "kind",
                                               "framework",
                                               "year",
                                               "gpus",
                                               "network",
                                               "published_seconds",
                                               "simulated_seconds"};

int year(const std::string& text, const Location& where) {
  constexpr double kFirst = 1900;
  constexpr double kLast = 2200;
  const double value = positive_number(text, where);
  if (value < kFirst || value > kLast) {
    throw InputError(where, fmt::format("expected a year, not '{}'", text));
  }
  return static_cast<int>(value);
}

Residual residual_of(const ColumnsRow& row) {
  const auto number = [&row](Column column) {
    return positive_number(row.fields[column], row.where);
  };
  return {row.fields[kId],
          row.fields[kGpu],
          row.fields[kPrecision],
          row.fields[kKind],
          row.fields[kFramework],
          year(row.fields[kYear], row.where),
          std::log(number(kPublished) / number(kSimulated)),
          row.fields[kShape],
          static_cast<int>(number(kGpus)),
          row.fields[kNetwork] == "0" ? 0 : number(kNetwork)};
}

}  // namespace

std::string model_shape(int num_layers, int hidden_size) {
  return fmt::format("{}x{}", num_layers, hidden_size);
}

std::vector<Residual> parse_residuals(const std::string& text, const std::string& name) {
  std::vector<Residual> residuals;
  for (const ColumnsRow& row : read_columns(text, name, kColumns)) {
    residuals.push_back(residual_of(row));
  }
  return residuals;
}

std::vector<Residual> read_residuals(const std::string& path, const Location& asked) {
  return parse_residuals(read_input(path, asked), path);
}

}  // namespace pipesim
