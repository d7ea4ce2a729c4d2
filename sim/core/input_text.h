// The text of a file that a person named, read with care: whatever it is, there is an answer.
#pragma once

#include <string>
#include <vector>

#include "sim/core/error.h"

namespace pipesim {

// All of a regular file or a pipe, but for a byte-order mark of UTF-8. InputError at `asked` when
// it cannot be read, is a directory or a device, or exceeds 256 MiB. The environment variable
// PIPESIM_INPUT_MIB sets another number of MiB. InfeasibleError where the system has no means to
// read it. Safe in threads. O(size).
std::string read_input(const std::string& path, const Location& asked);

// True if `path` leads to a file that this process has read so, by whatever name.
bool was_read(const std::string& path);

// One text for all names of a place, whether there is a file or not; as it is where the system does
// not know.
std::string canonical_place(const std::string& path);

// While one lives, every file is read once: later readers get its first text. One at a time.
class ReadOnce {
 public:
  ReadOnce();
  ReadOnce(const ReadOnce&) = delete;
  ReadOnce& operator=(const ReadOnce&) = delete;
  ~ReadOnce();

  // The files read that have since changed or gone.
  [[nodiscard]] std::vector<std::string> changed() const;
};

// Where a file that another file names stands: beside that one if there is such a file, else as
// named.
std::string file_beside(const std::string& naming, const std::string& named);

// InputError at the first byte of `text` that is no UTF-8; `name` is what messages call the text.
// O(size).
void check_utf8(const std::string& name, const std::string& text);

// Where byte `at` of `text` stands; columns count bytes. O(at).
Location place_in(const std::string& name, const std::string& text, size_t at);

}  // namespace pipesim
