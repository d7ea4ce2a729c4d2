#include "sim/sweep/axes.h"

#include <algorithm>
#include <boost/random/mersenne_twister.hpp>
#include <boost/random/uniform_int_distribution.hpp>
#include <fmt/format.h>
#include <set>

#include "sim/sweep/decimal.h"

namespace pipesim {
namespace {

constexpr size_t kMaxValues = 10'000'000;
// A draw takes one of at least so many values between its ends.
constexpr std::int64_t kDrawSteps = 1'000'000;

SweptValue swept(const YamlValue& value) {
  const Location where = value.where();
  return {value.one_line(), where.line, where.column};
}

SweptValue swept(const Decimal& number, const YamlValue& range) {
  const Location where = range.where();
  return {number.text(), where.line, where.column};
}

Decimal decimal_of(const YamlValue& value, const std::string& unit) {
  const auto number = parse_decimal(value.text());
  if (!number) value.fail("expected a decimal number, with its unit if it has one");
  if (number->unit != unit) {
    value.fail(fmt::format("its unit is '{}', that of 'from' is '{}'", number->unit, unit));
  }
  return *number;
}

[[noreturn]] void too_long(const YamlValue& value) {
  value.fail("numbers of more than 18 digits; list them, or use another unit");
}

struct Ends {
  Decimal from, to;
};

Ends read_ends(YamlMap& map) {
  const YamlValue from = map.require("from", "the first value");
  const auto first = parse_decimal(from.text());
  if (!first) from.fail("expected a decimal number, with its unit if it has one");
  return {*first, decimal_of(map.require("to", "the last value"), first->unit)};
}

bool exceeds(const Decimal& value, const Decimal& end, const YamlValue& range) {
  const int places = std::max(value.places, end.places);
  const auto a = value.digits_with(places);
  const auto b = end.digits_with(places);
  if (!a || !b) too_long(range);
  return *a > *b;
}

// {from, to, step} or {from, to, times}.
struct Range {
  Decimal from, to;
  Decimal by;
  bool multiplies = false;
};

Range read_range_ends(const YamlValue& range) {
  YamlMap map(range);
  const auto [from, to] = read_ends(map);
  const auto step = map.find("step");
  const auto times = map.find("times");
  map.finish();
  if (step.has_value() == times.has_value()) {
    range.fail("expected {from, to, step} or {from, to, times}");
  }
  if (exceeds(from, to, range)) range.fail("'from' is greater than 'to'");
  if (step) {
    const Decimal by = decimal_of(*step, from.unit);
    if (!exceeds(by, {0, 0, ""}, range)) range.fail("'step' must be greater than 0");
    return {from, to, by, false};
  }
  const Decimal by = decimal_of(*times, "");
  if (!exceeds(by, {1, 0, ""}, range) || from.digits <= 0) {
    range.fail("'from' must be greater than 0 and 'times' than 1");
  }
  return {from, to, by, true};
}

Decimal sum(const Decimal& a, const Decimal& b, const YamlValue& range) {
  Decimal result = a;
  result.places = std::max(a.places, b.places);
  const auto of_a = a.digits_with(result.places);
  const auto of_b = b.digits_with(result.places);
  if (!of_a || !of_b || __builtin_add_overflow(*of_a, *of_b, &result.digits)) too_long(range);
  return result;
}

// Both ends included.
std::vector<SweptValue> read_range(const YamlValue& value) {
  const Range range = read_range_ends(value);
  std::vector<SweptValue> values;
  for (Decimal next = range.from; !exceeds(next, range.to, value);) {
    if (values.size() == kMaxValues) value.fail(fmt::format("more than {} values", kMaxValues));
    values.push_back(swept(next, value));
    if (range.multiplies) {
      const auto made = product(next, range.by);
      if (!made) too_long(value);
      next = *made;
    } else {
      next = sum(next, range.by, value);
    }
  }
  return values;
}

std::vector<SweptValue> read_list(const YamlValue& value) {
  std::vector<SweptValue> values;
  for (const YamlValue& each : value.list()) values.push_back(swept(each));
  if (values.empty()) value.fail("expected at least one value");
  return values;
}

std::vector<SweptValue> read_values(const YamlValue& value) {
  if (value.is_map()) return read_range(value);
  if (!value.is_list()) value.fail("expected a list of values, or {from, to, step}");
  return read_list(value);
}

// A key is a path of another map, not one of its own.
SweptKey swept_key(const std::string& key, const YamlValue& value) {
  std::string path = key;
  std::ranges::replace(path, '-', '_');
  const bool empty_part = path.empty() || path.front() == '.' || path.back() == '.' ||
                          path.find("..") != std::string::npos;
  if (empty_part) value.fail_key("expected path.to.key of a scenario");
  if (path == "schedule") {
    value.fail_key(
        "every schedule of the scenario's own list is a point: list them there, outside 'sweep'");
  }
  if (path == "sweep" || path.starts_with("sweep.")) value.fail_key("a sweep cannot sweep itself");
  return {std::move(path), value.key_where(), {}};
}

// Refuses a value given twice in an axis, which would make the same points twice.
void check_once(const YamlValue& list) {
  std::set<std::string> seen;
  for (const YamlValue& each : list.list()) {
    if (!seen.insert(each.one_line()).second) each.fail("this value is there twice");
  }
}

void read_grid(const YamlValue& grid, std::vector<Axis>& axes) {
  for (const auto& [key, value] : grid.entries()) {
    axes.push_back({{swept_key(key, value)}});
    axes.back().keys.front().values = read_values(value);
    if (value.is_list()) check_once(value);
  }
  if (axes.empty()) grid.fail("expected at least one key");
}

void read_zip(const YamlValue& zip, std::vector<Axis>& axes) {
  Axis axis;
  for (const auto& [key, value] : zip.entries()) {
    SweptKey zipped = swept_key(key, value);
    zipped.values = read_values(value);
    if (!axis.keys.empty() && zipped.values.size() != axis.length()) {
      value.fail(fmt::format("{} values, but {} has {}: zipped keys advance together",
                             zipped.values.size(), axis.keys.front().path, axis.length()));
    }
    axis.keys.push_back(std::move(zipped));
  }
  if (axis.keys.empty()) zip.fail("expected at least one key");
  axes.push_back(std::move(axis));
}

using Generator = boost::random::mt19937_64;

// Draws a value of a list, or a number in {from, to}, both ends included.
class Drawn {
 public:
  explicit Drawn(const YamlValue& value) : value_(value) {
    if (!value.is_map()) {
      choices_ = read_values(value);
      last_ = static_cast<std::int64_t>(choices_.size()) - 1;
      return;
    }
    YamlMap map(value);
    const auto [from, to] = read_ends(map);
    map.finish();
    if (!exceeds(to, from, value)) value.fail("'to' must be greater than 'from'");
    unit_ = from.unit;
    places_ = std::max(from.places, to.places);
    const bool whole = unit_.empty() && places_ == 0;
    for (;; ++places_) {
      const auto first = from.digits_with(places_);
      const auto last = to.digits_with(places_);
      if (!first || !last) too_long(value);
      first_ = *first;
      last_ = *last;
      if (whole || last_ / 2 - first_ / 2 >= kDrawSteps / 2) return;
    }
  }

