#include "sim/band/band.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <utility>

namespace pipesim {
namespace {

constexpr double kAlike = 0.4;   // 0: rows of a group are independent; 1: they are one
constexpr double kDraw = 1;      // rows that a coarser level counts as
constexpr double kOther = 0.25;  // for another group, and each of GPU and precision that is another
constexpr double kTail = (1 - kBandLevel) / 2;
enum Level : std::size_t { kGroup, kSetUp, kSamePrecision, kSameGpu, kSameKind };

template <class Weighted>
void weigh_together(std::vector<Weighted>& values, double weight) {
  double all = 0;
  for (const Weighted& each : values) all += each.weight;
  for (Weighted& each : values) each.weight *= weight / all;
}

}  // namespace

std::string group_of(const Residual& row) {
  return fmt::format("{} {} {}, {} {}", row.gpu, row.precision, row.kind, row.framework, row.year);
}

BandQuery query_of(const Residual& row) {
  return {row.gpu, row.precision, row.kind, row.framework, row.year};
}

BandModel::Names BandModel::names_of(const BandQuery& query) {
  const std::string set_up = fmt::format("{} {} {}", query.gpu, query.precision, query.kind);
  return {fmt::format("{}, {} {}", set_up, query.framework, query.year), set_up,
          fmt::format("{} {}", query.precision, query.kind),
          fmt::format("{} {}", query.gpu, query.kind), query.kind};
}

BandModel::Keys BandModel::keys_of(const Names& names) const {
  Keys keys{};
  for (size_t level = 0; level < kLevels; ++level) {
    const auto found = numbers_.find(names[level]);
    keys[level] = found == numbers_.end() ? -1 : found->second;
  }
  return keys;
}

BandModel::BandModel(std::vector<Residual> rows) : rows_(std::move(rows)) {
  std::map<int, double> counts;
  for (const Residual& row : rows_) {
    const Names names = names_of(query_of(row));
    for (const std::string& name : names) {
      numbers_.try_emplace(name, static_cast<int>(numbers_.size()));
    }
    keys_.push_back(keys_of(names));
    ++counts[keys_.back()[kGroup]];
  }
  for (const Keys& keys : keys_) weights_.push_back(std::pow(counts[keys[kGroup]], -kAlike));
}

// Between the middles of the weights, as the median of equal weights has it.
double BandModel::quantile(std::vector<Weighted> values, double q) {
  std::ranges::sort(values);
  double all = 0;
  for (const Weighted& each : values) all += each.weight;
  double before = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double at = (before + values[i].weight / 2) / all;
    before += values[i].weight;
    if (q > at) continue;
    if (i == 0) return values.front().value;
    const Weighted& last = values[i - 1];
    const double from = at - (last.weight + values[i].weight) / 2 / all;
    return std::lerp(last.value, values[i].value, (q - from) / (at - from));
  }
  return values.back().value;
}

BandModel::Estimate BandModel::estimate(const Keys& keys,
                                        const std::optional<LeftOut>& left_out) const {
  Estimate estimate;
  for (size_t level = kLevels; level-- > 0;) {
    std::vector<Weighted> near;
    double support = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (keys_[i][level] != keys[level]) continue;
      if (left_out && (left_out->group ? keys_[i][kGroup] == keys_[left_out->row][kGroup]
                                       : i == left_out->row)) {
        continue;
      }
      near.push_back({rows_[i].log_ratio, weights_[i]});
      support += weights_[i];
    }
    if (near.empty()) continue;
    const size_t rows = near.size();
    const double median = quantile(std::move(near), 0.5);
    const double centre = (support * median + kDraw * estimate.centre) / (support + kDraw);
    estimate = {centre, support, level, rows};
  }
  return estimate;
}

double BandModel::nearness(const Keys& query, const Keys& row) const {
  if (query[kGroup] == row[kGroup]) return 1;
  if (query[kSetUp] == row[kSetUp]) return kOther;
  const bool one = query[kSameGpu] == row[kSameGpu] || query[kSamePrecision] == row[kSamePrecision];
  return one ? kOther * kOther : kOther * kOther * kOther;
}

