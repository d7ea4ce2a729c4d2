// The files that commands write: all or none, never in place of an input or of each other.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "app/command_line.h"

namespace pipesim {

// An output of a command. An empty path is no output, "-" is standard output.
struct Output {
  std::string path;
  Location where;  // of the request
  std::function<void(std::ostream&)> write;
};

// Makes the folder and those above it. Throws InputError, located at the request.
void make_folder(const std::string& path, const Location& where);

// Call before long work. InputError, located at the request, where a file cannot be made or
// replaced at one of `paths`, one is a file that has been read, or two are one. Checks all that can
// be asked without writing; an empty path and "-" are no files.
void check_writable(const std::vector<std::string>& paths, const CommandLine& line);

// The same of paths that do not stand on the command line, such as files in a folder asked for at
// `where`.
void check_apart(const std::vector<std::pair<std::string, Location>>& paths);

// Writes all or nothing: every file to a neighbour first, and into place only when all are complete
// and on the disk. A replaced file keeps its mode, and a link its target. Pipes and devices are
// written in place, before. InputError, located at the request, for a path that cannot be written.
// InfeasibleError with the reason, and the files written so far, where the system fails (a full
// disk, no means to open files).
void write_outputs(const std::vector<Output>& outputs);

// While it lives, std::cout knows why standard output takes nothing more.
class StandardOutput {
 public:
  StandardOutput();
  StandardOutput(const StandardOutput&) = delete;
  StandardOutput& operator=(const StandardOutput&) = delete;
  ~StandardOutput();
  // InfeasibleError where not all that was printed has been taken.
  static void finish();

 private:
  std::unique_ptr<std::streambuf> buffer_;
  std::streambuf* before_;
};

}  // namespace pipesim
