// Files installed beside the program, made from the descriptions of its commands: a man page, and
// completion for shells. Pure functions of the parser; nothing is parsed.
#pragma once

#include <string>

#include "app/options/parser.h"

namespace pipesim {

std::string man_page(const Parser& program, const std::string& version);  // roff, section 1

// Scripts that complete commands, options, the values of options that know theirs, and files.
std::string bash_completion(const Parser& program);
std::string zsh_completion(const Parser& program);
std::string fish_completion(const Parser& program);

}  // namespace pipesim