  SweptValue next(Generator& generator) const {
    const std::int64_t at =
        boost::random::uniform_int_distribution<std::int64_t>(first_, last_)(generator);
    if (!choices_.empty()) return choices_[at];
    return swept(Decimal{at, places_, unit_}, value_);
  }

 private:
  YamlValue value_;
  std::vector<SweptValue> choices_;
  std::int64_t first_ = 0;
  std::int64_t last_ = 0;
  int places_ = 0;
  std::string unit_;
};

void read_draw(const YamlValue& draw, std::vector<Axis>& axes) {
  YamlMap map(draw);
  const auto seed = map.require("seed", "a whole number").integer(0, 1L << 53);
  const auto count =
      map.require("count", "how many draws").integer(1, static_cast<long>(kMaxValues));
  const YamlValue keys = map.require("keys", "keys and what their values are drawn from");
  map.finish();
  Axis axis;
  std::vector<Drawn> drawn;
  for (const auto& [key, value] : keys.entries()) {
    axis.keys.push_back(swept_key(key, value));
    drawn.emplace_back(value);
  }
  if (axis.keys.empty()) keys.fail("expected at least one key");
  Generator generator(static_cast<std::uint64_t>(seed));
  for (long i = 0; i < count; ++i) {
    for (size_t k = 0; k < drawn.size(); ++k) {
      axis.keys[k].values.push_back(drawn[k].next(generator));
    }
  }
  axes.push_back(std::move(axis));
}

void check_paths(const YamlValue& sweep, const std::vector<Axis>& axes) {
  std::vector<std::string> paths;
  for (const Axis& axis : axes) {
    for (const SweptKey& key : axis.keys) {
      for (const std::string& other : paths) {
        if (key.path == other) sweep.fail(fmt::format("{} is swept twice", other));
        if (key.path.starts_with(other + ".") || other.starts_with(key.path + ".")) {
          sweep.fail(
              fmt::format("{} and {} are swept, but one is within the other", other, key.path));
        }
      }
      paths.push_back(key.path);
    }
  }
}

}  // namespace

std::vector<Axis> read_axes(const YamlValue& sweep) {
  YamlMap map(sweep);
  std::vector<Axis> axes;
  if (const auto grid = map.find("grid")) read_grid(*grid, axes);
  if (const auto zip = map.find("zip")) read_zip(*zip, axes);
  if (const auto draw = map.find("draw")) read_draw(*draw, axes);
  (void)map.find("max_points");  // the Sweep's
  map.finish();
  if (axes.empty()) sweep.fail("expected what to sweep: {grid: {key: [values]}}, zip or draw");
  check_paths(sweep, axes);
  return axes;
}

}  // namespace pipesim
