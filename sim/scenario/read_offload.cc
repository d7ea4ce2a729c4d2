#include "sim/scenario/read_offload.h"

#include <fmt/format.h>

#include "sim/pipeline/schedule.h"

namespace pipesim {
std::optional<Offload> read_offload(const YamlValue& value) {
  Offload offload;
  offload.where = value.where();
  if (!value.is_map()) {
    if (!value.flag()) return std::nullopt;
    return offload;
  }
  YamlMap map(value);
  if (const auto chunks = map.find("chunks")) {
    offload.chunks = static_cast<int>(chunks->integer(1, 1024));
  }
  if (const auto prefetch = map.find("prefetch")) offload.prefetch = prefetch->number(0, 1e6);
  if (const auto devices = map.find("devices_per_link")) {
    offload.devices_per_link = static_cast<int>(devices->integer(1, 1024));
  }
  map.finish();
  return offload;
}

void check_offload(const Scenario& scenario) {
  if (!scenario.offload || !scenario.offload->chunks) return;
  const Offload& offload = *scenario.offload;
  for (const ScheduleChoice& choice : scenario.schedules) {
    const Schedule* schedule = choice.program ? nullptr : find_schedule(choice.name);
    if (schedule != nullptr && schedule->offloads) {
      throw InputError(offload.where,
                       fmt::format("{} offloads by itself: its option offload_chunks says how many "
                                   "chunks",
                                   choice.name));
    }
    if (*offload.chunks <= chunks_of(choice)) continue;
    throw InputError(offload.where,
                     fmt::format("{} chunks are to offload, but {} has {} per device",
                                 *offload.chunks, choice.name, chunks_of(choice)));
  }
}

void read_copy_cost(YamlMap& map, const std::function<std::vector<Seconds>(const YamlValue&)>& read,
                    GivenCost& cost) {
  const auto out = map.find("copy_out");
  const auto in = map.find("copy_in");
  if (out.has_value() != in.has_value()) {
    (out ? *out : *in).fail("needs both 'copy_out' and 'copy_in'");
  }
  if (out) {
    cost.copy_out = read(*out);
    cost.copy_in = read(*in);
  }
  if (const auto factor = map.find("copy_solo_factor")) {
    if (!out) factor->fail("is of 'copy_out' and 'copy_in', which are not given");
    cost.copy_solo_factor = factor->number(1e-6, 1);
  }
}

}  // namespace pipesim
