// What tests do differently beneath a sanitizer.
#pragma once

#include <algorithm>

namespace pipesim::testing {

#ifdef __has_feature
inline constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// How many rounds to draw. A sanitizer looks for other faults than the rounds do and takes ten
// times as long: a tenth is enough there.
constexpr int rounds(int usual) { return kSanitized ? std::max(1, usual / 10) : usual; }

}  // namespace pipesim::testing
