#include "app/outputs.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iostream>
#include <memory>
#include <ostream>
#include <set>
#include <streambuf>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "app/temporary.h"
#include "sim/core/input_text.h"

namespace pipesim {
namespace {

namespace fs = std::filesystem;

// A request that cannot be met, or a system that fails one that can.
[[noreturn]] void cannot_write(const Output& output, int error,
                               const std::vector<std::string>& written) {
  std::string text = output.path == "-"
                         ? fmt::format("cannot write to standard output: {}", std::strerror(error))
                         : fmt::format("cannot write '{}': {}", output.path, std::strerror(error));
  text += written.empty() ? "; nothing has been written"
                          : fmt::format("; written: {}", fmt::join(written, ", "));
  for (const int of_person : {ENOENT, ENOTDIR, EISDIR, EACCES, EPERM, EROFS, ELOOP, ENAMETOOLONG}) {
    if (error == of_person) throw InputError(output.where, text);
  }
  throw InfeasibleError(text);
}

// Writes to a file that is open, and knows what went wrong.
class FileBuffer : public std::streambuf {
 public:
  explicit FileBuffer(int file) : file_(file) { setp(buffer_.data(), buffer_.data() + kSize); }
  // 0, or the number of the first error.
  [[nodiscard]] int error() const { return error_; }

 protected:
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    return sputc(traits_type::to_char_type(c));
  }
  int sync() override {
    for (const char* at = pbase(); at < pptr() && error_ == 0;) {
      const ssize_t wrote = ::write(file_, at, static_cast<size_t>(pptr() - at));
      if (wrote >= 0) {
        at += wrote;
      } else if (errno != EINTR) {
        error_ = errno;
      }
    }
    setp(buffer_.data(), buffer_.data() + kSize);
    return error_ == 0 ? 0 : -1;
  }

 private:
  static constexpr size_t kSize = 1 << 16;
  int file_;
  int error_ = 0;
  std::array<char, kSize> buffer_{};
};

// Returns 0, or the number of the error. Exceptions of `write` pass.
int fill(int file, const std::function<void(std::ostream&)>& write) {
  const auto buffer = std::make_unique<FileBuffer>(file);
  std::ostream stream(buffer.get());
  write(stream);
  stream.flush();
  // A stream that failed before its buffer did was given what cannot be read.
  return buffer->error() == 0 && !stream ? EIO : buffer->error();
}

// The file that a link leads to, also where there is none yet.
fs::path behind_links(fs::path path) {
  std::error_code error;
  constexpr int kMost = 40;
  for (int i = 0; i < kMost && fs::is_symlink(path, error); ++i) {
    path = path.parent_path() / fs::read_symlink(path, error);
  }
  return path;
}

// A file that grows beside its place; gone again unless it was put there.
class Unfinished {
 public:
  explicit Unfinished(const Output& output) : output_(output), place_(behind_links(output.path)) {
    try {
      remove_abandoned_beside(place_);
      file_ = std::make_unique<TemporaryFile>(place_);
    } catch (const std::system_error& error) {
      cannot_write(output, error.code().value(), {});
    }
    int error = fill(file_->descriptor(), output.write);
    if (error == 0) error = settle();
    if (error != 0) cannot_write(output, error, {});
  }

  // Puts the file in its place.
  void finish(std::vector<std::string>& written) {
    if (std::rename(file_->path().c_str(), place_.c_str()) != 0) {
      cannot_write(output_, errno, written);
    }
    written.push_back(output_.path);
    if (const int error = settle_place(); error != 0) cannot_write(output_, error, written);
  }

 private:
  // The folder, which holds the new name, on the disk too; 0, or the number of the error. One that
  // may be written but not read cannot be asked for it, nor can some file systems.
  [[nodiscard]] int settle_place() const {
    const fs::path folder = place_.has_parent_path() ? place_.parent_path() : fs::path(".");
    const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0) return 0;
    const int error = ::fsync(opened) == 0 || errno == EINVAL ? 0 : errno;
    ::close(opened);
    return error;
  }

