// Differences of tests beneath a sanitizer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace pipesim::testing {

#ifdef __has_feature
inline constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// How many rounds to draw. A sanitizer looks for other faults than the rounds do and takes ten
// times as long: a tenth is enough there.
constexpr int rounds(int usual) { return kSanitized ? std::max(1, usual / 10) : usual; }

// Likewise of a list of cases.
template <class Case>
std::vector<Case> some(const std::vector<Case>& all) {
  if (!kSanitized) return all;
  std::vector<Case> tenth;
  for (std::size_t i = 0; i < all.size(); i += 10) tenth.push_back(all[i]);
  return tenth;
}

}  // namespace pipesim::testing
