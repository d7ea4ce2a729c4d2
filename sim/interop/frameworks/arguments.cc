// Launch scripts: words of a shell, as far as lists of arguments need them.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <utility>

#include "sim/interop/frameworks/settings.h"

namespace pipesim {
namespace {

struct Word {
  std::string text;
  Location where;
};
using Words = std::vector<Word>;

// A script that doubles a variable line by line must come to an end.
constexpr size_t kMostWords = 1 << 16;
constexpr size_t kMostBytes = 1 << 20;
constexpr int kDeepest = 32;

void check_size(const Words& words, const Location& where) {
  size_t bytes = 0;
  for (const Word& word : words) bytes += word.text.size();
  if (words.size() <= kMostWords && bytes <= kMostBytes) return;
  throw InputError(
      where, fmt::format("expands to more than {} words or {} bytes", kMostWords, kMostBytes));
}

// Reads words and keeps variables; expansions of whole variables give as many words as they have.
class ScriptReader {
 public:
  ScriptReader(const std::string& file, const std::string& text) : file_(file), text_(text) {}

  Words words() {
    Words all;
    while (auto word = next_word(false)) {
      for (Word& each : *word) all.push_back(std::move(each));
      if (all.size() > kMostWords) check_size(all, all.back().where);
    }
    return all;
  }
  // Of the comment "start N processes".
  [[nodiscard]] const std::optional<Word>& processes() const { return processes_; }

 private:
  [[nodiscard]] bool done() const { return at_ >= text_.size(); }
  [[nodiscard]] char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  char take() {
    const char c = text_[at_++];
    if (c == '\n') {
      ++line_;
      line_begin_ = at_;
    }
    return c;
  }
  [[nodiscard]] Location here() const {
    const size_t end = std::min(text_.find('\n', line_begin_), text_.size());
    return {file_, line_, static_cast<int>(at_ - line_begin_) + 1,
            text_.substr(line_begin_, end - line_begin_)};
  }

  void skip_comment() {
    const Location where = here();
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string comment = text_.substr(at_, end - at_);
    constexpr std::string_view kStart = "# start ";
    if (comment.starts_with(kStart) && comment.find(" processes") != std::string::npos) {
      const size_t begin = kStart.size();
      processes_ = Word{comment.substr(begin, comment.find(' ', begin) - begin), where};
    }
    at_ = end;
  }
  void skip_blanks() {
    while (!done()) {
      const char c = peek();
      const bool joins = c == '\\' && (peek(1) == '\n' || peek(1) == '\r');
      if (joins || std::isspace(static_cast<unsigned char>(c)) != 0 || c == ';' || c == '&' ||
          c == '|') {
        take();
      } else if (c == '#') {
        skip_comment();
      } else {
        return;
      }
    }
  }

  // One word, or as many as it expands to; nothing at the end, or at ')' within an array.
  std::optional<Words> next_word(bool in_array) {
    skip_blanks();
    if (done() || (in_array && peek() == ')')) return std::nullopt;
    const Location where = here();
    if (const auto name = in_array ? std::nullopt : assigned_name()) {
      const bool adds = text_[at_ - 2] == '+';
      Words value = assigned_value(where);
      Words& to = variables_[*name];
      if (!adds) to.clear();
      to.insert(to.end(), value.begin(), value.end());
      check_size(to, where);
      return Words{};
    }
    Words words;
    std::string text;
    bool some = false;
    while (!done() && !ends_word(in_array)) {
      some = true;
      part(text, words, where);
    }
    if (!some) take();  // a bracket that stands by itself
    if (!text.empty()) words.push_back({text, where});
    return words;
  }
  [[nodiscard]] bool ends_word(bool in_array) const {
    const char c = peek();
    return std::isspace(static_cast<unsigned char>(c)) != 0 || c == ';' || c == '&' || c == '|' ||
           (in_array && c == ')') || (c == '\\' && (peek(1) == '\n' || peek(1) == '\r'));
  }

  // A quoted text, a variable or a letter, added to the word.
  void part(std::string& text, Words& words, const Location& where) {
    const char c = take();
    if (c == '\'') {
      while (!done() && peek() != '\'') text += take();
      if (!done()) take();
    } else if (c == '"') {
      while (!done() && peek() != '"') quoted(text, words);
      if (!done()) take();
    } else if (c == '$') {
      expand(text, words, where);
    } else if (c == '\\' && !done()) {
      text += take();
    } else {
      text += c;
    }
  }
  // A letter or a variable between double quotes. An array is its words all the same.
  void quoted(std::string& text, Words& words) {
    if (peek() == '\\' && std::string_view("\"\\$|\n").find(peek(1)) != std::string::npos) {
      take();
      const char escaped = take();
      if (escaped != '\n') text += escaped;
      return;
    }
    const char c = take();
    if (c != '$') {
      text += c;
      return;
    }
    const bool alone = text.empty();
    const Words found = expansion();
    if (alone && found.size() > 1) {
      words.insert(words.end(), found.begin(), found.end());
      return;
    }
    for (size_t i = 0; i < found.size(); ++i) text += (i > 0 ? " " : "") + found[i].text;
  }
  // A variable outside of quotes: its first word ends the one before it, the others follow.
  void expand(std::string& text, Words& words, const Location& where) {
    const Words found = expansion();
    if (found.empty()) return;
    if (text.empty() && found.size() > 1) {
      words.insert(words.end(), found.begin(), found.end());
      return;
    }
    text += found.front().text;
    if (found.size() == 1) return;
    words.push_back({std::exchange(text, ""), where});
    words.insert(words.end(), found.begin() + 1, found.end());
  }

