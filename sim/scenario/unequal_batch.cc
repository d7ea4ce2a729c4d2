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
  boost::random::uniform_real_distribution<double> uniform(draw.least, draw.most);
  boost::random::discrete_distribution<size_t, double> bin(draw.counts);
  const auto next = [&] {
    switch (draw.kind) {
      case Draw::Kind::kLognormal:
        return draw.mean * std::exp(draw.sigma * normal(generator) - draw.sigma * draw.sigma / 2);
      case Draw::Kind::kUniform:
        return uniform(generator);
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

std::vector<Documents> packed_by_work(std::span<const int> documents, size_t microbatches,
                                      long capacity, double room,
                                      const std::function<double(int)>& work) {
  std::vector<size_t> longest_first(documents.size());
  std::iota(longest_first.begin(), longest_first.end(), size_t{0});
  std::ranges::stable_sort(longest_first,
                           [documents](size_t a, size_t b) { return documents[a] > documents[b]; });
  std::vector<std::vector<size_t>> held(microbatches);
  std::vector<double> works(microbatches, 0);
  std::vector<long> tokens(microbatches, 0);
  const double most = room * static_cast<double>(capacity);
  for (const size_t each : longest_first) {
    auto to = static_cast<size_t>(std::ranges::min_element(works) - works.begin());
    if (static_cast<double>(tokens[to] + documents[each]) > most) {
      to = static_cast<size_t>(std::ranges::min_element(tokens) - tokens.begin());
    }
    held[to].push_back(each);
    works[to] += work(documents[each]);
    tokens[to] += documents[each];
  }
  std::vector<Documents> packed(microbatches);
  for (size_t i = 0; i < microbatches; ++i) {
    std::ranges::sort(held[i]);
    for (const size_t each : held[i]) packed[i].push_back(documents[each]);
  }
  return packed;
}

}  // namespace pipesim
