// Any text as the content of an XML element or attribute.
#pragma once

#include <string>
#include <string_view>

namespace pipesim {

// Escapes what XML reads as markup; what may not stand in a document at all (control characters,
// bytes that are not UTF-8) becomes U+FFFD, one for each byte.
std::string xml_escaped(std::string_view text);

}  // namespace pipesim
