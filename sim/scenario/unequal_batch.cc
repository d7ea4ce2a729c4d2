#include "sim/scenario/unequal_batch.h"

#include <algorithm>
#include <boost/random/discrete_distribution.hpp>
#include <boost/random/mersenne_twister.hpp>
#include <boost/random/normal_distribution.hpp>
#include <boost/random/uniform_real_distribution.hpp>
#include <cmath>
#include <numeric>

namespace pipesim {

std::vector<double> drawn(const Draw& draw, std::uint64_t seed, size_t count) {
  if (draw.listed()) return draw.values;
  // Boost's distributions, unlike the standard library's, give the same numbers everywhere.
  boost::random::mt19937_64 generator(seed);
  boost::random::normal_distribution<double> normal;
  boost::random::discrete_distribution<size_t, double> bin(draw.counts);
  const auto next = [&] {
    switch (draw.kind) {
      case Draw::Kind::kLognormal:
        return draw.mean * std::exp(draw.sigma * normal(generator) - draw.sigma * draw.sigma / 2);
      case Draw::Kind::kUniform:
        // Boost's takes no empty interval.
        if (draw.least == draw.most) return draw.least;
        return boost::random::uniform_real_distribution<double>(draw.least, draw.most)(generator);
      default:
        return draw.values[bin(generator)];
    }
  };
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) {
    values.push_back(std::clamp(next(), draw.least, draw.most));
  }
  return values;
}

std::vector<Documents> packed_in_order(std::span<const int> documents, size_t microbatches,
                                       long capacity) {
  std::vector<Documents> packed(microbatches);
  size_t at = 0;
  long full = 0;
  for (int rest : documents) {
    while (rest > 0 && at < microbatches) {
      const int part = static_cast<int>(std::min<long>(rest, capacity - full));
      packed[at].push_back(part);
      rest -= part;
      full += part;
      if (full < capacity) continue;
      full = 0;
      ++at;
    }
  }
  return packed;
}

namespace {

// Documents without room go to `left_over`, or, without it, to the microbatch of fewest tokens.
void fill_by_work(std::span<const int> documents, std::vector<Documents>& microbatches, double most,
                  const std::function<double(int)>& work, Documents* left_over) {
  std::vector<size_t> longest_first(documents.size());
  std::iota(longest_first.begin(), longest_first.end(), size_t{0});
  std::ranges::stable_sort(longest_first,
                           [documents](size_t a, size_t b) { return documents[a] > documents[b]; });
  constexpr size_t kNowhere = static_cast<size_t>(-1);
  std::vector<size_t> place(documents.size(), kNowhere);
  std::vector<double> works(microbatches.size(), 0);
  std::vector<long> tokens(microbatches.size(), 0);
  for (size_t i = 0; i < microbatches.size(); ++i) {
    for (const int held : microbatches[i]) {
      works[i] += work(held);
      tokens[i] += held;
    }
  }
  for (const size_t each : longest_first) {
    const auto fits = [&](size_t i) {
      return static_cast<double>(tokens[i] + documents[each]) <= most;
    };
    auto to = static_cast<size_t>(std::ranges::min_element(works) - works.begin());
    if (!fits(to)) to = static_cast<size_t>(std::ranges::min_element(tokens) - tokens.begin());
    if (left_over != nullptr && !fits(to)) continue;
    place[each] = to;
    works[to] += work(documents[each]);
    tokens[to] += documents[each];
  }
  for (size_t each = 0; each < documents.size(); ++each) {
    (place[each] == kNowhere ? *left_over : microbatches[place[each]]).push_back(documents[each]);
  }
}

}  // namespace

std::vector<Documents> packed_by_work(std::span<const int> documents, size_t microbatches,
                                      long capacity, double room,
                                      const std::function<double(int)>& work) {
  std::vector<Documents> packed(microbatches);
  fill_by_work(documents, packed, room * static_cast<double>(capacity), work, nullptr);
  return packed;
}

Documents pack_by_work(std::span<const int> documents, std::vector<Documents>& microbatches,
                       long capacity, double room, const std::function<double(int)>& work) {
  Documents left_over;
  fill_by_work(documents, microbatches, room * static_cast<double>(capacity), work, &left_over);
  return left_over;
}

}  // namespace pipesim
