// SHA-256 (FIPS 180-4), for the hashes by which a page's policy allows its own script and style.
#pragma once

#include <string>
#include <string_view>

namespace pipesim {

// In base 64, as a Content-Security-Policy has it.
std::string sha256_base64(std::string_view text);

}  // namespace pipesim
