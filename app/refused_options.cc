#include "app/refused_options.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/error.h"
#include "sim/core/text.h"

namespace pipesim {
namespace {

// Words that people bring along, and how they are said here.
struct Brought {
  std::string_view name;
  std::string_view said;
};
constexpr std::array kBrought{
    Brought{"--dp", "data ranks are what the other sizes leave of the GPUs"},
    Brought{"--data-parallel", "data ranks are what the other sizes leave of the GPUs"},
    Brought{"--bf16", "give memory.precision=bf16"},
    Brought{"--fp16", "give memory.precision=fp16"},
    Brought{"--fp8", "give memory.precision=fp8"},
    Brought{"--lora", "give memory.lora_rank=16"},
    Brought{"--lora-rank", "give memory.lora_rank=16"},
    Brought{"--set", "a setting stands alone, as path.to.key=value"},
    Brought{"--override", "a setting stands alone, as path.to.key=value"}};

// Suggests names for an option that the command lacks.
std::string meant(const std::string& name, const Parser& command) {
  constexpr size_t kFew = 12;
  const auto brought = std::ranges::find(kBrought, name, &Brought::name);
  if (brought != kBrought.end()) return fmt::format(": {}", brought->said);
  const auto names = command.option_names();
  const bool letter = name.size() == 2;  // which has no near ones
  if (!letter && !suggested_names(name, names).empty()) return suggestion(name, names);
  if (names.size() > kFew) return fmt::format("; `pipesim {} --help` has all", command.name());
  return fmt::format("; valid: {}", fmt::join(names, ", "));
}

}  // namespace

void refuse_options(const CommandLine& line, const Parser& command, const OptionError& error) {
  const auto names = command.option_names();
  for (size_t i = 0; i < line.arguments().size(); ++i) {
    const std::string name = line.arguments()[i].substr(0, line.arguments()[i].find('='));
    if (!name.starts_with("-") || name == "-") continue;
    if (std::ranges::find(names, name) == names.end()) {
      throw InputError(line.where(i),
                       fmt::format("unknown option '{}'{}", name, meant(name, command)));
    }
    if (std::string_view(error.what()).find(name) != std::string_view::npos) {
      throw InputError(line.where(i), error.what());
    }
  }
  for (const OptionText& option : command.options()) {
    if (!option.positional || error.what() != option.names.front() + " is required") continue;
    throw InputError(line.where(line.arguments().size()),
                     fmt::format("expected {}: {}", option.names.front(), option.help));
  }
  const auto value = std::ranges::find_if(line.arguments(), [&error](const std::string& each) {
    return std::string_view(error.what()).find(fmt::format("'{}'", each)) != std::string_view::npos;
  });
  throw InputError(line.where(static_cast<size_t>(value - line.arguments().begin())), error.what());
}

}  // namespace pipesim
