#include "validate/papers/zero_bubble/modelled.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "sim/core/error.h"
#include "validate/papers/timed_run.h"

namespace pipesim::zero_bubble {
namespace {

constexpr double kMicro = 1e6;

// Means over the stages of a run of ZB-2p, whose times the paper profiled.
Profile modelled(const Setting& setting, int micro_batch, const Hardware& hardware) {
  const Run of = run_of(
      {setting.model, "ZB-2p", setting.devices, setting.microbatches, micro_batch, setting.where});
  TimedRun run;
  run.model = of.model;
  run.model.tied_embeddings = false;
  run.setting = {of.context, of.state, {}, false};
  run.hardware = hardware;
  run.split = of.split;
  run.schedule = of.schedule;
  run.devices = setting.devices;
  run.microbatches = setting.microbatches;
  const StageCost stage = mean_stage(run);
  Profile profile;
  profile.model = setting.model;
  profile.devices = setting.devices;
  profile.microbatches = setting.microbatches;
  profile.layers = of.model.num_layers + 2;
  profile.hidden = of.model.hidden_size;
  profile.heads = of.model.num_attention_heads;
  profile.forward_us = kMicro * stage.forward.value();
  profile.backward_us = kMicro * stage.backward_input.value();
  profile.weight_us = kMicro * stage.backward_weight.value();
  profile.transfer_us = kMicro * stage.transfer.value();
  return profile;
}

}  // namespace

Settings::Settings(YamlMap& root, const std::vector<Profile>& profiles, Hardware hardware)
    : profiles_(&profiles), models_(read_models(root)), hardware_(std::move(hardware)) {
  const auto rows = root.find("table6_measured_same_memory");
  if (!rows) return;
  for (const YamlValue& each : rows->list()) {
    YamlMap map(each);
    same_memory_.push_back(read_row(each, map, models_));
  }
}

int Settings::micro_batch(const Setting& setting) const {
  if (setting.micro_batch > 0) return setting.micro_batch;
  for (const Row& row : same_memory_) {
    if (row.model == setting.model && row.devices == setting.devices) return row.micro_batch;
  }
  const auto found = std::ranges::find(models_, setting.model, &ModelRow::model);
  return found == models_.end() ? 0 : found->micro_batch;
}

SettingTimes Settings::find(const Setting& setting, ProfileSource source) const {
  if (const Profile* profile = find_profile(*profiles_, setting, source)) {
    return {*profile, false, {}};
  }
  check_model(setting.model, setting.where);
  const std::string lacks = fmt::format(
      "neither table9_profiled_iclr_ZB2p nor profiled_arxiv_ZBV_settings has a row with model {}, "
      "p {}, n {}",
      setting.model, setting.devices, setting.microbatches);
  const int batch = micro_batch(setting);
  if (batch == 0) {
    return {std::nullopt, true,
            "not modelled: " + lacks + ", nor table3_models the model's micro batch"};
  }
  try {
    return {modelled(setting, batch, hardware_), true,
            fmt::format("{}: times by the catalogue's roofline, b={}", lacks, batch)};
  } catch (const InfeasibleError& error) {
    return {std::nullopt, true, fmt::format("not modelled: {}; {}", lacks, error.what())};
  }
}

}  // namespace pipesim::zero_bubble
