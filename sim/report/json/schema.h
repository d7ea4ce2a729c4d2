// The number of the JSON documents' form, which every document states as its first key, `schema`
// (docs/reference/json.md).
#pragma once

namespace pipesim {

// Rises when a key goes or changes its meaning; a key that is added leaves it.
inline constexpr int kJsonSchema = 2;

}  // namespace pipesim
