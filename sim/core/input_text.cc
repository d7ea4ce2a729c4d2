#include "sim/core/input_text.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sys/stat.h>

namespace pipesim {
namespace {

constexpr const char* kLimitName = "PIPESIM_INPUT_MIB";

size_t limit_in_mib() {
  constexpr size_t kLimit = 256;
  const char* text = std::getenv(kLimitName);
  const long given = text == nullptr ? 0 : std::atol(text);
  return given > 0 ? static_cast<size_t>(given) : kLimit;
}

// Bytes of the character at `at`, by the table of well-formed sequences of the Unicode standard
// (table 3-7); 0 where there is none.
size_t length_of_character(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (at + length > text.size()) return 0;
  const unsigned char least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned char most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < least || byte(1) > most) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

std::string read_input(const std::string& path, const Location& asked) {
  const auto refuse = [&](const std::string& why) {
    throw InputError(asked, fmt::format("cannot read '{}'{}", path, why));
  };
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) refuse("");
  if (S_ISDIR(status.st_mode)) refuse(": it is a directory");
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) refuse(": it is no regular file");
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) refuse("");
  const size_t limit = limit_in_mib() << 20;
  std::string text;
  std::array<char, 1 << 16> block{};
  while (file.read(block.data(), block.size()) || file.gcount() > 0) {
    text.append(block.data(), static_cast<size_t>(file.gcount()));
    if (text.size() > limit) {
      refuse(fmt::format(": it has more than {} MiB; {}=MIB in the environment allows more",
                         limit >> 20, kLimitName));
    }
  }
  if (file.bad()) refuse("");
  return text;
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
