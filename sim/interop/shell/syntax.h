// The syntax tree of a shell script: what a reader of launch scripts needs of POSIX sh and bash.
//
// A word keeps the text that was written, with its quotes and expansions;
// sim/interop/shell/words.cc gives them a meaning. Comments, pipes and redirections are gone.
#pragma once

#include <cctype>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/error.h"

namespace pipesim {

// A text that words come from. A text that a script made itself (eval, bash -c) bears one line.
struct ShellText {
  std::string file;
  std::string text;
  int only_line = 0;
  SharedLines lines = SharedLines(text);
};

struct ShellPlace {
  const ShellText* source = nullptr;
  int line = 0;
  int column = 0;

  [[nodiscard]] Location location() const;  // with the line's text
};

struct ShellWord {
  std::string raw;
  ShellPlace where;
};

// NAME=value, NAME+=value, NAME[index]=value, NAME=(values).
struct ShellAssignment {
  std::string name;
  std::string index;
  bool indexed = false;
  bool adds = false;
  bool array = false;
  std::vector<ShellWord> values;  // one, but for an array
  ShellPlace where;
};

enum class ShellKind {
  kCommand,     // assignments, words, heredoc
  kAnd,         // children[0] && children[1]
  kOr,          // children[0] || children[1]
  kNot,         // ! children[0]
  kPipe,        // children, each beside the next
  kGroup,       // { children }
  kSubshell,    // ( children )
  kIf,          // children: condition, body, condition, body, ..., and perhaps the last body
  kCase,        // words[0]; children: a group for each item, whose words are its patterns
  kFor,         // words[0] is the variable, words[1..] its values; children[0] the body
  kWhile,       // children: condition, body
  kFunction,    // words[0]; children[0] the body
  kTest,        // [[ words ]]
  kArithmetic,  // (( words[0] ))
};

struct ShellNode {
  ShellKind kind = ShellKind::kCommand;
  ShellPlace where;
  std::vector<ShellAssignment> assignments = {};
  std::vector<ShellWord> words = {};
  std::vector<ShellNode> children = {};
  std::shared_ptr<std::string> heredoc = {};
};

// InputError at what is no script.
std::vector<ShellNode> parse_shell(const ShellText& source);

inline bool is_shell_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Behind the part of a word at `at`: a quoted text, an expansion or a letter. Returns npos where it
// has no end or holds too many others.
size_t shell_part_end(const std::string& text, size_t at, int depth = 0);

}  // namespace pipesim
