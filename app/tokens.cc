#include "app/tokens.h"

#include <fmt/format.h>

#include "app/ranges.h"

namespace pipesim {

double read_tokens(const std::string& text, const Location& where) {
  static const std::string kLetters = "KMBT";
  std::string digits = text;
  double unit = 1;
  if (const size_t letter = digits.empty() ? std::string::npos : kLetters.find(digits.back());
      letter != std::string::npos) {
    digits.pop_back();
    for (size_t i = 0; i <= letter; ++i) unit *= 1000;
  }
  size_t read = 0;
  double number = 0;
  try {
    number = std::stod(digits, &read);
  } catch (const std::exception&) {
    read = 0;
  }
  if (read == 0 || read != digits.size() || !(number * unit >= kTokens.least) ||
      number * unit > kTokens.most) {
    throw InputError(where, fmt::format("'{}': expected a number of tokens, such as 15T", text));
  }
  return number * unit;
}

}  // namespace pipesim
