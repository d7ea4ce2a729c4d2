#include "sim/core/input_text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "sim/core/text.h"

namespace pipesim {
namespace {

constexpr const char* kLimitName = "PIPESIM_INPUT_MIB";

size_t limit_in_mib() {
  constexpr size_t kLimit = 256;
  const char* text = std::getenv(kLimitName);
  const long given = text == nullptr ? 0 : std::atol(text);
  return given > 0 ? static_cast<size_t>(given) : kLimit;
}

// A regular file, by whatever name.
struct FileIdentity {
  std::string place;
  dev_t device = 0;
  ino_t inode = 0;
  auto operator<=>(const FileIdentity&) const = default;
};

// The files that this process has read. This memory keeps an output from destroying an input, and
// an input from changing between two reads.
struct Records {
  struct Kept {
    std::string text;
    struct stat status;
  };
  std::mutex guard;
  std::set<FileIdentity> read;
  bool keep = false;
  std::map<std::string, Kept> kept;  // by the path that was asked for
};

Records& records() {
  static Records all;
  return all;
}

FileIdentity identity_of(const std::string& path, const struct stat& status) {
  return {canonical_place(path), status.st_dev, status.st_ino};
}

bool same_state(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

// Another file of the folder whose name is near, as "; did you mean 'a.yaml'?".
std::string near_file(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr size_t kMostFiles = 1000;  // of a folder that is worth looking through
  const fs::path folder = fs::path(path).parent_path();
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator each(folder.empty() ? "." : folder, error), end;
       !error && each != end && names.size() <= kMostFiles; each.increment(error)) {
    names.push_back(each->path().filename().string());
  }
  if (names.size() > kMostFiles) return "";
  std::ranges::sort(names);
  const std::string near = nearest_name(fs::path(path).filename().string(), names);
  return near.empty() ? "" : fmt::format("; did you mean '{}'?", (folder / near).string());
}

// Throws for an error of opening or reading.
[[noreturn]] void cannot_read(const std::string& path, const Location& asked, int error) {
  const std::string text = fmt::format("cannot read '{}': {}", path, std::strerror(error));
  for (const int of_system : {EMFILE, ENFILE, ENOMEM, EIO}) {
    if (error == of_system) throw InfeasibleError(text);
  }
  throw InputError(asked, text + (error == ENOENT ? near_file(path) : ""));
}

std::string read_file(const std::string& path, const Location& asked, struct stat& status) {
  const auto refuse = [&](const std::string& why) {
    throw InputError(asked, fmt::format("cannot read '{}': {}", path, why));
  };
  if (::stat(path.c_str(), &status) != 0) cannot_read(path, asked, errno);
  if (S_ISDIR(status.st_mode)) refuse("it is a directory");
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) refuse("it is no regular file");
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) cannot_read(path, asked, errno);
  const size_t limit = limit_in_mib() << 20;
  std::string text;
  std::array<char, 1 << 16> block{};
  ssize_t got = 0;
  while ((got = ::read(file, block.data(), block.size())) != 0) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    text.append(block.data(), static_cast<size_t>(got));
    if (text.size() > limit) break;
  }
  const int error = errno;
  ::close(file);
  if (got < 0) cannot_read(path, asked, error);
  if (text.size() > limit) {
    refuse(fmt::format("it has more than {} MiB; {}=MIB in the environment allows more",
                       limit >> 20, kLimitName));
  }
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

}  // namespace

std::string read_input(const std::string& path, const Location& asked) {
  Records& all = records();
  const std::lock_guard lock(all.guard);
  if (const auto kept = all.kept.find(path); kept != all.kept.end()) return kept->second.text;
  struct stat status {};
  std::string text = read_file(path, asked, status);
  all.read.insert(identity_of(path, status));
  if (all.keep) all.kept[path] = {text, status};
  return text;
}

bool was_read(const std::string& path) {
  Records& all = records();
  const std::lock_guard lock(all.guard);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return false;
  const FileIdentity asked = identity_of(path, status);
  return std::ranges::any_of(all.read, [&asked](const FileIdentity& each) {
    return each.place == asked.place || (each.device == asked.device && each.inode == asked.inode);
  });
}

ReadOnce::ReadOnce() { records().keep = true; }

ReadOnce::~ReadOnce() {
  records().keep = false;
  records().kept.clear();
}

std::vector<std::string> ReadOnce::changed() const {
  Records& all = records();
  const std::lock_guard lock(all.guard);
  std::vector<std::string> changed;
  for (auto& [path, kept] : all.kept) {
    struct stat now {};
    if (!S_ISREG(kept.status.st_mode)) continue;
    if (::stat(path.c_str(), &now) == 0 && same_state(now, kept.status)) continue;
    try {
      if (read_file(path, {}, now) == kept.text) {
        kept.status = now;
        continue;
      }
    } catch (const std::exception&) {  // gone, or nothing to read any more
    }
    changed.push_back(path);
  }
  return changed;
}

std::string canonical_place(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path place = fs::weakly_canonical(fs::absolute(path), error);
  if (error == std::errc::not_enough_memory) throw std::bad_alloc();
  return error ? path : place.string();
}

std::string file_beside(const std::string& naming, const std::string& named) {
  const auto beside = std::filesystem::path(naming).parent_path() / named;
  std::error_code ignored;
  return std::filesystem::exists(beside, ignored) ? beside.string() : named;
}

Location place_in(const std::string& name, const std::string& text, size_t at) {
  const size_t end = std::min(at, text.size());
  const size_t begin = end == 0 ? 0 : text.rfind('\n', end - 1) + 1;
  const auto lines = std::count(text.begin(), text.begin() + static_cast<long>(begin), '\n');
  return {name, static_cast<int>(lines) + 1, static_cast<int>(end - begin) + 1, ""};
}

void check_utf8(const std::string& name, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = length_of_character(text, at);
    if (length == 0) throw InputError(place_in(name, text, at), "this byte is no UTF-8 text");
    at += length;
  }
}

}  // namespace pipesim
