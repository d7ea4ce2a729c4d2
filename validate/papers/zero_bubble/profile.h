// The settings that the Zero Bubble paper profiled (Table 9, and that of ZB-V): what a stage costs
// and keeps.
#pragma once

#include <string>
#include <vector>

#include "sim/pipeline/problem.h"
#include "sim/planning/schedule.h"
#include "sim/read/yaml.h"

namespace pipesim::zero_bubble {

struct Profile {
  std::string model;
  int devices = 0;
  int microbatches = 0;
  int layers = 0;
  double hidden = 0, heads = 0;
  double forward_us = 0, backward_us = 0, weight_us = 0, transfer_us = 0;  // of a whole stage
  bool of_chunks = false;  // profiled with ZB-V, of its chunks

  // Bytes that a transformer layer keeps of a token until B, and until W: 34h + 5as and 32h (the
  // paper's Table 1), up to a factor that limits in multiples of it do not see.
  [[nodiscard]] double activation() const;
  [[nodiscard]] double weight_stash() const { return 32 * hidden; }
};

// A row of a table.
struct Setting {
  std::string model;
  int devices = 0;
  int microbatches = 0;
  int micro_batch = 0;  // 0: the row does not say
  Location where;       // of the model's name
  [[nodiscard]] std::string text() const;
};

Setting read_setting(YamlMap& map);

// Whose profiles a table rests on: Table 9's of ZB-2p, or those of ZB-V's chunks, as Table 8 and
// Figure 9 do.
enum class ProfileSource { kTable9, kChunks };

// Where both have the setting, of this source. Null when it was not profiled.
const Profile* find_profile(const std::vector<Profile>& profiles, const Setting& setting,
                            ProfileSource source = ProfileSource::kTable9);

// Both tables of a validation's data; `root` must have been opened for reading keys.
std::vector<Profile> read_profiles(YamlMap& root);

// Equal stages; chunks share a stage evenly.
Problem make_problem(const Schedule& schedule, const Profile& profile, bool as_in_paper);

}  // namespace pipesim::zero_bubble
