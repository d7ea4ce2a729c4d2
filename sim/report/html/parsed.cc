#include "sim/report/html/parsed.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "sim/core/input_text.h"

namespace pipesim {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void refuse(const ReportInput& input, size_t byte, const std::string& what,
                         const std::string& expected) {
  throw InputError(place_in(input.path, input.text, byte), what + "; expected " + expected);
}

// The byte at which lists and objects of the text are nested too deeply for a document of ours;
// nothing when they are not.
std::optional<size_t> too_deep(const std::string& text) {
  constexpr int kMostLevels = 100;
  int level = 0;
  bool quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted && c == '\\') ++at;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '[' || c == '{') ++level;
    if (c == ']' || c == '}') --level;
    if (level > kMostLevels) return at;
  }
  return std::nullopt;
}

}  // namespace

bool is_number_or_null(const Json& value) { return value.is_number() || value.is_null(); }

void refuse_document(const ReportInput& input, const std::string& what,
                     const std::string& expected) {
  refuse(input, 0, what, expected);
}

Json parsed(const ReportInput& input, const std::string& expected) {
  if (const auto byte = too_deep(input.text)) {
    refuse(input, *byte, "is nested too deeply", expected);
  }
  Json document;
  try {
    document = Json::parse(input.text);
  } catch (const Json::parse_error& error) {
    refuse(input, error.byte > 0 ? error.byte - 1 : 0, "is no JSON", expected);
  } catch (const Json::out_of_range&) {
    refuse(input, 0, "has a number that is out of range", expected);
  }
  if (!document.is_object()) refuse(input, 0, "is no object", expected);
  return document;
}

}  // namespace pipesim
