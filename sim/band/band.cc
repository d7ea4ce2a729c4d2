#include "sim/band/band.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <tuple>
#include <utility>

#include "sim/core/thread_team.h"

namespace pipesim {
namespace {

constexpr double kAlike = 0.4;         // 0: rows of a group are independent; 1: they are one
constexpr double kDraw = 1;            // rows that a coarser level counts as
constexpr double kOther = 0.25;        // for another group, and where GPU or precision is another
constexpr double kSameNetwork = 1.25;  // a ratio of rates that counts as none; assumed
constexpr double kTail = (1 - kBandLevel) / 2;
enum Level : std::size_t {
  kSameModel,
  kGroup,
  kSameFramework,
  kSetUp,
  kSamePrecision,
  kSameGpu,
  kSameKind
};

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
  return {row.gpu,  row.precision, row.kind, row.framework,
          row.year, row.model,     row.gpus, row.network};
}

BandModel::Names BandModel::names_of(const BandQuery& query) {
  const std::string set_up = fmt::format("{} {} {}", query.gpu, query.precision, query.kind);
  const std::string group = fmt::format("{}, {} {}", set_up, query.framework, query.year);
  return {fmt::format("{}, {}", group, query.model),
          group,
          fmt::format("{} {}", query.framework, query.kind),
          set_up,
          fmt::format("{} {}", query.precision, query.kind),
          fmt::format("{} {}", query.gpu, query.kind),
          query.kind};
}

BandModel::Keys BandModel::keys_of(const BandQuery& query) const {
  const Names names = names_of(query);
  Keys keys{};
  for (size_t level = 0; level < kLevels; ++level) {
    const auto found = numbers_.find(names[level]);
    keys[level] = found == numbers_.end() ? -1 : found->second;
  }
  const auto most = most_gpus_.find(keys[kSameFramework]);
  if (most != most_gpus_.end() && query.gpus > most->second) keys[kSameModel] = keys[kGroup] = -1;
  for (size_t level = 0; level < kSameKind && query.network > 0; ++level) {
    const auto known = networks_.find(keys[level]);
    if (known == networks_.end()) continue;
    const auto [least, most_known] = known->second;
    const bool outside =
        query.network * kSameNetwork < least || query.network > kSameNetwork * most_known;
    if (outside) keys[level] = -1;
  }
  return keys;
}

// kLevels where even the kind differs.
std::size_t BandModel::nearest_level(const Keys& a, const Keys& b) {
  size_t level = 0;
  while (level < kLevels && a[level] != b[level]) ++level;
  return level;
}

double BandModel::nearness(std::size_t level) {
  if (level <= kGroup) return 1;
  if (level <= kSetUp) return kOther;
  return level <= kSameGpu ? kOther * kOther : kOther * kOther * kOther;
}

BandModel::BandModel(std::vector<Residual> rows) : rows_(std::move(rows)) {
  const auto order = [](const Residual& row) { return std::tie(row.log_ratio, row.id); };
  std::ranges::sort(rows_, {}, order);
  std::map<Keys, int> models;
  std::map<int, double> counts;  // by group
  for (const Residual& row : rows_) {
    for (const std::string& name : names_of(query_of(row))) {
      numbers_.try_emplace(name, static_cast<int>(numbers_.size()));
    }
    const Keys keys = keys_of(query_of(row));
    const auto [at, added] = models.try_emplace(keys, static_cast<int>(models.size()));
    if (added) keys_.push_back(keys);
    models_.push_back(at->second);
    members_.resize(keys_.size());
    members_[at->second].push_back(models_.size() - 1);
    ++counts[keys[kGroup]];
  }
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Keys& keys = keys_[models_[i]];
    weights_.push_back(std::pow(counts[keys[kGroup]], -kAlike));
    int& most = most_gpus_[keys[kSameFramework]];
    most = std::max(most, rows_[i].gpus);
    const double network = rows_[i].network;
    for (size_t level = 0; level < kLevels && network > 0; ++level) {
      Range& known = networks_.try_emplace(keys[level], Range{network, network}).first->second;
      known = {std::min(known.least, network), std::max(known.most, network)};
    }
  }
  for (const Keys& keys : keys_) buckets_.push_back(buckets(keys));
}

