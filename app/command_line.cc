#include "app/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <sstream>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

namespace pipesim {

CommandLine::CommandLine(int argc, const char* const* argv) {
  std::string text = "pipesim";
  for (int i = 1; i < argc; ++i) {
    arguments_.emplace_back(argv[i]);
    text += ' ';
    columns_.push_back(static_cast<int>(text.size()) + 1);
    text += arguments_.back();
  }
  columns_.push_back(static_cast<int>(text.size()) + 1);
  longer_.assign(arguments_.size(), 0);
  text_ = std::move(text);
}

CommandLine::CommandLine(const CommandLine& typed, const std::vector<MeantWord>& meant)
    : text_(typed.text_) {
  for (const MeantWord& word : meant) {
    arguments_.push_back(word.text);
    columns_.push_back(typed.columns_[word.typed] + word.skipped);
    longer_.push_back(word.longer);
  }
  columns_.push_back(typed.columns_.back());
}

Location CommandLine::where(size_t index) const {
  return {"command line", 1, columns_[std::min(index, arguments_.size())], text_};
}

Location CommandLine::where(const std::string& argument) const {
  const auto found = std::ranges::find_if(arguments_, [&argument](const std::string& each) {
    return each == argument || each.ends_with("=" + argument);
  });
  return where(static_cast<size_t>(found - arguments_.begin()));
}

Location CommandLine::where(const std::string& option, const std::string& value) const {
  Location found = where(option);
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const bool joined = arguments_[i].starts_with(option + "=");
    if (!joined && (i == 0 || arguments_[i - 1] != option)) continue;
    size_t at = joined ? option.size() + 1 : 0;
    std::istringstream list(arguments_[i].substr(at));
    for (std::string each; std::getline(list, each, ','); at += each.size() + 1) {
      if (each != value) continue;
      found = where(i);
      found.column += static_cast<int>(at) - (joined ? longer_[i] : 0);
    }
  }
  return found;
}

Location CommandLine::of_option(const std::string& value) const {
  for (size_t i = arguments_.size(); i-- > 0;) {
    const bool joined = arguments_[i].starts_with('-') && arguments_[i].ends_with("=" + value);
    const bool apart = i > 0 && arguments_[i] == value && arguments_[i - 1].starts_with('-');
    if (joined || apart) return where(i);
  }
  return where(value);
}

std::vector<Override> CommandLine::overrides(const std::vector<std::string>& texts) const {
  std::vector<Override> overrides;
  for (const std::string& text : texts) {
    overrides.push_back(parse_override(text, where(text)));
    const auto found = std::ranges::find(arguments_, text);
    if (found == arguments_.end()) continue;
    const auto& place = overrides.back().value_where;
    const int longer = longer_[static_cast<size_t>(found - arguments_.begin())];
    if (place) overrides.back().value_where->column -= longer;
  }
  return overrides;
}

namespace fs = std::filesystem;

std::vector<std::string> one_path_each(const std::string& path,
                                       const std::vector<std::string>& schedules) {
  if (schedules.size() == 1) return {path};
  const fs::path base(path);
  std::vector<std::string> paths;
  for (const std::string& schedule : schedules) {
    const std::string name = fs::path(schedule).stem().string();
    std::string free;
    for (int number = 1; free.empty() || std::ranges::find(paths, free) != paths.end(); ++number) {
      const std::string suffix = number == 1 ? "" : fmt::format("-{}", number);
      const std::string file =
          fmt::format("{}.{}{}{}", base.stem().string(), name, suffix, base.extension().string());
      free = (base.parent_path() / file).string();
    }
    paths.push_back(free);
  }
  return paths;
}

bool coloured(const std::string& when) {
  if (when != "auto") return when == "always";
  const char* none = std::getenv("NO_COLOR");
  return is_terminal(1) && (none == nullptr || *none == '\0');
}

bool is_terminal(int stream) {
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  return ::isatty(stream) == 1 && !dumb;
}

std::optional<size_t> terminal_width(int stream) {
  winsize size{};
  if (::ioctl(stream, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

}  // namespace pipesim