  std::string name_at(size_t from) const {
    size_t end = from;
    while (end < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[end])) != 0 || text_[end] == '_')) {
      ++end;
    }
    return text_.substr(from, end - from);
  }

  // Behind '$'.
  Words expansion() {
    const Location where = here();
    if (peek() == '(' && peek(1) == '(') return {{arithmetic(), where}};
    if (peek() == '(') {
      skip_to(')');
      return {};
    }
    if (peek() != '{') {
      const std::string name = name_at(at_);
      at_ += std::max<size_t>(name.size(), 1);
      return variable(name);
    }
    take();
    const std::string name = name_at(at_);
    at_ += name.size();
    const bool otherwise = peek() == ':' && (peek(1) == '-' || peek(1) == '=');
    Words fallback;
    if (otherwise) {
      at_ += 2;
      if (++depth_ > kDeepest) throw InputError(where, "variables within variables, too deep");
      std::string text;
      while (!done() && peek() != '}') part(text, fallback, where);
      if (!text.empty()) fallback.push_back({text, where});
      --depth_;
    }
    skip_to('}');
    const auto known = variables_.find(name);
    return known == variables_.end() ? fallback : known->second;
  }
  void skip_to(char end) {
    while (!done() && peek() != end) take();
    if (!done()) take();
  }
  Words variable(const std::string& name) const {
    const auto known = variables_.find(name);
    return known == variables_.end() ? Words{} : known->second;
  }

  // $(( a * b ... )): products, sums, differences and quotients from left to right.
  std::string arithmetic() {
    at_ += 2;
    const size_t end = std::min(text_.find("))", at_), text_.size());
    long result = 0;
    char operation = '+';
    while (at_ < end) {
      const char c = peek();
      if (std::string_view("+-*/").find(c) != std::string::npos) {
        operation = take();
      } else if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
        const std::string name = name_at(at_);
        at_ += name.size();
        result = calculated(result, operation, name);
      } else {
        take();  // $, brackets, blanks
      }
    }
    at_ = std::min(end + 2, text_.size());
    return fmt::format("{}", result);
  }
  [[nodiscard]] long calculated(long left, char operation, const std::string& name) const {
    const Words known = variable(name);
    const std::string& digits = known.empty() ? name : known.front().text;
    long right = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), right);
    constexpr long kMost = 1L << 30;
    right = std::clamp(right, -kMost, kMost);
    left = std::clamp(left, -kMost, kMost);
    if (operation == '+') return left + right;
    if (operation == '-') return left - right;
    if (operation == '*') return left * right;
    return right == 0 ? 0 : left / right;
  }

  // NAME= or NAME+= at the beginning of a word; the text is then behind it.
  std::optional<std::string> assigned_name() {
    const std::string name = name_at(at_);
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) return {};
    const size_t end = at_ + name.size();
    const bool adds = end + 1 < text_.size() && text_[end] == '+' && text_[end + 1] == '=';
    if (!adds && (end >= text_.size() || text_[end] != '=')) return {};
    at_ = end + (adds ? 2 : 1);
    return name;
  }
  Words assigned_value(const Location& where) {
    Words value;
    if (peek() == '(') {
      take();
      while (auto words = next_word(true)) value.insert(value.end(), words->begin(), words->end());
      if (!done()) take();
    } else {
      Words words;
      std::string text;
      while (!done() && !ends_word(false)) part(text, words, where);
      value = std::move(words);
      for (Word& word : split_at_blanks(text, where)) value.push_back(std::move(word));
    }
    return value;
  }
  static Words split_at_blanks(const std::string& text, const Location& where) {
    Words words;
    std::string word;
    for (const char c : text + ' ') {
      if (std::isspace(static_cast<unsigned char>(c)) == 0) {
        word += c;
      } else if (!word.empty()) {
        words.push_back({std::exchange(word, ""), where});
      }
    }
    return words;
  }

  const std::string& file_;
  const std::string& text_;
  size_t at_ = 0;
  int line_ = 1;
  size_t line_begin_ = 0;
  int depth_ = 0;  // of defaults within defaults
  std::map<std::string, Words> variables_;
  std::optional<Word> processes_;
};

std::string name_of(std::string word) {
  word.erase(0, 2);
  std::ranges::replace(word, '-', '_');
  return word;
}

}  // namespace

Settings read_arguments(const std::string& file, const std::string& text) {
  ScriptReader reader(file, text);
  Settings settings("megatron", file);
  std::optional<Setting> open;
  const auto close = [&] {
    if (open) settings.add(std::move(*open));
    open.reset();
  };
  for (const Word& word : reader.words()) {
    if (!word.text.starts_with("--") || word.text.size() < 3) {
      if (open) open->values.push_back(word.text);
      continue;
    }
    close();
    const size_t equals = word.text.find('=');
    open = Setting{name_of(word.text.substr(0, equals)), {}, word.where};
    if (equals != std::string::npos) open->values.push_back(word.text.substr(equals + 1));
  }
  close();
  if (const auto& processes = reader.processes()) {
    settings.add({"world_size", {processes->text}, processes->where});
  }
  return settings;
}

}  // namespace pipesim
