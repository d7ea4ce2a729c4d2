#include "sim/report/svg/xml.h"

namespace pipesim {
namespace {

// True if XML 1.0 allows the character, which is not ASCII, and so many bytes are its shortest
// sequence.
bool allowed(unsigned long point, size_t length) {
  if (length == 3 && point < 0x800) return false;
  if (length == 4 && point < 0x10000) return false;
  const bool surrogate = point >= 0xd800 && point < 0xe000;
  return !surrogate && point <= 0x10ffff && (point & 0xfffeU) != 0xfffe;
}

// Length of a UTF-8 sequence by its first byte, which is not ASCII; 0 when none begins so.
size_t length_by(unsigned char first) {
  if (first < 0xc2 || first > 0xf4) return 0;
  return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
}

// Bytes of the UTF-8 sequence at the start of `text`, or 0 when there is none that XML 1.0 allows.
size_t sequence_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' ? 1 : 0;
  const size_t length = length_by(first);
  if (length == 0 || text.size() < length) return 0;
  unsigned long point = first & (0xffU >> (length + 1));
  for (const char c : text.substr(1, length - 1)) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0U) != 0x80) return 0;
    point = point << 6U | (byte & 0x3fU);
  }
  return allowed(point, length) ? length : 0;
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    switch (text[0]) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&apos;";
        break;
      default:
        escaped += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return escaped;
}

}  // namespace pipesim
