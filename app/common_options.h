// Options that several commands have: one spelling, one type and one meaning each. The options
// -j,--threads (Parser::add_threads) and --catalog (main.cc) belong to them.
#pragma once

#include <string>
#include <vector>

#include "app/options/parser.h"

namespace pipesim {

// A scenario's file, and keys that replace the file's.
void add_scenario(Parser& parser, std::string& file, std::vector<std::string>& overrides);

// -o,--output: where a command's one product goes, `what` by default a file or standard output.
Option add_output(Parser& parser, std::string& path,
                  const std::string& what = "File to write ('-': standard output)");

// The answer once more, in a form for others; `what` is a noun, such as "the results".
Option add_json(Parser& parser, std::string& path, const std::string& what);
Option add_csv(Parser& parser, std::string& path, const std::string& what);
Option add_html(Parser& parser, std::string& path, const std::string& what);

}  // namespace pipesim
