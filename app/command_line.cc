#include "app/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string_view>
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
      found.column += static_cast<int>(at);
    }
  }
  return found;
}

std::vector<Override> CommandLine::overrides(const std::vector<std::string>& texts) const {
  std::vector<Override> overrides;
  for (const std::string& text : texts) overrides.push_back(parse_override(text, where(text)));
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
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  return ::isatty(1) == 1 && (none == nullptr || *none == '\0') && !dumb;
}

namespace {

[[noreturn]] void cannot_write(const std::string& path, const Location& where) {
  throw InputError(where, path == "-" ? std::string("cannot write to standard output")
                                      : fmt::format("cannot write '{}'", path));
}

// A file that grows beside its place; gone again unless it was put there.
class Unfinished {
 public:
  explicit Unfinished(const Output& output) : output_(output) {
    std::error_code error;
    // A link stays one: the file it leads to is replaced.
    place_ = fs::is_symlink(output.path, error) ? fs::weakly_canonical(output.path, error)
                                                : fs::path(output.path);
    beside_ = fmt::format("{}.{}.unfinished", place_.string(), ::getpid());
    std::ofstream file(beside_, std::ios::binary);
    try {
      if (file) output.write(file);
    } catch (...) {
      fs::remove(beside_, error);  // no destructor runs
      throw;
    }
    file.close();
    if (!file) {
      fs::remove(beside_, error);
      cannot_write(output.path, output.where);
    }
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() {
    std::error_code ignored;
    fs::remove(beside_, ignored);
  }

  void finish() {
    std::error_code error;
    fs::rename(beside_, place_, error);
    if (error) cannot_write(output_.path, output_.where);
  }

 private:
  const Output& output_;
  fs::path place_;
  fs::path beside_;
};

bool in_place(const std::string& path) {
  std::error_code error;
  return path != "-" && fs::exists(path, error) && !fs::is_regular_file(path, error) &&
         !fs::is_directory(path, error);
}

[[noreturn]] void two_on_standard_output(const Location& where) {
  throw InputError(where, "only one output can go to standard output");
}

}  // namespace

void make_folder(const std::string& path, const Location& where) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    throw InputError(where, fmt::format("cannot make the folder '{}': {}", path, error.message()));
}

void check_writable(const std::vector<std::string>& paths, const CommandLine& line) {
  if (std::ranges::count(paths, "-") > 1) two_on_standard_output(line.where("-"));
  for (const std::string& path : paths) {
    if (path.empty() || path == "-" || in_place(path)) continue;
    std::error_code error;
    const fs::path folder = fs::absolute(path, error).parent_path();
    const bool possible = !fs::is_directory(path, error) && fs::is_directory(folder, error) &&
                          ::access(folder.c_str(), W_OK) == 0;
    if (!possible) cannot_write(path, line.where(path));
  }
}

void write_outputs(const std::vector<Output>& outputs) {
  if (std::ranges::count(outputs, "-", &Output::path) > 1) {
    const auto last = std::ranges::find(outputs.rbegin(), outputs.rend(), "-", &Output::path);
    two_on_standard_output(last->where);
  }
  std::vector<std::unique_ptr<Unfinished>> files;
  for (const Output& output : outputs) {
    if (!output.path.empty() && output.path != "-" && !in_place(output.path)) {
      files.push_back(std::make_unique<Unfinished>(output));
    }
  }
  for (const auto& file : files) file->finish();
  for (const Output& output : outputs) {
    if (output.path == "-") {
      output.write(std::cout);
      if (!std::cout.flush()) cannot_write(output.path, output.where);
    } else if (in_place(output.path)) {
      std::ofstream stream(output.path, std::ios::binary);
      if (stream) output.write(stream);
      if (!stream.flush()) cannot_write(output.path, output.where);
    }
  }
}

}  // namespace pipesim
