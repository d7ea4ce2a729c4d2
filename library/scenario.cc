#include <pipesim/scenario.h>

#include "library/errors.h"
#include "library/read_scenario.h"
#include "sim/core/input_text.h"
#include "sim/scenario/gpus.h"

namespace pipesim {
namespace {

api::Scenario scenario_of(const std::string& name, std::string text, const Changes& changes) {
  return api::Scenario(std::make_shared<const ReadScenario>(
      std::make_shared<ScenarioText>(name, std::move(text)), changes));
}

}  // namespace

api::Scenario ReadScenario::replace(const Changes& changes) const {
  Changes all = changes_;
  for (const auto& change : changes) {
    std::erase_if(all, [&path = change.first](const auto& before) {
      return (before.first + ".").starts_with(path + ".");
    });
  }
  all.insert(all.end(), changes.begin(), changes.end());
  return api::Scenario(std::make_shared<const ReadScenario>(text_, std::move(all)));
}

namespace api {

Scenario scenario_from_file(const std::string& path, const Changes& changes) {
  return in_public([&] { return scenario_of(path, read_input(path, {path, 0, 0, ""}), changes); });
}

Scenario scenario_from_text(const std::string& text, const Changes& changes) {
  return in_public([&] { return scenario_of("scenario", text, changes); });
}

Scenario Scenario::replace(const Changes& changes) const {
  return in_public([&] { return read().replace(changes); });
}

const std::string& Scenario::file() const { return read().scenario()->file; }

std::vector<std::string> Scenario::schedules() const {
  std::vector<std::string> names;
  for (const ScheduleChoice& choice : read().scenario()->schedules) names.push_back(choice.name);
  return names;
}

int Scenario::pipeline_model_parallel_size() const { return read().scenario()->parallel.pipeline; }

int Scenario::num_microbatches() const { return read().scenario()->batch.microbatches; }

long Scenario::gpus() const { return static_cast<long>(gpus_of(read().scenario()->parallel)); }

}  // namespace api
}  // namespace pipesim
