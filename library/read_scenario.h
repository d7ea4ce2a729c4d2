// The value beneath api::Scenario.
#pragma once

#include <memory>
#include <pipesim/scenario.h>

#include "library/scenario_text.h"

namespace pipesim {

class ReadScenario {
 public:
  ReadScenario(std::shared_ptr<ScenarioText> text, Changes changes)
      : text_(std::move(text)), changes_(std::move(changes)), scenario_(text_->read(changes_)) {}

  [[nodiscard]] api::Scenario replace(const Changes& changes) const;
  [[nodiscard]] const std::shared_ptr<const Scenario>& scenario() const { return scenario_; }

 private:
  std::shared_ptr<ScenarioText> text_;
  Changes changes_;
  std::shared_ptr<const Scenario> scenario_;
};

}  // namespace pipesim
