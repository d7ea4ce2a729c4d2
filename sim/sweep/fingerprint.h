// A short name for any text, the same on every machine: the key of a result in a sweep's store.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace pipesim {

using Fingerprint = std::array<std::uint8_t, 16>;

// A name-based UUID (RFC 4122, version 5: 122 bits of SHA-1) in a namespace of pipesim's own.
Fingerprint fingerprint(std::string_view text);

std::string hex(const Fingerprint& fingerprint);

}  // namespace pipesim
