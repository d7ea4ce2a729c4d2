// A case as the ready configuration of a training framework: a file to start a run with.
//
// Flags are those of sim/interop/megatron; Megatron-Bridge takes the same settings as fields of its
// sections (NVIDIA-NeMo/Megatron-Bridge, ConfigContainer), over a recipe that brings the model;
// torchtitan a job file (torchtitan.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/case/case.h"
#include "sim/pipeline/program.h"

namespace pipesim {

enum class Framework : std::uint8_t { kMegatron, kMegatronBridge, kZeroBubble, kTorchtitan };
inline constexpr std::array kFrameworks{Framework::kMegatron, Framework::kMegatronBridge,
                                        Framework::kZeroBubble, Framework::kTorchtitan};
inline constexpr std::array<std::string_view, kFrameworks.size()> kFrameworkNames{
    "megatron", "megatron-bridge", "zero-bubble", "torchtitan"};
constexpr std::string_view to_text(Framework framework) {
  return kFrameworkNames[static_cast<size_t>(framework)];
}

struct Configuration {
  std::string file;  // a name for it: "megatron.sh"
  std::string text;
};

// Throws InfeasibleError when the framework does not run the case, whose program this is, exactly
// as it stands: why.
Configuration configuration_of(Framework framework, const Case& made, const Program& program);

// All files that a person starts from, the configuration first. Beside torchtitan's job file, which
// its releases read, comes a script for its head. Where head cannot run it, the job file says why
// instead.
std::vector<Configuration> files_of(Framework framework, const Case& made, const Program& program);

// The frameworks that run the case exactly.
std::vector<Framework> frameworks_of(const Case& made, const Program& program);

}  // namespace pipesim
