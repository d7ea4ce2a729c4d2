#include "app/refused_options.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/error.h"
#include "sim/core/text.h"

namespace pipesim {
namespace {

// Suggests names for a misspelt option. A letter has no near ones: all are shown.
std::string meant(const std::string& name, const std::vector<std::string>& names) {
  const bool letter = name.size() == 2;
  return letter ? fmt::format("; valid: {}", fmt::join(names, ", ")) : suggestion(name, names);
}

}  // namespace

void refuse_options(const CommandLine& line, const Parser& command, const OptionError& error) {
  const auto names = command.option_names();
  for (size_t i = 0; i < line.arguments().size(); ++i) {
    const std::string name = line.arguments()[i].substr(0, line.arguments()[i].find('='));
    if (!name.starts_with("-") || name == "-") continue;
    if (std::ranges::find(names, name) == names.end()) {
      throw InputError(line.where(i),
                       fmt::format("unknown option '{}'{}", name, meant(name, names)));
    }
    if (std::string_view(error.what()).find(name) != std::string_view::npos) {
      throw InputError(line.where(i), error.what());
    }
  }
  const auto value = std::ranges::find_if(line.arguments(), [&error](const std::string& each) {
    return std::string_view(error.what()).find(fmt::format("'{}'", each)) != std::string_view::npos;
  });
  throw InputError(line.where(static_cast<size_t>(value - line.arguments().begin())), error.what());
}

}  // namespace pipesim
