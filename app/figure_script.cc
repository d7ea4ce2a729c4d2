#include "app/figure_script.h"

#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <utility>

#include "app/commands.h"
#include "app/temporary.h"
#include "sim/core/child_process.h"
#include "sim/core/error.h"
#include "sim/report/metrics/json.h"

namespace pipesim {
int draw_figure(std::vector<std::string> script) {
  constexpr int kNoMatplotlib = 77;  // plots/__main__.py
  std::vector<std::string> interpreters{"python3", "/usr/bin/python3"};
  if (const char* chosen = std::getenv("PIPESIM_PYTHON"); chosen != nullptr && *chosen != '\0') {
    interpreters = {chosen};
  }
  TemporaryFolder workplace;
  const std::string metrics =
      workplace.file("metrics.json", [](std::ostream& out) { out << metrics_json(); });
  // Behind -B, the folder and the kind.
  script.insert(script.begin() + 3, "--metrics=" + metrics);
  for (const std::string& interpreter : interpreters) {
    std::vector<std::string> command{interpreter};
    command.insert(command.end(), script.begin(), script.end());
    const auto child = start_program(std::move(command));
    if (!child) continue;
    const int status = status_of(*child);
    const int code = WIFSIGNALED(status) ? -1 : WEXITSTATUS(status);
    if (code == kDone || code == kBadInput) return code;
    if (code == kNoMatplotlib) continue;
    throw InfeasibleError(fmt::format("no figure: {} {}; what it said stands above", interpreter,
                                      how_it_ended(status)));
  }
  throw InfeasibleError(
      fmt::format("no figure with {}: it needs Python 3 with matplotlib; install it (Debian: "
                  "apt-get install python3-matplotlib), "
                  "or name an interpreter that has it in PIPESIM_PYTHON",
                  fmt::join(interpreters, " or ")));
}

}  // namespace pipesim
