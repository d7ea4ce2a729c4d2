// A scenario's text, read again and again with other values.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/read/yaml.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// "path.to.key" and its value as YAML.
using Changes = std::vector<std::pair<std::string, std::string>>;
// Located at "<change>".
std::vector<Override> overrides_of(const Changes& changes);

// The text is parsed anew once in a while, since everything made of one parsed text stays in memory
// with it. Threads may share one.
class ScenarioText {
 public:
  // `name`: of the file, beside which others stand that the text names.
  ScenarioText(std::string name, std::string text)
      : name_(std::move(name)), text_(std::move(text)) {}

  // InputError.
  std::shared_ptr<Scenario> read(const Changes& changes);

 private:
  std::string name_, text_;
  std::mutex reading_;  // of the next two
  std::optional<YamlSource> parsed_;
  int readings_ = 0;
};

}  // namespace pipesim
