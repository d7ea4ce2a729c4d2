#include "library/scenario_text.h"

#include <fmt/format.h>

#include "sim/read/scenario.h"

namespace pipesim {

std::vector<Override> overrides_of(const Changes& changes) {
  std::vector<Override> overrides;
  for (const auto& [path, value] : changes) {
    const std::string text = fmt::format("{}={}", path, value);
    overrides.push_back(parse_override(text, {"<change>", 1, 1, text}));
  }
  return overrides;
}

std::shared_ptr<Scenario> ScenarioText::read(const Changes& changes) {
  constexpr int kReadings = 100;
  const std::lock_guard lock(reading_);
  if (readings_++ % kReadings == 0) parsed_.emplace(name_, text_);
  return std::make_shared<Scenario>(read_scenario(parsed_->with(overrides_of(changes))));
}

}  // namespace pipesim
