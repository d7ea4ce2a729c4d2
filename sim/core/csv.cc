#include "sim/core/csv.h"

#include <cstdlib>

namespace pipesim {

namespace {

// A spreadsheet computes all that begins like a formula and is no number.
bool is_formula(const std::string& text) {
  if (text.empty() || std::string("=+-@\t\r").find(text.front()) == std::string::npos) return false;
  char* end = nullptr;
  (void)std::strtod(text.c_str(), &end);
  return *end != '\0';
}

}  // namespace

std::string csv_field(const std::string& plain) {
  std::string text = is_formula(plain) ? '\'' + plain : plain;
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace pipesim
