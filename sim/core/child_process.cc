#include "sim/core/child_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "sim/core/error.h"

namespace pipesim {
namespace {

struct StartError {
  int error = 0;
  bool of_program = false;  // the program could not be executed
};

// Executes the program; returns the error if that fails. Restores SIGXFSZ, which this process
// ignores.
StartError become(char* const* arguments, const std::filesystem::path& folder, const char* log) {
  ::signal(SIGXFSZ, SIG_DFL);
  if (!folder.empty()) {
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || ::chdir(folder.c_str()) != 0) return {errno};
    const int printed = ::open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (printed < 0) return {errno};
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(printed, STDOUT_FILENO);
    ::dup2(printed, STDERR_FILENO);
  }
  ::execvp(arguments[0], arguments);
  return {errno, true};
}

// The error that the child wrote before it ended; 0 where it runs the program.
StartError error_from(int pipe) {
  StartError error;
  ssize_t got = 0;
  do {
    got = ::read(pipe, &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  ::close(pipe);
  return got == sizeof error ? error : StartError();
}

}  // namespace

void refuse_by_system(std::string_view what, int error) {
  constexpr std::array<std::pair<int, const char*>, 3> kLimits{
      {{EMFILE, " (ulimit -n)"}, {EAGAIN, " (ulimit -u)"}, {EFBIG, " (ulimit -f)"}}};
  const auto* const limit = std::ranges::find(kLimits, error, &std::pair<int, const char*>::first);
  throw InfeasibleError(fmt::format("{}: {}{}", what, std::strerror(error),
                                    limit == kLimits.end() ? "" : limit->second));
}

pid_t fork_child() {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);  // it died before the line above
  }
  return child;
}

int status_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string how_it_ended(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("ended with code {}", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  return fmt::format("was ended by signal {} ({})", signal, strsignal(signal));
}

bool is_own_fault(int status) {
  constexpr std::array kFaults{SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGSYS, SIGTRAP};
  return WIFSIGNALED(status) && std::ranges::find(kFaults, WTERMSIG(status)) != kFaults.end();
}

std::optional<pid_t> start_program(std::vector<std::string> arguments,
                                   const std::filesystem::path& folder, const std::string& log) {
  std::vector<char*> pointers;
  for (std::string& each : arguments) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  const std::string what = fmt::format("cannot start {}", arguments.front());
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) refuse_by_system(what, errno);
  const pid_t child = fork_child();
  const int refused = errno;
  if (child == 0) {
    const StartError error = become(pointers.data(), folder, log.c_str());
    (void)!::write(ends[1], &error, sizeof error);
    ::_exit(1);
  }
  ::close(ends[1]);
  const StartError error = child < 0 ? StartError{refused} : error_from(ends[0]);
  if (error.error == 0) return child;
  if (child < 0) {
    ::close(ends[0]);
  } else {
    status_of(child);
  }
  const bool none = error.error == ENOENT || error.error == EACCES || error.error == ENOTDIR;
  if (error.of_program && none) return std::nullopt;
  refuse_by_system(what, error.error);
}

}  // namespace pipesim
