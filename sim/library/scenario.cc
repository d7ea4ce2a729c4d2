#include "include/pipesim/scenario.h"

#include "sim/library/overrides.h"
#include "sim/read/scenario.h"

namespace pipesim {

std::vector<Override> parse_overrides(const std::vector<std::string>& texts) {
  std::vector<Override> made;
  for (const std::string& text : texts) {
    made.push_back(
        parse_override(text, {.file = "override", .line = 0, .column = 0, .text = text}));
  }
  return made;
}

Scenario scenario_from_file(const std::string& path, const std::vector<std::string>& overrides) {
  return read_scenario_file(path, {path, 0, 0, ""}, parse_overrides(overrides));
}

Scenario scenario_from_text(const std::string& text, const std::vector<std::string>& overrides) {
  return read_scenario(YamlSource("scenario", text, parse_overrides(overrides)));
}

}  // namespace pipesim
