#include "sim/band/residuals.h"

#include <algorithm>
#include <array>
#include <boost/tokenizer.hpp>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <sstream>

#include "sim/core/input_text.h"

namespace pipesim {
namespace {

enum Column : size_t { kId, kGpu, kPrecision, kKind, kFramework, kYear, kPublished, kSimulated };
constexpr std::array<const char*, 8> kColumns{
    "id",        "gpu",  "precision",         "kind",
    "framework", "year", "published_seconds", "simulated_seconds"};
using Places = std::array<size_t, kColumns.size()>;

std::vector<std::string> fields_of(const std::string& line, const Location& where) {
  try {
    const boost::tokenizer<boost::escaped_list_separator<char>> fields(line);
    return {fields.begin(), fields.end()};
  } catch (const boost::escaped_list_error& error) {
    throw InputError(where, fmt::format("is no line of a CSV file: {}", error.what()));
  }
}

Places places_of(const std::vector<std::string>& header, const Location& where) {
  Places places{};
  for (size_t i = 0; i < kColumns.size(); ++i) {
    const auto found = std::ranges::find(header, kColumns[i]);
    if (found == header.end()) {
      throw InputError(where, fmt::format("has no column '{}'", kColumns[i]));
    }
    places[i] = static_cast<size_t>(found - header.begin());
  }
  return places;
}

double positive(const std::string& text, const Location& where) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || !(value > 0) || !std::isfinite(value)) {
    throw InputError(where, fmt::format("expected a number greater than 0, not '{}'", text));
  }
  return value;
}

int year(const std::string& text, const Location& where) {
  constexpr double kFirst = 1900;
  constexpr double kLast = 2200;
  const double value = positive(text, where);
  if (value < kFirst || value > kLast) {
    throw InputError(where, fmt::format("expected a year, not '{}'", text));
  }
  return static_cast<int>(value);
}

Residual residual_of(const std::vector<std::string>& fields, const Places& places,
                     const Location& where) {
  if (fields.size() <= std::ranges::max(places)) throw InputError(where, "has too few fields");
  const auto text = [&](Column column) { return fields[places[column]]; };
  return {text(kId),
          text(kGpu),
          text(kPrecision),
          text(kKind),
          text(kFramework),
          year(text(kYear), where),
          std::log(positive(text(kPublished), where) / positive(text(kSimulated), where))};
}

}  // namespace

std::vector<Residual> parse_residuals(const std::string& text, const std::string& name) {
  std::istringstream in(text);
  std::vector<Residual> residuals;
  std::optional<Places> places;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line.front() == '#') continue;
    const Location where{name, number, 1, line};
    const auto fields = fields_of(line, where);
    if (places) {
      residuals.push_back(residual_of(fields, *places, where));
    } else {
      places = places_of(fields, where);
    }
  }
  return residuals;
}

std::vector<Residual> read_residuals(const std::string& path, const Location& asked) {
  return parse_residuals(read_input(path, asked), path);
}

}  // namespace pipesim
