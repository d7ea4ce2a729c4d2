#include "sim/interop/shell/commands.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace pipesim {
namespace {

template <size_t N>
bool is_one_of(const std::string& word, const std::array<std::string_view, N>& words) {
  return std::ranges::find(words, word) != words.end();
}

constexpr std::array<std::string_view, 12> kAsking{"grep", "command", "which", "type",
                                                   "hash", "diff",    "ls",    "nvidia-smi",
                                                   "find", "pgrep",   "cmp",   "curl"};
constexpr std::array<std::string_view, 6> kShells{"bash", "sh", "zsh", "ksh", "dash", "sbatch"};
constexpr std::array<std::string_view, 3> kOptionsOfText{"-c", "-lc", "-ic"};

}  // namespace

std::string last_part_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_shell(const std::string& command) { return is_one_of(last_part_of(command), kShells); }

bool is_test(const ShellNode& node) {
  if (node.kind == ShellKind::kTest) return true;
  return node.kind == ShellKind::kCommand && !node.words.empty() &&
         (node.words[0].raw == "[" || node.words[0].raw == "test");
}

bool asks(const ShellNode& node) {
  if (node.kind != ShellKind::kCommand || is_test(node)) return true;
  if (node.words.empty()) return false;
  const std::string& word = node.words[0].raw;
  return is_one_of(word, kAsking) || word.starts_with("$");
}

std::string text_behind(const ShellItems& words, size_t first) {
  std::string text;
  for (size_t i = first; i < words.size(); ++i) text += (i > first ? " " : "") + words[i].text;
  return text;
}

bool is_script(const ShellItems& words, size_t at) {
  const std::string& text = words[at].text;
  if (text.find(' ') == std::string::npos && text.find('\n') == std::string::npos) return false;
  const std::string& before = words[at - 1].text;
  // Launchers have other options before it.
  const bool launched = text.starts_with("python ") || text.starts_with("torchrun ");
  if (is_one_of(before, kOptionsOfText)) {
    return at > 1 && (launched || is_shell(words[at - 2].text));
  }
  const size_t option = text.find(" --");
  return !before.starts_with("--") && !text.starts_with("-") && option != std::string::npos &&
         text.find(" --", option + 1) != std::string::npos;
}

}  // namespace pipesim
