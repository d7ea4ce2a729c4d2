#include "validate/papers/zero_bubble/profile.h"

#include <algorithm>
#include <fmt/format.h>

#include "validate/papers/paper_keys.h"

namespace pipesim::zero_bubble {
namespace {

// Every model of the paper has this sequence length (Table 3).
constexpr double kSequence = 1024;

void check_passes(const YamlValue& row, int devices, int microbatches) {
  constexpr int kMostChunks = 2;
  const std::string doubt = doubt_of_passes(devices, kMostChunks, microbatches);
  if (!doubt.empty()) row.fail(doubt);
}

std::vector<Profile> read_table(YamlMap& root, const std::string& key, double chunks_per_stage) {
  std::vector<Profile> profiles;
  const auto rows = root.find(key);
  if (!rows) return profiles;
  for (const YamlValue& row : rows->list()) {
    YamlMap map(row);
    const auto number = [&map](const char* name) {
      return map.require(name, "a positive number").number(1e-9, 1e12);
    };
    Profile profile;
    profile.model = map.require("model", "the model's name").text();
    profile.devices = static_cast<int>(map.require("p", "devices").integer(1, 1 << 16));
    profile.microbatches = static_cast<int>(map.require("n", "microbatches").integer(1, 1 << 20));
    check_passes(row, profile.devices, profile.microbatches);
    profile.layers =
        static_cast<int>(map.require("l", "layers, two virtual ones included").integer(1, 1 << 16));
    profile.hidden = number("h");
    profile.heads = number("a");
    profile.forward_us = chunks_per_stage * number("f_us");
    profile.backward_us = chunks_per_stage * number("b_us");
    profile.weight_us = chunks_per_stage * number("w_us");
    profile.transfer_us = map.require("c_us", "a number").number(0, 1e12);
    profile.of_chunks = chunks_per_stage > 1;
    finish_row(map);
    profiles.push_back(profile);
  }
  return profiles;
}

// The paper's interleaving has one layer per chunk.
int chunks_for(const Schedule& schedule, const Profile& profile) {
  if (schedule.max_chunks == schedule.min_chunks) return schedule.default_chunks;
  return std::max(schedule.min_chunks, profile.layers / profile.devices);
}

}  // namespace

std::string Setting::text() const {
  return fmt::format("{} p={} m={}", model, devices, microbatches);
}

Setting read_setting(YamlMap& map) {
  const YamlValue model = map.require("model", "the model's name");
  Setting setting{model.text(), static_cast<int>(map.require("p", "devices").integer(1, 1 << 16)),
                  static_cast<int>(map.require("m", "microbatches").integer(1, 1 << 20)), 0,
                  model.where()};
  if (const auto batch = map.find("b")) {
    setting.micro_batch = static_cast<int>(batch->integer(1, 1 << 20));
  }
  check_passes(map.value(), setting.devices, setting.microbatches);
  return setting;
}

const Profile* find_profile(const std::vector<Profile>& profiles, const Setting& setting,
                            ProfileSource source) {
  const Profile* found = nullptr;
  for (const Profile& each : profiles) {
    if (each.model != setting.model || each.devices != setting.devices ||
        each.microbatches != setting.microbatches) {
      continue;
    }
    if (each.of_chunks == (source == ProfileSource::kChunks)) return &each;
    if (found == nullptr) found = &each;
  }
  return found;
}

double Profile::activation() const { return 34 * hidden + 5 * heads * kSequence; }

std::vector<Profile> read_profiles(YamlMap& root) {
  auto profiles = read_table(root, "table9_profiled_iclr_ZB2p", 1);
  // These are per chunk of two (the note in the file).
  const auto halves = read_table(root, "profiled_arxiv_ZBV_settings", 2);
  profiles.insert(profiles.end(), halves.begin(), halves.end());
  return profiles;
}

Problem make_problem(const Schedule& schedule, const Profile& profile, bool as_in_paper) {
  Problem problem;
  const int chunks = chunks_for(schedule, profile);
  problem.shape = {profile.devices, chunks, profile.microbatches, 1};
  problem.placement = schedule.place(profile.devices, chunks);
  StageCost cost;
  cost.forward = Seconds(profile.forward_us * 1e-6) / chunks;
  cost.backward_input = Seconds(profile.backward_us * 1e-6) / chunks;
  cost.backward_weight = Seconds(profile.weight_us * 1e-6) / chunks;
  cost.transfer = Seconds(profile.transfer_us * 1e-6);
  cost.activation = Bytes(profile.activation()) / chunks;
  cost.weight_stash = Bytes(profile.weight_stash()) / chunks;
  problem.stages.assign(problem.placement.virtual_stages(), cost);
  for (int vs = 0; vs + 1 < problem.placement.virtual_stages(); ++vs) {
    if (problem.placement.device(vs) == problem.placement.device(vs + 1)) {
      problem.stages[vs].transfer = Seconds(0);
    }
  }
  if (as_in_paper) problem.options.emplace("zero_bubble_table5_dependencies", true);
  return problem;
}

}  // namespace pipesim::zero_bubble
