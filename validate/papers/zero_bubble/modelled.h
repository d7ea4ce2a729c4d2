// The second choice for a setting that the Zero Bubble paper's profiles do not have: what a stage
// costs by the catalogue's roofline model. Reported apart from cells with profiled times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/hardware.h"
#include "validate/papers/zero_bubble/profile.h"
#include "validate/papers/zero_bubble/row.h"

namespace pipesim::zero_bubble {

// Profiled or modelled times of a setting, or none.
struct SettingTimes {
  std::optional<Profile> profile;
  bool modelled = false;
  std::string note;  // why they are modelled, or missing
};

class Settings {
 public:
  // `root` and `profiles` must outlive it.
  Settings(YamlMap& root, const std::vector<Profile>& profiles, Hardware hardware);

  // InputError at the setting when nothing is known of its model.
  [[nodiscard]] SettingTimes find(const Setting& setting, ProfileSource source) const;

 private:
  [[nodiscard]] int micro_batch(const Setting& setting) const;

  const std::vector<Profile>* profiles_;
  std::vector<ModelRow> models_;
  std::vector<Row> same_memory_;  // of Table 6, which says the micro batches of ZB-V's settings
  Hardware hardware_;
};

}  // namespace pipesim::zero_bubble
