// Where a command line is wrong, and what was probably meant.
#pragma once

#include "app/command_line.h"
#include "app/options/parser.h"

namespace pipesim {

// InputError for arguments that a command's parser refused with this error.
[[noreturn]] void refuse_options(const CommandLine& line, const Parser& command,
                                 const OptionError& error);

}  // namespace pipesim
