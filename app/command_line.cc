#include "app/command_line.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <unistd.h>

namespace pipesim {

CommandLine::CommandLine(int argc, const char* const* argv) : text_("pipesim") {
  for (int i = 1; i < argc; ++i) {
    arguments_.emplace_back(argv[i]);
    text_ += ' ';
    columns_.push_back(static_cast<int>(text_.size()) + 1);
    text_ += arguments_.back();
  }
}

Location CommandLine::where(size_t index) const {
  const int column = index < columns_.size() ? columns_[index] : static_cast<int>(text_.size()) + 1;
  return {"command line", 1, column, text_};
}

Location CommandLine::where(const std::string& argument) const {
  const auto found = std::ranges::find(arguments_, argument);
  return where(static_cast<size_t>(found - arguments_.begin()));
}

std::vector<Override> CommandLine::overrides(const std::vector<std::string>& texts) const {
  std::vector<Override> overrides;
  for (const std::string& text : texts) overrides.push_back(parse_override(text, where(text)));
  return overrides;
}

void write_output(const std::string& path, const Location& where,
                  const std::function<void(std::ostream&)>& write) {
  if (path == "-") {
    write(std::cout);
    std::cout.flush();
    if (!std::cout) throw InputError(where, "cannot write to standard output");
    return;
  }
  const std::string unfinished = fmt::format("{}.{}.unfinished", path, ::getpid());
  std::ofstream file(unfinished, std::ios::binary);
  if (file) write(file);
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(unfinished, path, error);
  if (!file || error) {
    std::error_code ignored;
    std::filesystem::remove(unfinished, ignored);
    throw InputError(where, fmt::format("cannot write '{}'", path));
  }
}

}  // namespace pipesim
