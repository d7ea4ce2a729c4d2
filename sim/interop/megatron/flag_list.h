// The flags of a case, and what they leave open.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipesim {

// A launcher starts so many processes, on so many GPUs of a node.
struct LaunchRanks {
  int gpus = 1;
  int gpus_per_node = 8;
  int data = 1;
  std::string cluster = {};  // its name; empty: not known
};

struct MegatronFlags {
  std::string runtime;             // whose flags they are
  std::vector<std::string> flags;  // "--name value"
  std::vector<std::string> notes;  // what remains to be set, and what the runtime decides itself
  std::vector<std::string> differences = {};  // what of the case it has no flags for
  // Parts of the case that it has no flags for, and runs nearly as well without.
  std::vector<std::string> left_out = {};
  std::string model = {};  // its name; empty: the flags are those of a schedule alone
  LaunchRanks ranks = {};
};

// True where a flag stands there: "--name" with any value, "--name value" with that one.
bool has_flag(const std::vector<std::string>& flags, std::string_view asked);

}  // namespace pipesim
