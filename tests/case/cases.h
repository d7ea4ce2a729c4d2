// Cases and scenarios as tests have them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/error.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim {

inline Case case_of(const Scenario& scenario, const ScheduleChoice& choice) {
  return prepare(std::make_shared<const Scenario>(scenario), choice);
}

// Keys and values over what a text says.
using Changes = std::vector<std::pair<std::string, std::string>>;

inline Scenario read_changed(const std::string& text, const Changes& changes) {
  std::vector<Override> all;
  for (const auto& [key, value] : changes) all.push_back({key, value, {}});
  return read_scenario(YamlSource("test", text, all));
}

// The message of its refusal, or nothing.
inline std::string refusal_of(const std::string& text, const Changes& changes) {
  try {
    (void)read_changed(text, changes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace pipesim
