#include "sim/interop/shell/syntax.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace pipesim {
namespace {

constexpr int kDeepestSyntax = 64;
constexpr size_t kNowhere = std::string::npos;

// Behind the end of a quote that holds expansions.
size_t quote_end(const std::string& text, size_t at, int depth) {
  ++at;
  while (at < text.size() && text[at] != '"') {
    const bool special = text[at] == '$' || text[at] == '\\' || text[at] == '`';
    at = special ? shell_part_end(text, at, depth + 1) : at + 1;
    if (at == kNowhere) return at;
  }
  return at < text.size() ? at + 1 : kNowhere;
}

// Behind the bracket that closes the one before `at`.
size_t bracket_end(const std::string& text, size_t at, char open, char close, int depth) {
  int within = 1;
  while (at < text.size()) {
    const char c = text[at];
    if (c == close && --within == 0) return at + 1;
    if (c == open) ++within;
    const bool part = c == '$' || c == '\\' || c == '"' || c == '\'' || c == '`';
    at = part ? shell_part_end(text, at, depth + 1) : at + 1;
    if (at == kNowhere) return at;
  }
  return kNowhere;
}

size_t expansion_end(const std::string& text, size_t at, int depth) {
  const char next = at + 1 < text.size() ? text[at + 1] : '\0';
  if (next == '(') return bracket_end(text, at + 2, '(', ')', depth);
  if (next == '{') return bracket_end(text, at + 2, '{', '}', depth);
  if (next == '\'') return shell_part_end(text, at + 1, depth + 1);
  if (!is_shell_name(next)) {
    const bool special = next != '\0' && std::string_view("@*#?$!-").find(next) != kNowhere;
    return at + (special ? 2 : 1);
  }
  if (std::isdigit(static_cast<unsigned char>(next)) != 0) return at + 2;
  at += 1;
  while (at < text.size() && is_shell_name(text[at])) ++at;
  return at;
}

}  // namespace

size_t shell_part_end(const std::string& text, size_t at, int depth) {
  if (depth > kDeepestSyntax) return kNowhere;
  const char c = text[at];
  if (c == '\\') return std::min(at + 2, text.size());
  if (c == '"') return quote_end(text, at, depth);
  if (c == '$') return expansion_end(text, at, depth);
  if (c != '\'' && c != '`') return at + 1;
  const size_t end = text.find(c, at + 1);
  return end == kNowhere ? kNowhere : end + 1;
}

Location ShellPlace::location() const {
  if (source->only_line > 0) return {source->file, source->only_line, 1, ""};
  return {source->file, line, column, source->lines[static_cast<size_t>(line) - 1]};
}

namespace {

class ShellParser {
 public:
  explicit ShellParser(const ShellText& source) : source_(source), text_(source.text) {}

  std::vector<ShellNode> script() {
    std::vector<ShellNode> nodes = list({});
    if (!done()) fail("expected a command");
    return nodes;
  }

 private:
  [[nodiscard]] bool done() const { return at_ >= text_.size(); }
  [[nodiscard]] char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  [[nodiscard]] bool starts(std::string_view with) const {
    return text_.compare(at_, with.size(), with) == 0;
  }
  [[nodiscard]] ShellPlace here() const {
    return {&source_, line_, static_cast<int>(at_ - line_begin_) + 1};
  }
  [[noreturn]] void fail(const std::string& expected) const {
    throw InputError(here().location(), fmt::format("the script cannot be read: {}", expected));
  }
  void advance_to(size_t end) {
    for (; at_ < end; ++at_) {
      if (text_[at_] != '\n') continue;
      ++line_;
      line_begin_ = at_ + 1;
    }
  }

