#include "sim/sweep/sweep.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/core/input_text.h"
#include "sim/core/text.h"
#include "sim/read/scenario.h"
#include "sim/read/sweep_text.h"
#include "sim/sweep/surroundings.h"

namespace pipesim {
namespace {

constexpr long kMaxPoints = 1'000'000'000;  // the most that can be numbered
constexpr double kBytesOfPoint = 430;       // in the store and as CSV, of scenarios/sweep_10k.yaml
constexpr std::uint32_t kSample = 1000;
constexpr const char* kSection = "sweep";

// Keys that make a point large: their numbers multiply the tasks of a simulation.
constexpr std::array<std::string_view, 6> kSizes{"parallel.pipeline_model_parallel_size",
                                                 "parallel.virtual_pipeline_model_parallel_size",
                                                 "batch.num_microbatches",
                                                 "batch.global_batch_size",
                                                 "pipelines",
                                                 "perturb.runs"};

// All that the file says but for the leave to have many points: given more of it, a sweep goes on.
std::string without_limit(const YamlSource& whole) {
  YAML::Node copy = YAML::Clone(whole.root().node());
  for (const auto& [key, value] : YamlValue(whole, copy, "").entries()) {
    if (key != kSection || !value.is_map()) continue;
    for (const char* limit : {"max_points", "max-points"}) copy[kSection].remove(limit);
  }
  return YamlValue(whole, copy, "").one_line();
}

double weight_of(const Axis& axis, size_t value) {
  double weight = 1;
  for (const SweptKey& key : axis.keys) {
    if (std::ranges::find(kSizes, key.path) == kSizes.end()) continue;
    weight *= std::max(1.0, std::strtod(key.values[value].text.c_str(), nullptr));
  }
  return weight;
}

}  // namespace

Sweep Sweep::read(const std::string& path, const Location& asked, std::vector<Override> overrides) {
  // Reports a file that cannot be read, and what is no YAML.
  (void)YamlSource::from_file(path, asked, overrides);
  return {path, read_input(path, asked), std::move(overrides)};
}

Sweep::Sweep(std::string name, std::string text, std::vector<Override> overrides)
    : name_(std::move(name)),
      text_(std::move(text)),
      lines_(text_),
      overrides_(std::move(overrides)) {
  const YamlSource whole(name_, text_, overrides_);
  if (whole.root().is_null()) whole.root().fail("expected a scenario: this file is empty");
  YamlMap root(whole.root());
  const YamlValue section = root.require(kSection, "what to sweep: {grid: {key: [values]}}");
  const std::vector<std::string> lines = lines_of(text_);
  const std::vector<bool> of_sweep = lines_of_sweep(lines);
  if (std::ranges::count(of_sweep, true) == 0) {
    section.fail("'sweep:' must begin a line of its own");
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    scenario_text_ += (of_sweep[i] ? "" : lines[i]) + '\n';
  }
  axes_ = read_axes(section);
  if (const auto schedule = root.find("schedule"); schedule && schedule->is_list()) {
    schedules_ = static_cast<std::uint32_t>(schedule->list().size());
    if (schedules_ == 0) schedule->fail("expected at least one schedule");
  }
  check_points(section);
  for (const Axis& axis : axes_) {
    settings_ *= static_cast<std::uint32_t>(axis.length());
    weights_.emplace_back();
    for (size_t i = 0; i < axis.length(); ++i) weights_.back().push_back(weight_of(axis, i));
    for (const SweptKey& key : axis.keys) keys_.push_back(key.path);
  }
  if (!overrides_.empty()) text_ = text_of(whole);
  settle_overrides();
  surroundings_ = surroundings_of(whole, std::ranges::any_of(keys_, is_of_catalogue));
  // The order of keys numbers the points, and one_line() does not keep it.
  identity_ = fingerprint(
      fmt::format("{}\n{}{}", without_limit(whole), fmt::join(keys_, "\n"), surroundings_));
  check_base();
  check_settings();
}

// Before any point is made.
void Sweep::check_points(const YamlValue& section) const {
  double points = schedules_;
  for (const Axis& axis : axes_) points *= static_cast<double>(axis.length());
  const auto given = YamlMap(section).find("max_points");
  const long most = given ? given->integer(1, kMaxPoints) : kUsualPoints;
  if (points <= static_cast<double>(most)) return;
  section.fail(
      fmt::format("{} points, with about {} of results; max_points: {} is the most "
                  "{}",
                  counted(points), human(Bytes(kBytesOfPoint * points)), most,
                  given ? "that it allows" : "without that key"));
}

// Drops the command line's overrides of the section `sweep`, which was read with them, and refuses
// those of a swept key, which would be lost.
void Sweep::settle_overrides() {
  std::erase_if(overrides_, [](const Override& given) {
    return given.path == kSection || given.path.starts_with("sweep.");
  });
  for (const Override& given : overrides_) {
    for (const std::string& key : keys_) {
      if (given.path == key || given.path.starts_with(key + ".")) {
        throw InputError(given.where,
                         fmt::format("{} is swept: its values are those of '{}'", key, kSection));
      }
    }
  }
}

// Checks the values that no point uses: each may still be a mistake by itself.
void Sweep::check_base() const {
  const YamlSource base(name_, scenario_text_, overrides_);
  try {
    (void)read_scenario(base);
  } catch (const InputError& error) {
    const std::string& message = error.message();
    for (const std::string& key : keys_) {
      const bool about = message.starts_with(key + ": ") || message.starts_with(key + ".");
      if (about && message.find(" is missing") == std::string::npos) throw;
    }
  } catch (const InfeasibleError&) {  // understood
  }
}

void Sweep::check_settings() const {
  const std::uint32_t tried = std::min(settings_, kSample);
  const auto sample = [&](std::uint32_t i) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(i) * settings_ / tried);
  };
  // Nothing when a setting of the sample can be read; the first one's error otherwise.
  const auto error_of_all = [&](const auto& source_of) -> std::optional<InputError> {
    std::optional<InputError> first;
    for (std::uint32_t i = 0; i < tried; ++i) {
      try {
        (void)read_scenario(source_of(sample(i)));
        return std::nullopt;
      } catch (const InputError& error) {
        if (!first) first = error;
      } catch (const InfeasibleError&) {
        return std::nullopt;  // understood
      }
    }
    return first;
  };
  const auto together = [this](std::uint32_t setting) { return source(setting); };
  if (!error_of_all(together)) return;
  for (std::uint32_t s = 0; s < schedules_; ++s) {
    const auto alone = [this, s](std::uint32_t setting) { return source(setting, s); };
    if (const auto error = error_of_all(alone)) throw InputError(*error);
  }
}

