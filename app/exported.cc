#include "app/exported.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <sstream>
#include <vector>

#include "sim/case/program.h"
#include "sim/core/text.h"
#include "sim/interop/configurations/configuration.h"
#include "sim/interop/megatron/flags.h"
#include "sim/interop/torch/csv_writer.h"
#include "sim/prepare/microbatch_order.h"
#include "sim/prepare/prepare.h"

namespace pipesim {
namespace {

// Comments for what rows do not say.
std::string comments_on(const Case& made) {
  std::string text;
  const auto beside = [&text](const std::string& key) {
    text += fmt::format("# beside `csv` in a scenario: `{}`\n", key);
  };
  const std::vector<long>& slices = made.choice.slices;
  if (std::ranges::adjacent_find(slices, std::ranges::not_equal_to()) != slices.end()) {
    beside(fmt::format("splits: [{}]", fmt::join(slices, ", ")));
  }
  if (made.choice.recompute &&
      made.choice.recompute->granularity == RecomputeGranularity::kSelective) {
    beside("recompute: selective");
  }
  if (!made.microbatch_order.empty()) {
    text += fmt::format("# of {}\n", order_text(made.microbatch_order));
  }
  if (const auto& offload = made.choice.offload) {
    if (offload->ratio < 1) beside(fmt::format("offload: {{ratio: {}}}", offload->ratio));
    if (offload->bandwidth == CopyBandwidth::kAlone) beside("offload: {bandwidth: alone}");
  }
  if (made.sync == OptimizerSync::kAsynchronous) {
    text += "# of optimizer.sync: asynchronous, the microbatches of one iteration\n";
  }
  return text;
}

}  // namespace

void check_exportable(const std::string& format, const Scenario& scenario) {
  const std::vector<std::string> formats(kExportFormats.begin(), kExportFormats.end());
  if (std::ranges::find(formats, format) == formats.end()) {
    throw InputError({"format", 1, 1, format},
                     fmt::format("unknown format '{}'{}", format, suggestion(format, formats)));
  }
  if (scenario.schedules.size() != 1) {
    throw InputError({scenario.file, 0, 0, ""},
                     fmt::format("export takes one schedule, and this scenario has {}: choose with "
                                 "schedule=NAME",
                                 scenario.schedules.size()));
  }
}

std::string exported(const std::string& format, const Scenario& scenario) {
  const Case made = prepare_first(scenario);
  const auto program = make_program(made);
  if (format == "megatron") return megatron_text(megatron_flags(made, *program));
  if (format == "megatron-bridge") {
    return configuration_of(Framework::kMegatronBridge, made, *program).text;
  }
  if (format == "torchtitan") {
    return configuration_of(Framework::kTorchtitan, made, *program).text;
  }
  std::ostringstream text;
  if (format == "csv") {
    text << comments_on(made);
    write_csv(text, *program, made.choice.name);
  } else {
    write_torch_csv(text, *program, made.choice.name);
  }
  return text.str();
}

}  // namespace pipesim
