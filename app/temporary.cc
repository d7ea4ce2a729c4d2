#include "app/temporary.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "sim/core/child_process.h"

namespace pipesim {
namespace {

namespace fs = std::filesystem;

constexpr std::array kEnding{SIGINT, SIGTERM, SIGHUP};
constexpr const char* kUnique = "XXXXXX";
constexpr const char* kUnfinished = ".unfinished";
constexpr const char* kFolder = "pipesim-unfinished-";

// Files that a signal removes. Changed only while signals are blocked.
std::vector<const char*>& doomed() {
  static std::vector<const char*> all;
  return all;
}
pid_t owner = 0;  // a child that inherits the handler removes nothing

extern "C" void remove_and_end(int signal) {
  const auto& all = doomed();
  for (size_t i = ::getpid() == owner ? all.size() : 0; i-- > 0;) {
    if (::unlink(all[i]) != 0) ::rmdir(all[i]);
  }
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

class SignalsWait {
 public:
  SignalsWait() {
    sigset_t ending;
    sigemptyset(&ending);
    for (const int signal : kEnding) sigaddset(&ending, signal);
    ::pthread_sigmask(SIG_BLOCK, &ending, &before_);
  }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;
  ~SignalsWait() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

// Where nobody has something else in mind: a command that catches them itself, or nohup.
void catch_signals() {
  owner = ::getpid();
  for (const int signal : kEnding) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_DFL) continue;
    action.sa_handler = remove_and_end;
    ::sigaction(signal, &action, nullptr);
  }
}

// The beginning of names beside `place`; the system's limit on names leaves room for the rest.
std::string stem_of(const fs::path& place) {
  constexpr size_t kLongest = 200;
  return place.filename().string().substr(0, kLongest) + ".";
}

// Marks what has just been made as in use. False where another command has taken it for abandoned
// in between and removed it.
bool keep(int file, const std::string& name) {
  (void)::flock(file, LOCK_EX);  // a file system may know no locks
  struct stat held {};
  struct stat there {};
  return ::fstat(file, &held) == 0 && ::stat(name.c_str(), &there) == 0 &&
         held.st_ino == there.st_ino && held.st_dev == there.st_dev;
}

std::string unique_beside(const fs::path& place, int& file) {
  const std::string form =
      (place.parent_path() / (stem_of(place) + kUnique + kUnfinished)).string();
  while (true) {
    std::string name = form;
    file = ::mkostemps(name.data(), static_cast<int>(std::string(kUnfinished).size()), O_CLOEXEC);
    if (file < 0) throw std::system_error(errno, std::generic_category());
    if (keep(file, name)) return name;
    ::close(file);
  }
}

std::string unique_folder(int& folder) {
  while (true) {
    std::string name = (fs::temp_directory_path() / kFolder).string() + kUnique;
    if (::mkdtemp(name.data()) == nullptr) {
      refuse_by_system(fmt::format("cannot make the folder '{}'", name), errno);
    }
    folder = ::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0 && keep(folder, name)) return name;
    if (folder >= 0) ::close(folder);
  }
}

// Removes the path if it is ours and unused, under a lock that keeps users out.
void remove_if_abandoned(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return;
  struct stat status {};
  std::error_code ignored;
  if (::fstat(file, &status) == 0 && status.st_uid == ::geteuid() &&
      ::flock(file, LOCK_EX | LOCK_NB) == 0) {
    fs::remove_all(path, ignored);
  }
  ::close(file);
}

void remove_abandoned(const fs::path& folder, const std::string& begin, const std::string& end) {
  const size_t length = begin.size() + std::string(kUnique).size() + end.size();
  std::error_code ignored;
  const fs::path where = folder.empty() ? "." : folder;
  for (const auto& entry : fs::directory_iterator(where, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.size() != length || !name.starts_with(begin) || !name.ends_with(end)) continue;
    remove_if_abandoned(entry.path());
  }
}

}  // namespace

RemovedAtEnd::RemovedAtEnd(std::string path) : path_(std::move(path)) {
  const SignalsWait wait;
  catch_signals();
  doomed().push_back(path_.c_str());
}

RemovedAtEnd::~RemovedAtEnd() {
  const SignalsWait wait;
  std::erase(doomed(), path_.c_str());
  std::error_code ignored;
  fs::remove(path_, ignored);
}

TemporaryFile::TemporaryFile(const fs::path& place) : removed_(unique_beside(place, file_)) {}

TemporaryFile::~TemporaryFile() { ::close(file_); }

TemporaryFolder::TemporaryFolder() : removed_(unique_folder(folder_)) {
  remove_abandoned(fs::path(removed_.path()).parent_path(), kFolder, "");
}

TemporaryFolder::~TemporaryFolder() { ::close(folder_); }

const std::string& TemporaryFolder::file(const std::string& name) {
  return files_.emplace_back(removed_.path() + "/" + name).path();
}

const std::string& TemporaryFolder::file(const std::string& name,
                                         const std::function<void(std::ostream&)>& write) {
  const std::string& path = file(name);
  std::ofstream out(path, std::ios::binary);
  write(out);
  out.close();
  if (!out) refuse_by_system(fmt::format("cannot write '{}'", path), errno);
  return path;
}

void remove_abandoned_beside(const fs::path& place) {
  remove_abandoned(place.parent_path(), stem_of(place), kUnfinished);
}

}  // namespace pipesim
