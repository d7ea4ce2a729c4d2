// Files and folders that must not outlast the command that made them. They go at its end, or when
// SIGINT, SIGTERM or SIGHUP ends it; those of a killed command go with the next one.
//
// Each is locked (flock) while its maker lives, so that nobody takes it for abandoned.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <list>
#include <string>

namespace pipesim {

// Removes the file, or the empty folder, at a path when a signal ends the program or it goes out of
// scope.
class RemovedAtEnd {
 public:
  explicit RemovedAtEnd(std::string path);
  RemovedAtEnd(const RemovedAtEnd&) = delete;
  RemovedAtEnd& operator=(const RemovedAtEnd&) = delete;
  ~RemovedAtEnd();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// An empty file beside `place` with a name of its own, open for writing.
class TemporaryFile {
 public:
  // std::system_error where it cannot be made.
  explicit TemporaryFile(const std::filesystem::path& place);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  [[nodiscard]] int descriptor() const { return file_; }
  [[nodiscard]] const std::string& path() const { return removed_.path(); }

 private:
  int file_ = -1;
  RemovedAtEnd removed_;
};

// A folder in the system's place for them, for files of given names.
class TemporaryFolder {
 public:
  // InfeasibleError where it cannot be made.
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  // The path of a file that may be made in it.
  const std::string& file(const std::string& name);
  // Writes a file and returns its path. InfeasibleError where the system does not take all of it.
  const std::string& file(const std::string& name, const std::function<void(std::ostream&)>& write);

 private:
  int folder_ = -1;
  RemovedAtEnd removed_;
  std::list<RemovedAtEnd> files_;
};

// Removes what commands that live no more have left beside `place`.
void remove_abandoned_beside(const std::filesystem::path& place);

}  // namespace pipesim