  // Over the end of a line, and the texts that begin below it.
  void end_line() {
    advance_to(at_ + 1);
    for (auto& [word, body] : std::exchange(pending_, {})) {
      while (!done()) {
        const size_t end = std::min(text_.find('\n', at_), text_.size());
        std::string line = text_.substr(at_, end - at_);
        advance_to(std::min(end + 1, text_.size()));
        line.erase(0, std::min(line.find_first_not_of('\t'), line.size()));
        if (line == word) break;
        *body += line + '\n';
      }
    }
  }
  void skip_blanks() {
    while (!done()) {
      const char c = peek();
      if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
        advance_to(at_ + (peek(1) == '\n' ? 2 : 3));
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }
  void skip_lines() {
    for (skip_blanks(); peek() == '\n' || (peek() == ';' && peek(1) != ';'); skip_blanks()) {
      peek() == '\n' ? end_line() : advance_to(at_ + 1);
    }
  }

  // The word at hand, without moving.
  [[nodiscard]] std::string_view ahead() const {
    size_t end = at_;
    while (end < text_.size() && !ends_word(text_[end])) ++end;
    return std::string_view(text_).substr(at_, end - at_);
  }
  static bool ends_word(char c) {
    return std::isspace(static_cast<unsigned char>(c)) != 0 ||
           std::string_view(";&|<>()").find(c) != std::string_view::npos;
  }
  bool take(std::string_view word) {
    if (ahead() != word) return false;
    at_ += word.size();
    return true;
  }
  void expect(std::string_view word) {
    skip_lines();
    if (!take(word)) fail(fmt::format("expected '{}'", word));
  }

  ShellWord word() {
    ShellWord word{"", here()};
    const size_t begin = at_;
    while (!done() && (!ends_word(peek()) || peek() == '(')) {
      if (peek() == '\\' && (peek(1) == '\n' || peek(1) == '\r')) break;
      const size_t end =
          peek() == '(' ? bracket_end(text_, at_ + 1, '(', ')', 0) : shell_part_end(text_, at_);
      if (end == kNowhere) fail("a quote or bracket here has no end");
      advance_to(end);
    }
    word.raw = text_.substr(begin, at_ - begin);
    return word;
  }

  std::vector<ShellNode> list(std::initializer_list<std::string_view> ends) {
    if (++depth_ > kDeepestSyntax) fail("commands within commands, too deep");
    std::vector<ShellNode> nodes;
    for (;;) {
      skip_lines();
      while (peek() == '&' && peek(1) != '&') advance_to(at_ + 1), skip_lines();
      if (done() || peek() == ')' || starts(";;")) break;
      if (std::ranges::find(ends, ahead()) != ends.end()) break;
      nodes.push_back(and_or());
    }
    --depth_;
    return nodes;
  }
  ShellNode group(std::initializer_list<std::string_view> ends) {
    ShellNode node{ShellKind::kGroup, here()};
    node.children = list(ends);
    return node;
  }

  ShellNode and_or() {
    ShellNode left = pipeline();
    for (skip_blanks(); starts("&&") || starts("||"); skip_blanks()) {
      ShellNode both{starts("&&") ? ShellKind::kAnd : ShellKind::kOr, left.where};
      advance_to(at_ + 2);
      skip_lines();
      both.children.push_back(std::move(left));
      both.children.push_back(pipeline());
      left = std::move(both);
    }
    return left;
  }
  ShellNode pipeline() {
    skip_blanks();
    if (take("!")) {
      ShellNode negation{ShellKind::kNot, here()};
      negation.children.push_back(pipeline());
      return negation;
    }
    ShellNode first = command();
    skip_blanks();
    if (peek() != '|' || peek(1) == '|') return first;
    ShellNode pipe{ShellKind::kPipe, first.where};
    pipe.children.push_back(std::move(first));
    for (; peek() == '|' && peek(1) != '|'; skip_blanks()) {
      advance_to(at_ + (peek(1) == '&' ? 2 : 1));
      skip_lines();
      pipe.children.push_back(command());
    }
    return pipe;
  }

  ShellNode command() {
    ShellNode node = compound();
    if (node.kind == ShellKind::kCommand) return node;
    for (skip_blanks(); redirection(node); skip_blanks()) {
    }
    return node;
  }
  ShellNode compound() {
    const ShellPlace where = here();
    if (starts("((")) return arithmetic();
    if (peek() == '(') {
      advance_to(at_ + 1);
      ShellNode node = group({});
      node.kind = ShellKind::kSubshell;
      expect_bracket();
      return node;
    }
    if (take("{")) {
      ShellNode node = group({"}"});
      expect("}");
      return node;
    }
    using Reader = ShellNode (ShellParser::*)(const ShellPlace&);
    static constexpr std::array<std::pair<std::string_view, Reader>, 5> kReaders{
        {{"[[", &ShellParser::test},
         {"if", &ShellParser::branches},
         {"case", &ShellParser::cases},
         {"for", &ShellParser::loop_over},
         {"select", &ShellParser::loop_over}}};
    for (const auto& [word, read] : kReaders) {
      if (take(word)) return (this->*read)(where);
    }
    if (ahead() == "while" || ahead() == "until") return loop_while(where);
    const bool named = take("function");
    skip_blanks();
    const std::string_view name = ahead();
    size_t behind = at_ + name.size();
    while (behind < text_.size() && text_[behind] == ' ') ++behind;
    const bool is_name = !name.empty() && name.find_first_of("=$\"'`") == std::string_view::npos;
    if (named || (is_name && text_.compare(behind, 2, "()") == 0)) return function(where);
    return simple();
  }
  void expect_bracket() {
    skip_lines();
    if (peek() != ')') fail("expected ')'");
    advance_to(at_ + 1);
  }
  ShellNode arithmetic() {
    ShellNode node{ShellKind::kArithmetic, here()};
    const size_t end = bracket_end(text_, at_ + 1, '(', ')', 0);
    if (end == kNowhere) fail("a bracket here has no end");
    node.words.push_back({text_.substr(at_ + 2, end - at_ - 4), here()});
    advance_to(end);
    return node;
  }
  ShellNode test(const ShellPlace& where) {
    ShellNode node{ShellKind::kTest, where};
    for (;;) {
      skip_blanks();
      if (done()) fail("expected ']]'");
      if (peek() == '\n') {
        end_line();
      } else if (take("]]")) {
        return node;
      } else if (starts("&&") || starts("||")) {
        node.words.push_back({text_.substr(at_, 2), here()});
        at_ += 2;
      } else if (peek() == '<' || peek() == '>' || peek() == ')' || peek() == '(') {
        node.words.push_back({text_.substr(at_, 1), here()});
        at_ += 1;
      } else {
        node.words.push_back(pattern_word());
      }
    }
  }
  // A word that may be a regular expression with brackets and bars.
  ShellWord pattern_word() {
    ShellWord all{"", here()};
    while (!done() && std::isspace(static_cast<unsigned char>(peek())) == 0 && peek() != ')' &&
           !starts("&&") && !starts("||")) {
      const ShellWord part = word();
      all.raw += part.raw;
      if (part.raw.empty()) all.raw += text_[at_++];
    }
    if (all.raw.empty()) fail("expected a word");
    return all;
  }
  ShellNode branches(const ShellPlace& where) {
    ShellNode node{ShellKind::kIf, where};
    do {
      node.children.push_back(group({"then"}));
      expect("then");
      node.children.push_back(group({"elif", "else", "fi"}));
    } while (take("elif"));
    if (take("else")) node.children.push_back(group({"fi"}));
    expect("fi");
    return node;
  }
  ShellNode cases(const ShellPlace& where) {
    ShellNode node{ShellKind::kCase, where};
    skip_blanks();
    node.words.push_back(word());
    expect("in");
    for (skip_lines(); !take("esac"); skip_lines()) {
      if (done()) fail("expected 'esac'");
      node.children.push_back(case_item());
    }
    return node;
  }
  ShellNode case_item() {
    std::vector<ShellWord> patterns;
    if (peek() == '(') advance_to(at_ + 1);
    for (skip_blanks(); peek() != ')'; skip_blanks()) {
      if (peek() == '|') advance_to(at_ + 1), skip_blanks();
      const size_t before = at_;
      patterns.push_back(word());
      if (at_ == before) fail("expected a pattern and ')'");
    }
    advance_to(at_ + 1);
    ShellNode item = group({"esac"});
    item.words = std::move(patterns);
    while (peek() == ';' || peek() == '&') advance_to(at_ + 1);
    return item;
  }
  ShellNode loop_over(const ShellPlace& where) {
    ShellNode node{ShellKind::kFor, where};
    skip_blanks();
    if (starts("((")) {  // a counter: nothing here repeats a training run by number
      node.kind = ShellKind::kWhile;
      node.children.push_back(group({";", "do"}));
    } else {
      node.words.push_back(word());
      skip_lines();
      if (take("in")) {
        for (skip_blanks(); !done() && peek() != '\n' && peek() != ';'; skip_blanks()) {
          const size_t before = at_;
          node.words.push_back(word());
          if (at_ == before) fail("expected a word");
        }
      } else {
        node.words.push_back({"\"$@\"", where});
      }
    }
    expect("do");
    node.children.push_back(group({"done"}));
    expect("done");
    return node;
  }
  ShellNode loop_while(const ShellPlace& where) {
    ShellNode node{ShellKind::kWhile, where};
    const bool until = take("until");
    if (!until) take("while");
    node.children.push_back(group({"do"}));
    if (until) {
      ShellNode negation{ShellKind::kNot, where};
      negation.children.push_back(std::move(node.children.front()));
      node.children.front() = std::move(negation);
    }
    expect("do");
    node.children.push_back(group({"done"}));
    expect("done");
    return node;
  }
  ShellNode function(const ShellPlace& where) {
    ShellNode node{ShellKind::kFunction, where};
    node.words.push_back({std::string(ahead()), here()});
    at_ += node.words[0].raw.size();
    skip_blanks();
    if (starts("()")) at_ += 2;
    skip_lines();
    node.children.push_back(command());
    return node;
  }

  // "<PATH TO FILE>", which an author leaves for others to fill in, is a word.
  bool placeholder(ShellNode& node) {
    if (peek() != '<' || node.words.empty()) return false;
    const size_t end = std::min(text_.find_first_of("<>|&;\n", at_ + 1), text_.size());
    const bool whole = end < text_.size() && text_[end] == '>' && text_[end - 1] != ' ' &&
                       std::isalpha(static_cast<unsigned char>(peek(1))) != 0;
    if (!whole) return false;
    std::string text = text_.substr(at_ + 1, end - at_ - 1);
    std::ranges::replace(text, ' ', '_');
    const ShellPlace place = here();
    at_ = end + 1;
    node.words.push_back({text + word().raw, place});
    return true;
  }
  // > file, 2>&1, <<END and their like; their words say nothing of what runs.
  bool redirection(ShellNode& node) {
    size_t sign = std::min(text_.find_first_not_of("0123456789", at_), text_.size());
    if (starts("&>")) ++sign;
    const bool redirects = text_[sign] == '<' || text_[sign] == '>';
    if (!redirects || text_[sign + 1] == '(') return false;
    at_ = sign;
    const bool here_text = starts("<<") && !starts("<<<");
    while (std::string_view("<>&|-").find(peek()) != std::string_view::npos && !done()) ++at_;
    skip_blanks();
    std::string target = word().raw;
    if (!here_text) return true;
    std::erase_if(target, [](char c) { return c == '"' || c == '\'' || c == '\\'; });
    node.heredoc = std::make_shared<std::string>();
    pending_.emplace_back(target, node.heredoc);
    return true;
  }

  [[nodiscard]] bool ends_command() const {
    return std::string_view("\n;|)").find(peek()) != std::string_view::npos ||
           (peek() == '&' && peek(1) != '>');
  }
  ShellNode simple() {
    ShellNode node{ShellKind::kCommand, here()};
    bool declares = false;
    for (skip_blanks(); !done() && !ends_command(); skip_blanks()) {
      const char c = peek();
      if (placeholder(node) || redirection(node)) continue;
      if ((node.words.empty() || declares) && assignment(node)) continue;
      const size_t before = at_;
      if (c == '<' || c == '>') at_ += 1;  // of a process: <(command)
      node.words.push_back(word());
      if (at_ == before) fail("expected a word");
      constexpr std::array<std::string_view, 5> kDeclare{"export", "declare", "local", "readonly",
                                                         "typeset"};
      if (node.words.size() == 1) declares = std::ranges::count(kDeclare, node.words[0].raw) > 0;
    }
    if (node.words.empty() && node.assignments.empty() && !node.heredoc) {
      fail("expected a command");
    }
    return node;
  }
  bool assignment(ShellNode& node) {
    ShellAssignment made{.name = "", .index = "", .values = {}, .where = here()};
    size_t end = at_;
    while (end < text_.size() && is_shell_name(text_[end])) ++end;
    if (end == at_ || std::isdigit(static_cast<unsigned char>(peek())) != 0) return false;
    made.name = text_.substr(at_, end - at_);
    if (text_[end] == '[') {
      const size_t close = bracket_end(text_, end + 1, '[', ']', 0);
      if (close == kNowhere) return false;
      made.index = text_.substr(end + 1, close - end - 2);
      made.indexed = true;
      end = close;
    }
    made.adds = text_[end] == '+' && text_[end + 1] == '=';
    if (made.adds) ++end;
    if (text_[end] != '=') return false;
    advance_to(end + 1);
    made.array = peek() == '(';
    made.values = made.array ? elements() : std::vector<ShellWord>{word()};
    node.assignments.push_back(std::move(made));
    return true;
  }
  std::vector<ShellWord> elements() {
    advance_to(at_ + 1);
    std::vector<ShellWord> values;
    for (;;) {
      for (skip_blanks(); peek() == '\n'; skip_blanks()) end_line();
      if (done()) fail("expected ')'");
      if (peek() == ')') break;
      const size_t before = at_;
      values.push_back(word());
      if (at_ == before) fail("expected a word or ')'");
    }
    advance_to(at_ + 1);
    return values;
  }

  const ShellText& source_;
  const std::string& text_;
  size_t at_ = 0;
  int line_ = 1;
  size_t line_begin_ = 0;
  int depth_ = 0;
  std::vector<std::pair<std::string, std::shared_ptr<std::string>>> pending_;
};

}  // namespace

std::vector<ShellNode> parse_shell(const ShellText& source) { return ShellParser(source).script(); }

}  // namespace pipesim
