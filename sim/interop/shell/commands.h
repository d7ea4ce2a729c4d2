// Kinds of commands, told by their words. Private to this folder.
#pragma once

#include <string>

#include "sim/interop/shell/state.h"

namespace pipesim {

// "run.sh" of "scripts/run.sh".
std::string last_part_of(const std::string& path);

// bash and its kin, which run a text.
bool is_shell(const std::string& command);

// [[ ]], [ ] or `test`.
bool is_test(const ShellNode& node);

// True if the command's success is a question about the machine, not a step that should succeed.
bool asks(const ShellNode& node);

// The words from `first` on, with spaces between them.
std::string text_behind(const ShellItems& words, size_t first);

// The text behind `bash -c`, or a command line in one word.
bool is_script(const ShellItems& words, size_t at);

}  // namespace pipesim
