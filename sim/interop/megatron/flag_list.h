// The flags of a case, and what they leave open.
#pragma once

#include <string>
#include <vector>

namespace pipesim {

struct MegatronFlags {
  std::string runtime;             // whose flags they are
  std::vector<std::string> flags;  // "--name value"
  std::vector<std::string> notes;  // what remains to be set, and what the runtime decides itself
  std::vector<std::string> differences = {};  // what of the case it has no flags for
};

}  // namespace pipesim
