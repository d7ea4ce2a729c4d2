#include "sim/interop/configurations/configuration.h"

#include <fmt/format.h>

#include "sim/core/error.h"
#include "sim/interop/configurations/bridge.h"
#include "sim/interop/configurations/torchtitan.h"
#include "sim/interop/configurations/torchtitan_head.h"
#include "sim/interop/megatron/flags.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

Runtime runtime_of(Framework framework) {
  return framework == Framework::kZeroBubble ? Runtime::kZeroBubbleFork : Runtime::kMegatron;
}

[[noreturn]] void refuse(Framework framework, std::string_view why) {
  throw InfeasibleError(fmt::format("{} does not run it: {}", to_text(framework), why));
}

}  // namespace

Configuration configuration_of(Framework framework, const Case& made, const Program& program) {
  if (framework == Framework::kTorchtitan) {
    if (const std::string why = why_not_torchtitan(made); !why.empty()) refuse(framework, why);
    return {"torchtitan.toml", torchtitan_text(made)};
  }
  const MegatronFlags flags = megatron_flags(made, program);
  if (flags.runtime != to_text(runtime_of(framework))) {
    refuse(framework, fmt::format("{} runs on {}", made.choice.name, flags.runtime));
  }
  if (!flags.differences.empty()) refuse(framework, flags.differences.front());
  if (framework == Framework::kMegatronBridge) {
    return {"megatron-bridge.yaml", bridge_text(flags)};
  }
  return {fmt::format("{}.sh", to_text(framework)), megatron_text(flags)};
}

std::vector<Configuration> files_of(Framework framework, const Case& made, const Program& program) {
  std::vector<Configuration> files{configuration_of(framework, made, program)};
  if (framework != Framework::kTorchtitan) return files;
  const std::string why = why_not_torchtitan_head(made);
  if (why.empty()) {
    files.push_back({"torchtitan-head.sh", torchtitan_head_script(made, files.front().text)});
  } else {
    files.front().text += fmt::format("# torchtitan at head does not run it: {}\n", why);
  }
  return files;
}

std::vector<Framework> frameworks_of(const Case& made, const Program& program) {
  std::vector<Framework> all;
  for (const Framework framework : kFrameworks) {
    try {
      (void)configuration_of(framework, made, program);
      all.push_back(framework);
    } catch (const InfeasibleError&) {
      // It is one of those that do not.
    }
  }
  return all;
}

}  // namespace pipesim
