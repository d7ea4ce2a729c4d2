// The questions of the page of `pipesim serve`, and the `pipesim plan` that asks the same.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/read/hardware.h"

namespace pipesim {

struct ServeQuestion {
  std::vector<std::string> arguments;  // "plan", "--model", "llama3-8b" ...
  double failures_per_1000_node_days = 0;
};

// The names and ranges that a question is made of. Read once, when the server starts: a question
// names no file.
class ServeChoices {
 public:
  explicit ServeChoices(const Location& asked);

  // {models: [{name, vocab_size}], clusters: [{name, title, ...}], schedules, precisions, numbers}.
  [[nodiscard]] nlohmann::ordered_json json() const;
  // InputError for a text that is no question, with the nearest name.
  [[nodiscard]] ServeQuestion read(const std::string& text) const;

 private:
  HardwareCatalog hardware_;
  std::vector<std::string> models_, clusters_, schedules_;
};

}  // namespace pipesim
