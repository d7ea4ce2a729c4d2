// Letter case of names.
#pragma once

#include <string>

namespace pipesim {

// The text with the small ones of ASCII's capitals.
inline std::string small_letters(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

}  // namespace pipesim