std::vector<size_t> Sweep::indices(std::uint32_t setting) const {
  std::vector<size_t> at(axes_.size());
  size_t rest = setting;
  for (size_t a = axes_.size(); a-- > 0;) {
    at[a] = rest % axes_[a].length();
    rest /= axes_[a].length();
  }
  return at;
}

std::vector<std::string> Sweep::values(std::uint32_t setting) const {
  const std::vector<size_t> at = indices(setting);
  std::vector<std::string> values;
  for (size_t a = 0; a < axes_.size(); ++a) {
    for (const SweptKey& key : axes_[a].keys) values.push_back(key.values[at[a]].text);
  }
  return values;
}

double Sweep::weight(std::uint32_t setting) const {
  double weight = 1;
  size_t rest = setting;
  for (size_t a = axes_.size(); a-- > 0;) {
    weight *= weights_[a][rest % axes_[a].length()];
    rest /= axes_[a].length();
  }
  return weight;
}

YamlSource Sweep::source(std::uint32_t setting) const {
  const auto place_of = [this](const SweptKey& key, const SweptValue& value) -> Location {
    const auto line = static_cast<size_t>(value.line - 1);
    const bool here = key.where.file == name_ && line < lines_.size();
    return {key.where.file, value.line, value.column, here ? lines_[line] : key.where.text};
  };
  const std::vector<size_t> at = indices(setting);
  std::vector<Override> overrides = overrides_;
  for (size_t a = 0; a < axes_.size(); ++a) {
    for (const SweptKey& key : axes_[a].keys) {
      const SweptValue& value = key.values[at[a]];
      overrides.push_back({key.path, value.text, key.where, place_of(key, value)});
    }
  }
  return {name_, scenario_text_, std::move(overrides)};
}

YamlSource Sweep::source(std::uint32_t setting, std::uint32_t schedule) const {
  YamlSource all = source(setting);
  YamlMap root(all.root());
  const auto list = root.find("schedule");
  if (!list || !list->is_list()) return all;
  const YamlValue one = list->list().at(schedule);
  std::vector<Override> overrides = all.overrides();
  overrides.push_back({"schedule", one.one_line(), one.where(), one.where()});
  return {name_, scenario_text_, std::move(overrides)};
}

Fingerprint Sweep::key(const YamlSource& source, std::uint32_t schedule) const {
  const YamlValue root = source.root();
  std::vector<std::string> parts;
  for (const auto& [key, value] : root.entries()) {
    const bool one_of = key == "schedule" && value.is_list();
    parts.push_back(key + ": " + (one_of ? value.list().at(schedule) : value).one_line());
    std::replace(parts.back().begin(), parts.back().begin() + static_cast<long>(key.size()), '-',
                 '_');
  }
  std::ranges::sort(parts);
  return fingerprint(fmt::format("{}", fmt::join(parts, "\n")) + surroundings_);
}

std::string Sweep::schedule_name(const YamlSource& source, std::uint32_t schedule) {
  YamlMap root(source.root());
  const auto given = root.find("schedule");
  if (!given) return "";
  // Chosen by index: assigning to a node would change the document.
  const auto list = given->is_list() ? given->list() : std::vector<YamlValue>{*given};
  if (schedule >= list.size()) return "";
  const YamlValue& one = list[schedule];
  if (one.is_scalar()) return one.node().Scalar();
  if (!one.is_map()) return "";
  YamlMap map(one);
  for (const char* key : {"name", "csv", "file"}) {
    if (const auto name = map.find(key); name && name->is_scalar()) return name->node().Scalar();
  }
  return "";
}

}  // namespace pipesim
