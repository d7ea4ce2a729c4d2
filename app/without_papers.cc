// The commands that compare with papers, in a build without their tables (PIPESIM_PAPERS).
#include "app/commands.h"

namespace pipesim {
namespace {

Subcommand missing(Parser& program, const std::string& name, const std::string& help) {
  Parser& parser = program.add_command(name, help);
  parser.take_any();
  return {
      &parser, [name](const CommandLine&) -> int {
        throw InfeasibleError(name + " is not in this build: configure with -DPIPESIM_PAPERS=ON");
      }};
}

}  // namespace

Subcommand add_validate(Parser& program) {
  return missing(program, "validate", "Compare with published figures (not in this build)");
}

Subcommand add_reproduce(Parser& program) {
  return missing(program, "reproduce", "Draw the papers' figures (not in this build)");
}

}  // namespace pipesim
