#include "app/figure_script.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <optional>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/temporary.h"
#include "sim/core/error.h"
#include "sim/report/metrics/json.h"

namespace pipesim {
namespace {

// How the program ended; nothing when there is no such program.
std::optional<int> status_of(std::vector<std::string> command) {
  std::vector<char*> arguments;
  for (std::string& each : command) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (::posix_spawnp(&child, arguments.front(), nullptr, nullptr, arguments.data(), environ) != 0) {
    return std::nullopt;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

int draw_figure(std::vector<std::string> script) {
  constexpr int kNoMatplotlib = 77;  // plots/__main__.py
  std::vector<std::string> interpreters{"python3", "/usr/bin/python3"};
  if (const char* chosen = std::getenv("PIPESIM_PYTHON"); chosen != nullptr && *chosen != '\0') {
    interpreters = {chosen};
  }
  TemporaryFolder workplace;
  const std::string metrics = workplace.file("metrics.json");
  std::ofstream(metrics, std::ios::binary) << metrics_json();
  // Behind -B, the folder and the kind.
  script.insert(script.begin() + 3, "--metrics=" + metrics);
  for (const std::string& interpreter : interpreters) {
    std::vector<std::string> command{interpreter};
    command.insert(command.end(), script.begin(), script.end());
    const auto status = status_of(std::move(command));
    if (!status) continue;
    if (WIFSIGNALED(*status)) {
      throw InfeasibleError(fmt::format("no figure: {} was ended by signal {} ({})", interpreter,
                                        WTERMSIG(*status), strsignal(WTERMSIG(*status))));
    }
    const int code = WEXITSTATUS(*status);
    if (code == kDone || code == kBadInput) return code;
    if (code == kNoMatplotlib) continue;
    throw InfeasibleError(fmt::format("no figure: {} ended with code {}; what it said stands above",
                                      interpreter, code));
  }
  throw InfeasibleError(
      fmt::format("no figure with {}: it needs Python 3 with matplotlib; install it (Debian: "
                  "apt-get install python3-matplotlib), "
                  "or name an interpreter that has it in PIPESIM_PYTHON",
                  fmt::join(interpreters, " or ")));
}

}  // namespace pipesim