  // The mode of what is replaced, or a new file's; and on the disk.
  [[nodiscard]] int settle() const {
    struct stat before {};
    const mode_t masked = ::umask(0);
    ::umask(masked);
    constexpr mode_t kNew = 0666;
    constexpr mode_t kPermissions = 07777;
    const bool replaces = ::stat(place_.c_str(), &before) == 0;
    const mode_t mode = replaces ? before.st_mode & kPermissions : kNew & ~masked;
    if (::fchmod(file_->descriptor(), mode) != 0) return errno;
    if (::fsync(file_->descriptor()) == 0 || errno == EINVAL) return 0;
    return errno;
  }

  const Output& output_;
  fs::path place_;
  std::unique_ptr<TemporaryFile> file_;
};

bool in_place(const std::string& path) {
  std::error_code error;
  return path != "-" && fs::exists(path, error) && !fs::is_regular_file(path, error) &&
         !fs::is_directory(path, error);
}

bool is_file(const std::string& path) { return !path.empty() && path != "-" && !in_place(path); }

int error_of_standard_output() {
  const auto* known = dynamic_cast<const FileBuffer*>(std::cout.rdbuf());
  return known == nullptr ? EIO : known->error();
}

void write_in_place(const Output& output) {
  if (output.path == "-") {
    output.write(std::cout);
    if (!std::cout.flush()) cannot_write(output, error_of_standard_output(), {});
    return;
  }
  const int file = ::open(output.path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) cannot_write(output, errno, {});
  const int error = fill(file, output.write);
  ::close(file);
  if (error != 0) cannot_write(output, error, {});
}

std::vector<std::pair<std::string, Location>> paths_of(const std::vector<Output>& outputs) {
  std::vector<std::pair<std::string, Location>> paths;
  for (const Output& output : outputs) paths.emplace_back(output.path, output.where);
  return paths;
}

}  // namespace

void make_folder(const std::string& path, const Location& where) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    throw InputError(where, fmt::format("cannot make the folder '{}': {}", path, error.message()));
}

void check_apart(const std::vector<std::pair<std::string, Location>>& paths) {
  std::set<std::string> places;
  for (const auto& [path, where] : paths) {
    if (path == "-" && !places.insert(path).second) {
      throw InputError(where, "only one output can go to standard output");
    }
    if (!is_file(path)) continue;
    if (was_read(path)) {
      throw InputError(where, fmt::format("'{}' is an input: it would be lost", path));
    }
    const fs::path place = behind_links(path);
    std::error_code error;
    if (fs::is_symlink(place, error)) cannot_write({path, where, {}}, ELOOP, {});
    if (!places.insert(canonical_place(place.string())).second) {
      throw InputError(where, fmt::format("'{}' is another output already", path));
    }
  }
}

void check_writable(const std::vector<std::string>& paths, const CommandLine& line) {
  std::vector<std::pair<std::string, Location>> located;
  for (const std::string& path : paths) located.emplace_back(path, line.of_option(path));
  check_apart(located);
  for (const auto& [path, where] : located) {
    if (!is_file(path)) continue;
    std::error_code error;
    const fs::path folder = fs::absolute(behind_links(path)).parent_path();
    if (fs::is_directory(path, error)) cannot_write({path, where, {}}, EISDIR, {});
    if (::access(folder.c_str(), W_OK) != 0) cannot_write({path, where, {}}, errno, {});
    if (!fs::is_directory(folder, error)) cannot_write({path, where, {}}, ENOTDIR, {});
  }
}

void write_outputs(const std::vector<Output>& outputs) {
  check_apart(paths_of(outputs));
  std::vector<std::unique_ptr<Unfinished>> files;
  for (const Output& output : outputs) {
    if (is_file(output.path)) files.push_back(std::make_unique<Unfinished>(output));
  }
  for (const Output& output : outputs) {
    if (!output.path.empty() && !is_file(output.path)) write_in_place(output);
  }
  std::vector<std::string> written;
  for (const auto& file : files) file->finish(written);
}

StandardOutput::StandardOutput()
    : buffer_(std::make_unique<FileBuffer>(STDOUT_FILENO)),
      before_(std::cout.rdbuf(buffer_.get())) {}

StandardOutput::~StandardOutput() {
  std::cout.flush();
  std::cout.rdbuf(before_);
}

void StandardOutput::finish() {
  if (std::cout.flush()) return;
  throw InfeasibleError(fmt::format("cannot write to standard output: {}",
                                    std::strerror(error_of_standard_output())));
}

}  // namespace pipesim
