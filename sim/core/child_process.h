// Processes that this one starts. Each dies with the thread that started it, whatever ends that
// (PR_SET_PDEATHSIG of Linux), so that no command leaves work behind.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace pipesim {

// Throws InfeasibleError: `what`, the system's reason for `error`, and the limit that it names.
[[noreturn]] void refuse_by_system(std::string_view what, int error);

// Like fork(): 0 in the child, -1 with errno where the system makes no process.
pid_t fork_child();

// Waits until a child has ended: its status, as waitpid() has it.
int status_of(pid_t child);

// "was ended by signal 9 (Killed)" or "ended with code 3".
std::string how_it_ended(int status);

// True where the process was at fault itself, as with a bad access; false where somebody ended it.
bool is_own_fault(int status);

// Starts a program found by PATH. With `folder`, it runs there with empty input and its output in
// `log`. Returns nothing if the program does not exist. InfeasibleError where the system starts
// none.
std::optional<pid_t> start_program(std::vector<std::string> arguments,
                                   const std::filesystem::path& folder = {},
                                   const std::string& log = "");

}  // namespace pipesim