// Between the middles of the weights, as the median of equal weights has it.
double BandModel::quantile(std::vector<Weighted> values, double q) {
  if (!std::ranges::is_sorted(values)) std::ranges::sort(values);
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

BandModel::Buckets BandModel::buckets(const Keys& keys) const {
  std::vector<size_t> level_of(keys_.size());
  for (size_t model = 0; model < keys_.size(); ++model) {
    level_of[model] = nearest_level(keys, keys_[model]);
  }
  std::array<std::vector<Weighted>, kLevels + 1> near;
  for (size_t i = 0; i < rows_.size(); ++i) {
    near[level_of[models_[i]]].push_back({rows_[i].log_ratio, weights_[i]});
  }
  Buckets all{};
  for (size_t level = 0; level < kLevels; ++level) {
    if (near[level].empty()) continue;
    Bucket& bucket = all[level];
    bucket.rows = near[level].size();
    for (const Weighted& each : near[level]) bucket.support += each.weight;
    bucket.median = quantile(std::move(near[level]), 0.5);
  }
  return all;
}

BandModel::Bucket BandModel::others(std::size_t row) const {
  std::vector<Weighted> others;
  Bucket bucket;
  for (const size_t i : members_[models_[row]]) {
    if (i == row) continue;
    others.push_back({rows_[i].log_ratio, weights_[i]});
    bucket.support += weights_[i];
  }
  bucket.rows = others.size();
  if (!others.empty()) bucket.median = quantile(std::move(others), 0.5);
  return bucket;
}

BandModel::Centre BandModel::centre(const Buckets& buckets, std::size_t from) {
  Centre centre;
  for (size_t level = kLevels; level-- > from;) {
    const Bucket& bucket = buckets[level];
    if (bucket.rows == 0) continue;
    centre.value =
        (bucket.support * bucket.median + kDraw * centre.value) / (bucket.support + kDraw);
    centre.support = bucket.support;
  }
  return centre;
}

// Deviations of rows that have others at this level, from the centre that these and coarser ones
// give.
std::vector<BandModel::Weighted> BandModel::deviations(const Keys& keys, std::size_t level) const {
  std::vector<Weighted> all;
  for (size_t i = 0; i < rows_.size(); ++i) {
    Buckets near = buckets_[models_[i]];
    if (level == kSameModel) near[kSameModel] = others(i);
    if (near[level].rows == 0) continue;
    const Centre from = centre(near, level);
    all.push_back({(rows_[i].log_ratio - from.value) / std::sqrt(1 + 1 / (from.support + kDraw)),
                   weights_[i] * nearness(nearest_level(keys, keys_[models_[i]]))});
  }
  return all;
}

double BandModel::difference(const Keys& keys) const {
  std::vector<Weighted> pairs;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Keys& own = keys_[models_[i]];
    // A group's n (n - 1) / 2 pairs count as its n rows do.
    const double weight =
        std::pow(weights_[i], 1 + 1 / kAlike) * nearness(nearest_level(keys, own));
    for (size_t j = 0; j < i; ++j) {
      if (own[kGroup] != keys_[models_[j]][kGroup]) continue;
      pairs.push_back({rows_[i].log_ratio - rows_[j].log_ratio, weight});
    }
  }
  return pairs.empty() ? 0 : std::expm1(quantile(std::move(pairs), kBandLevel));
}

std::optional<Band> BandModel::interval_by(const Keys& keys, const BandQuery& query) const {
  const Buckets near = buckets(keys);
  const size_t nearest = static_cast<size_t>(
      std::ranges::find_if(near, [](const Bucket& each) { return each.rows > 0; }) - near.begin());
  if (nearest == kLevels) return std::nullopt;
  std::vector<Weighted> off;
  double left = 1;
  const auto add = [&](size_t level) {
    auto more = deviations(keys, level);
    if (more.empty()) return;
    const auto rows = static_cast<double>(near[level].rows);
    const double share = off.empty() && rows > 0 ? rows / (rows + kDraw) : 1;
    weigh_together(more, left * share);
    left -= left * share;
    off.insert(off.end(), more.begin(), more.end());
  };
  for (size_t level = nearest; level < kLevels && left > 0; ++level) add(level);
  // No two rows differ as the query does from all.
  for (size_t level = nearest; level-- > 0 && off.empty();) add(level);
  if (off.empty()) return std::nullopt;
  const Centre at = centre(near, nearest);
  const double scale = std::sqrt(1 + 1 / (at.support + kDraw));
  return Band{std::exp(at.value + scale * quantile(off, kTail)),
              std::exp(at.value + scale * quantile(off, 1 - kTail)), 0, near[nearest].rows,
              names_of(query)[nearest]};
}

std::optional<Band> BandModel::interval(const BandQuery& query) const {
  BandQuery anywhere = query;
  anywhere.network = 0;
  const Keys keys = keys_of(query);
  const Keys near = keys_of(anywhere);
  auto band = interval_by(keys, query);
  if (!band || keys == near) return band;
  if (const auto inside = interval_by(near, query)) {
    band->low = std::min(band->low, inside->low);
    band->high = std::max(band->high, inside->high);
  }
  return band;
}

std::optional<Band> BandModel::band(const BandQuery& query) const {
  auto band = interval(query);
  if (band) band->difference = difference(keys_of(query));
  return band;
}

namespace {

using Bands = std::vector<std::optional<Band>>;  // by row

// Counts the rows of a group, or all.
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
  std::map<std::string, std::vector<size_t>> groups;
  for (size_t i = 0; i < rows.size(); ++i) groups[group_of(rows[i])].push_back(i);
  const std::vector<std::pair<std::string, std::vector<size_t>>> of_names(groups.begin(),
                                                                          groups.end());
  Bands bands(rows.size());
  ThreadTeam().run(of_names.size(), [&](size_t at) {
    const auto& [name, members] = of_names[at];
    const BandModel others =
        model_of(rows, [&name = name](const Residual& each) { return group_of(each) != name; });
    for (const size_t i : members) bands[i] = others.interval(query_of(rows[i]));
  });
  return bands;
}

std::vector<BandCoverage> coverage_of(const std::vector<Residual>& rows) {
  return by_group(rows, bands_without_their_groups(rows));
}

std::vector<BandCoverage> coverage_within_groups(const std::vector<Residual>& rows) {
  Bands bands(rows.size());
  ThreadTeam().run(rows.size(), [&](size_t i) {
    const auto other = [&row = rows[i]](const Residual& each) { return &each != &row; };
    bands[i] = model_of(rows, other).interval(query_of(rows[i]));
  });
  return by_group(rows, bands);
}

}  // namespace pipesim
