// A sweep file as numbered points: every combination of its axes' values, with every schedule of
// its list.
//
// A setting is one combination, the first axis slowest; a point is a setting with one schedule:
// point = setting * schedules + schedule. A point's key is the fingerprint of its resolved
// scenario. That is the file without `sweep`, with the setting's values and the one schedule in
// place. It includes the contents of the files that it names and of the catalogue. Immutable; a
// setting costs one parse of the file's text without its section `sweep`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/read/yaml.h"
#include "sim/scenario/scenario.h"
#include "sim/sweep/axes.h"
#include "sim/sweep/fingerprint.h"

namespace pipesim {

class Sweep {
 public:
  // The most points of a sweep without the key max_points.
  static constexpr long kUsualPoints = 2'000'000;

  // InputError for a file that cannot be read, and for a senseless value of a swept key, even if
  // other values replace it. Also for a mistake in every setting: of up to 1000 settings, evenly
  // spread, none can be read, or none with a certain schedule. `asked` locates the request, for
  // when the file cannot be read.
  static Sweep read(const std::string& path, const Location& asked,
                    std::vector<Override> overrides = {});
  // Reads a text; messages call it `name`.
  Sweep(std::string name, std::string text, std::vector<Override> overrides = {});

  [[nodiscard]] std::uint32_t points() const { return settings_ * schedules_; }
  [[nodiscard]] std::uint32_t settings() const { return settings_; }
  [[nodiscard]] std::uint32_t schedules() const { return schedules_; }
  [[nodiscard]] std::uint32_t setting(std::uint32_t point) const { return point / schedules_; }
  [[nodiscard]] std::uint32_t schedule(std::uint32_t point) const { return point % schedules_; }

  // The swept keys, and their values in a setting, as the file writes them.
  [[nodiscard]] const std::vector<std::string>& keys() const { return keys_; }
  [[nodiscard]] std::vector<std::string> values(std::uint32_t setting) const;

  // How much work a point of the setting is next to others: by sizes that it sets.
  [[nodiscard]] double weight(std::uint32_t setting) const;

  // The file without `sweep`, as a setting resolves it.
  [[nodiscard]] YamlSource source(std::uint32_t setting) const;
  // The same with one schedule of the list.
  [[nodiscard]] YamlSource source(std::uint32_t setting, std::uint32_t schedule) const;

  // The key of a point, where `source` is that of its setting.
  [[nodiscard]] Fingerprint key(const YamlSource& source, std::uint32_t schedule) const;
  // How the file calls a schedule, for where none can be read.
  [[nodiscard]] static std::string schedule_name(const YamlSource& source, std::uint32_t schedule);

  // Fingerprint of the whole sweep: equal for files that say the same.
  [[nodiscard]] const Fingerprint& identity() const { return identity_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& text() const {
    return text_;
  }  // as it was read, or with overrides

 private:
  // Which value of each axis.
  [[nodiscard]] std::vector<size_t> indices(std::uint32_t setting) const;
  void check_points(const YamlValue& section) const;
  void settle_overrides();
  void check_base() const;
  void check_settings() const;

  std::string name_;
  std::string text_;
  std::string scenario_text_;  // the lines of `sweep` left empty
  SharedLines lines_;
  std::vector<Override> overrides_;
  std::vector<Axis> axes_;
  std::vector<std::string> keys_;
  std::vector<std::vector<double>> weights_;  // of every value of every axis
  std::uint32_t settings_ = 1;
  std::uint32_t schedules_ = 1;
  std::string surroundings_;
  Fingerprint identity_{};
};

}  // namespace pipesim
