#include "sim/core/text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

namespace pipesim {
namespace {

std::string folded(std::string_view name) {
  std::string out;
  for (char c : name) {
    out +=
        c == '_' || c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

// A bit for each letter that stands in it, some letters sharing one.
std::uint64_t letters(std::string_view name) {
  std::uint64_t all = 0;
  for (const char c : name) all |= std::uint64_t{1} << (static_cast<unsigned char>(c) % 64U);
  return all;
}

// Restricted Damerau-Levenshtein distance (adjacent transpositions count once), or `most` where it
// is no less.
size_t edit_distance(std::string_view a, std::string_view b, size_t most) {
  // No fewer letters can differ than one has more than the other.
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) >= most) return most;
  // Nor than letters stand in one and not in the other.
  const std::uint64_t in_a = letters(a), in_b = letters(b);
  if (std::popcount(in_a & ~in_b) >= static_cast<int>(most) ||
      std::popcount(in_b & ~in_a) >= static_cast<int>(most)) {
    return most;
  }
  std::vector<size_t> before(b.size() + 1), previous(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitution = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, previous);
    std::swap(previous, row);
    // All later values come from these two rows and are no less.
    if (std::ranges::min(previous) >= most && std::ranges::min(before) >= most) return most;
  }
  return std::min(previous[b.size()], most);
}

struct Scale {
  double factor;
  const char* unit;
};

// Values from here on are printed with an exponent.
constexpr double kMostWritten = 1e15;

std::string scaled(double value, std::span<const Scale> scales, int digits) {
  const Scale& largest = scales.front();
  if (std::abs(value) >= kMostWritten * largest.factor) {
    return fmt::format("{:.3g} {}", value / largest.factor, largest.unit);
  }
  for (size_t i = 0; i + 1 < scales.size(); ++i) {
    // A value that rounds up to the next larger unit is written in that: "1.000 s", not "1000.000
    // ms".
    const double rounding = 0.5 * std::pow(10, -digits) * scales[i + 1].factor;
    if (std::abs(value) >= scales[i].factor - rounding) {
      return fmt::format("{:.{}f} {}", value / scales[i].factor, digits, scales[i].unit);
    }
  }
  return fmt::format("{:.{}f} {}", value / scales.back().factor, digits, scales.back().unit);
}

}  // namespace

