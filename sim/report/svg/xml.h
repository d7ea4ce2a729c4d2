// Any text as the content of an XML element or attribute.
#pragma once

#include <string>
#include <string_view>

namespace pipesim {

// Escapes XML's markup. Bytes that no document may have (control characters, bytes that are not
// UTF-8) become U+FFFD, one for each byte.
std::string xml_escaped(std::string_view text);

}  // namespace pipesim