std::vector<BandModel::Weighted> BandModel::deviations(const Keys& keys, bool of_group) const {
  std::vector<Weighted> all;
  std::map<int, Estimate> of_others;  // by the group that is left out
  for (size_t i = 0; i < rows_.size(); ++i) {
    Estimate from;
    if (of_group) {
      from = estimate(keys_[i], LeftOut{i, false});
      if (from.level != kGroup) continue;
    } else {
      if (keys_[i][kGroup] == keys[kGroup]) continue;  // is in the query's centre
      const auto [at, added] = of_others.try_emplace(keys_[i][kGroup]);
      if (added) at->second = estimate(keys_[i], LeftOut{i, true});
      from = at->second;
      if (from.level >= kSameKind) continue;
    }
    all.push_back({(rows_[i].log_ratio - from.centre) / std::sqrt(1 + 1 / (from.support + kDraw)),
                   weights_[i] * nearness(keys, keys_[i])});
  }
  return all;
}

double BandModel::difference(const Keys& keys) const {
  std::vector<Weighted> pairs;
  for (size_t i = 0; i < rows_.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (keys_[i][kGroup] != keys_[j][kGroup]) continue;
      // A group's n (n - 1) / 2 pairs count as its n rows do.
      const double weight = std::pow(weights_[i], 1 + 1 / kAlike) * nearness(keys, keys_[i]);
      pairs.push_back({std::abs(rows_[i].log_ratio - rows_[j].log_ratio), weight});
    }
  }
  return pairs.empty() ? 0 : std::expm1(quantile(std::move(pairs), kBandLevel));
}

std::optional<Band> BandModel::band(const BandQuery& query) const {
  const Names names = names_of(query);
  const Keys keys = keys_of(names);
  const Estimate near = estimate(keys, std::nullopt);
  if (near.level >= kSameKind) return std::nullopt;
  auto off = deviations(keys, false);
  if (near.level == kGroup) {
    auto known = deviations(keys, true);
    const auto count = static_cast<double>(near.rows);
    if (!known.empty()) weigh_together(off, kDraw / (count + kDraw));
    weigh_together(known, count / (count + kDraw));
    off.insert(off.end(), known.begin(), known.end());
  }
  if (off.empty()) return std::nullopt;
  const double scale = std::sqrt(1 + 1 / (near.support + kDraw));
  return Band{std::exp(near.centre + scale * quantile(off, kTail)),
              std::exp(near.centre + scale * quantile(off, 1 - kTail)), difference(keys), near.rows,
              names[near.level]};
}

namespace {

using Bands = std::vector<std::optional<Band>>;  // by row

// Of the rows of a group, or of all.
BandCoverage counted(const std::string& name, const std::vector<Residual>& rows, const Bands& bands,
                     bool all) {
  BandCoverage counts{name};
  std::vector<double> widths;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!all && group_of(rows[i]) != name) continue;
    ++counts.rows;
    if (!bands[i]) continue;
    ++counts.near;
    const double factor = std::exp(rows[i].log_ratio);
    counts.held += bands[i]->low <= factor && factor <= bands[i]->high ? 1U : 0U;
    widths.push_back(bands[i]->half_width());
  }
  std::ranges::sort(widths);
  if (!widths.empty()) counts.half_width = widths[widths.size() / 2];
  return counts;
}

std::vector<BandCoverage> by_group(const std::vector<Residual>& rows, const Bands& bands) {
  std::vector<BandCoverage> groups;
  for (const Residual& row : rows) {
    const std::string name = group_of(row);
    if (std::ranges::find(groups, name, &BandCoverage::group) != groups.end()) continue;
    groups.push_back(counted(name, rows, bands, false));
  }
  groups.push_back(counted("all", rows, bands, true));
  return groups;
}

template <class Keep>
BandModel model_of(const std::vector<Residual>& rows, const Keep& keep) {
  std::vector<Residual> kept;
  std::ranges::copy_if(rows, std::back_inserter(kept), keep);
  return BandModel(std::move(kept));
}

}  // namespace

Bands bands_without_their_groups(const std::vector<Residual>& rows) {
  std::map<std::string, std::optional<Band>> by_name;
  Bands bands;
  for (const Residual& row : rows) {
    const std::string name = group_of(row);
    const auto [at, added] = by_name.try_emplace(name);
    if (added) {
      const auto other = [&name](const Residual& each) { return group_of(each) != name; };
      at->second = model_of(rows, other).band(query_of(row));
    }
    bands.push_back(at->second);
  }
  return bands;
}

std::vector<BandCoverage> coverage_of(const std::vector<Residual>& rows) {
  return by_group(rows, bands_without_their_groups(rows));
}

std::vector<BandCoverage> coverage_within_groups(const std::vector<Residual>& rows) {
  Bands bands;
  for (const Residual& row : rows) {
    const auto other = [&row](const Residual& each) { return &each != &row; };
    bands.push_back(model_of(rows, other).band(query_of(row)));
  }
  return by_group(rows, bands);
}

}  // namespace pipesim
