// The command line as it was meant: short ways of saying what has a longer name.
#pragma once

#include <string>
#include <vector>

#include "app/command_line.h"
#include "app/options/parser.h"

namespace pipesim {

// The arguments of a line whose command is known, in which
//
// - the beginning of one option's name is that option: `--seq` is `--seq-length`;
// - `--tp 4` is `tp=4`, for commands that take settings and have no such option;
// - words behind a scenario that are no settings are its schedules: `run FILE 1f1b mine.csv` is
//   `run FILE schedule=[1f1b,{csv: mine.csv}]`, and of a command with `--schedules` their families.
std::vector<MeantWord> meant_words(const CommandLine& line, const Parser& program);

}  // namespace pipesim
