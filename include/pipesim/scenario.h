// A scenario (docs/reference/scenario.md) as a value that is read once and changed by dotted keys.
#pragma once

#include <memory>
#include <pipesim/error.h>
#include <string>
#include <utility>
#include <vector>

namespace pipesim {
class ReadScenario;
}

namespace pipesim::api {

// Keys and their values as YAML: {{"batch.num_microbatches", "16"}, {"schedule", "[1f1b, zb-h1]"}}.
using Changes = std::vector<std::pair<std::string, std::string>>;

// Immutable: threads may share one. Copies share what was read.
class Scenario {
 public:
  // The same scenario with other values over it. Cheaper than reading it anew. Error at
  // "<change>" for an unknown key or an invalid value.
  [[nodiscard]] Scenario replace(const Changes& changes) const;

  // The path that it was read from, or "scenario".
  [[nodiscard]] const std::string& file() const;
  // The names of its schedules, in their order.
  [[nodiscard]] std::vector<std::string> schedules() const;
  [[nodiscard]] int pipeline_model_parallel_size() const;
  [[nodiscard]] int num_microbatches() const;  // of one pipeline in an iteration
  [[nodiscard]] long gpus() const;             // tensor x context x pipeline x data

  explicit Scenario(std::shared_ptr<const ReadScenario> read) : read_(std::move(read)) {}
  // The library's own.
  [[nodiscard]] const ReadScenario& read() const { return *read_; }

 private:
  std::shared_ptr<const ReadScenario> read_;
};

// Both throw Error, and simulate nothing.
Scenario scenario_from_file(const std::string& path, const Changes& changes = {});
// Files that the text names stand relative to the current folder.
Scenario scenario_from_text(const std::string& text, const Changes& changes = {});

}  // namespace pipesim::api