size_t length_of_character(std::string_view text, size_t at) {
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

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  const std::string wanted = folded(name);
  const size_t allowed = std::max<size_t>(2, wanted.size() / 3);
  std::string best;
  size_t best_distance = allowed + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(wanted, folded(candidate), best_distance);
    if (distance < best_distance && distance < std::max(wanted.size(), candidate.size())) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

namespace {

std::string letters_of(std::string_view text) {
  std::string plain = folded(text);
  std::erase(plain, '-');
  return plain;
}

}  // namespace

std::string same_name(std::string_view name, std::span<const std::string> candidates) {
  const std::string wanted = letters_of(name);
  std::string same;
  for (const std::string& candidate : candidates) {
    if (letters_of(candidate) != wanted) continue;
    if (!same.empty() && same != candidate) return "";
    same = candidate;
  }
  return same;
}

std::string meant_name(std::string_view name, std::span<const std::string> candidates) {
  if (std::ranges::find(candidates, name) != candidates.end()) return std::string(name);
  const std::string same = same_name(name, candidates);
  return same.empty() ? std::string(name) : same;
}

namespace {

// True where one is written in the other: "13b" in "llama2-13b", "llama3-8b" in
// "Meta-Llama-3-8B-hf".
bool holds(std::string_view candidate, std::string_view name) {
  constexpr size_t kLeast = 4;  // letters of a candidate, to say something in a longer name
  const std::string in_full = letters_of(candidate);
  const std::string wanted = letters_of(name);
  if (wanted.size() < 2) return false;
  return in_full.find(wanted) != std::string::npos ||
         (in_full.size() >= kLeast && wanted.find(in_full) != std::string::npos);
}

// True for "fp4" of "nvfp4".
bool ends_with(std::string_view candidate, std::string_view name) {
  constexpr size_t kLeast = 3;  // letters, to say something
  const std::string wanted = letters_of(name);
  return wanted.size() >= kLeast && letters_of(candidate).ends_with(wanted);
}

// True for "qwen3-30b" in "qwen3-30b-a3b" and "8b" in "llama3-8b", but not in "megatron-18b".
bool has_words(std::string_view candidate, std::string_view words) {
  const std::string in = fmt::format("-{}-", folded(candidate));
  return !words.empty() && in.find(fmt::format("-{}-", folded(words))) != std::string::npos;
}

std::string_view letters_before(std::string_view name) {
  const auto is_letter = [](unsigned char each) { return std::isalpha(each) != 0; };
  return name.substr(0, std::ranges::find_if_not(name, is_letter) - name.begin());
}

// Candidates of the name's family and size: "llama3.1-405b" of "llama3-405b".
std::vector<std::string> of_one_size(std::string_view name,
                                     std::span<const std::string> candidates) {
  const std::string in_full = folded(name);
  const std::string_view size = std::string_view(in_full).substr(in_full.rfind('-') + 1);
  const std::string_view family = letters_before(in_full);
  std::vector<std::string> alike;
  if (family.empty() || letters_before(size).size() == size.size()) return alike;
  std::ranges::copy_if(candidates, std::back_inserter(alike), [&](const std::string& candidate) {
    return has_words(candidate, size) && letters_before(folded(candidate)) == family;
  });
  return alike;
}

}  // namespace

std::vector<std::string> suggested_names(std::string_view name,
                                         std::span<const std::string> candidates) {
  constexpr size_t kMost = 3;
  std::vector<std::string> names;
  const auto add = [&](const std::string& candidate) {
    const bool twice = std::ranges::find(names, candidate) != names.end();
    if (names.size() < kMost && !candidate.empty() && !twice) names.push_back(candidate);
  };
  for (const std::string& candidate : candidates) {
    if (has_words(candidate, name)) add(candidate);
  }
  for (const std::string& candidate : candidates) {
    if (ends_with(candidate, name)) add(candidate);
  }
  const std::vector<std::string> alike = of_one_size(name, candidates);
  add(nearest_name(name, alike));
  for (const std::string& candidate : alike) add(candidate);
  add(nearest_name(name, candidates));
  const bool none_near = names.empty();
  for (const std::string& candidate : candidates) {
    if (none_near && holds(candidate, name)) add(candidate);
  }
  return names;
}

std::string suggestion(std::string_view name, std::span<const std::string> candidates) {
  if (candidates.empty()) return "";
  const auto names = suggested_names(name, candidates);
  if (names.empty()) return fmt::format("; valid: {}", fmt::join(candidates, ", "));
  return fmt::format("; did you mean '{}'?", fmt::join(names, "', '"));
}

namespace {

// Bytes of a control character that begins at `at`; 0 where none does.
size_t control_at(std::string_view text, size_t at) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(at) == 0x7F) return 1;
  if (byte(at) < 0x20) return text[at] == '\n' || text[at] == '\t' || text[at] == '\r' ? 0 : 1;
  const bool c1 = byte(at) == 0xC2 && at + 1 < text.size() && byte(at + 1) < 0xA0;
  return c1 ? 2 : 0;
}

}  // namespace

bool has_control_character(std::string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (control_at(text, at) > 0) return true;
  }
  return false;
}

std::string printable(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t length = length_of_character(text, at);
    const size_t written = length == 0 ? 1 : control_at(text, at);
    for (size_t i = 0; i < written; ++i) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at + i]));
    }
    if (written == 0) out += text.substr(at, length);
    at += std::max(length, written);
  }
  return out;
}

std::string shortened(std::string_view text) {
  constexpr size_t kMost = 600;
  constexpr size_t kKept = kMost / 2 - 20;  // at each end
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  std::string out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (begin > 0) out += '\n';
    if (line.size() <= kMost) {
      out += line;
    } else {
      size_t first = kKept;
      size_t last = line.size() - kKept;
      while (first > 0 && continues(line[first])) --first;
      while (last < line.size() && continues(line[last])) ++last;
      out += fmt::format("{} ... ({} bytes more) ... {}", line.substr(0, first), last - first,
                         line.substr(last));
    }
    begin = end + 1;
  }
  return out;
}

std::string counted(double count) {
  return std::abs(count) < kMostWritten ? fmt::format("{:.0f}", count)
                                        : fmt::format("{:.3g}", count);
}

std::string human(Seconds seconds) {
  static constexpr std::array<Scale, 4> kScales{
      {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}};
  // A sum that should be 0 may be off by rounding, always less than any time of a pipeline.
  if (std::abs(seconds.value()) < 1e-13) return "0 s";
  return scaled(seconds.value(), kScales, 3);
}

std::string human(Bytes bytes) {
  static constexpr std::array<Scale, 5> kScales{{{1099511627776.0, "TiB"},
                                                 {1073741824.0, "GiB"},
                                                 {1048576.0, "MiB"},
                                                 {1024.0, "KiB"},
                                                 {1.0, "B"}}};
  return scaled(bytes.value(), kScales, 2);
}

}  // namespace pipesim
