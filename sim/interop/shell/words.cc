// Words of a shell: quotes, expansions, and where they are split.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <fmt/format.h>
#include <fnmatch.h>

#include "sim/interop/shell/calculation.h"
#include "sim/interop/shell/state.h"

namespace pipesim {
namespace {

constexpr int kDeepestWords = 48;
constexpr size_t kMostBytes = 1 << 20;
constexpr size_t kMostWords = 1 << 16;
bool is_blank(char c) { return std::string_view(" \t\n\r").find(c) != std::string_view::npos; }

size_t name_length(std::string_view text) {
  size_t length = 0;
  while (length < text.size() && is_shell_name(text[length])) ++length;
  if (length > 0 && std::isdigit(static_cast<unsigned char>(text[0])) != 0) {
    length = 0;
    while (length < text.size() && std::isdigit(static_cast<unsigned char>(text[length])) != 0) {
      ++length;
    }
  }
  if (length == 0 && !text.empty() && std::string_view("@*#?$!-").find(text[0]) != text.npos) {
    return 1;
  }
  return length;
}

// The shortest or longest beginning of `text` that matches; npos where none does.
size_t prefix_match(const std::string& text, const std::string& pattern, bool longest) {
  for (size_t i = 0; i <= text.size(); ++i) {
    const size_t length = longest ? text.size() - i : i;
    if (fnmatch(pattern.c_str(), text.substr(0, length).c_str(), FNM_EXTMATCH) == 0) return length;
  }
  return std::string::npos;
}
size_t suffix_match(const std::string& text, const std::string& pattern, bool longest) {
  for (size_t i = 0; i <= text.size(); ++i) {
    const size_t begin = longest ? i : text.size() - i;
    if (fnmatch(pattern.c_str(), text.substr(begin).c_str(), FNM_EXTMATCH) == 0) return begin;
  }
  return std::string::npos;
}

std::string replaced(std::string text, const std::string& pattern, const std::string& by,
                     bool all) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = prefix_match(text.substr(at), pattern, true);
    if (length == std::string::npos || length == 0) {
      ++at;
      continue;
    }
    text.replace(at, length, by);
    at += by.size();
    if (!all || text.size() > kMostBytes) break;
  }
  return text;
}

std::string trimmed(const std::string& text, const std::string& pattern, bool front, bool longest) {
  const size_t at =
      front ? prefix_match(text, pattern, longest) : suffix_match(text, pattern, longest);
  if (at == std::string::npos) return text;
  return front ? text.substr(at) : text.substr(0, at);
}

// ${name:from:count}; an empty count is all.
std::string part_of(const std::string& text, const std::string& from, const std::string& count) {
  const long size = std::ssize(text);
  long begin = std::strtol(from.c_str(), nullptr, 10);
  if (begin < 0) begin = std::max(0L, begin + size);
  begin = std::min(begin, size);
  long length = count.empty() ? size : std::strtol(count.c_str(), nullptr, 10);
  if (length < 0) length = std::max(0L, size - begin + length);
  return text.substr(static_cast<size_t>(begin), static_cast<size_t>(length));
}

std::string cased(std::string text, int (*change)(int), bool all) {
  for (char& c : text) {
    c = static_cast<char>(change(static_cast<unsigned char>(c)));
    if (!all) break;
  }
  return text;
}

}  // namespace

bool ShellScript::is_known(const std::string& text) {
  return text.find(kShellMarkBegin) == std::string::npos;
}

std::vector<size_t> ShellScript::unknowns_in(const std::string& text) const {
  std::vector<size_t> found;
  for (size_t at = 0; (at = text.find(kShellMarkBegin, at)) != std::string::npos; ++at) {
    size_t id = unknowns.size();
    std::from_chars(text.data() + at + 1, text.data() + text.size(), id);
    if (id < unknowns.size() && std::ranges::count(found, id) == 0) found.push_back(id);
  }
  return found;
}

std::string ShellScript::readable(const std::string& text) const {
  std::string said;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != kShellMarkBegin) {
      said += text[at];
      continue;
    }
    const size_t end = std::min(text.find(kShellMarkEnd, at), text.size() - 1);
    const auto ids = unknowns_in(text.substr(at, end + 1 - at));
    said += ids.empty() || unknowns[ids[0]].names.empty() ? "?" : "$" + unknowns[ids[0]].names[0];
    at = end;
  }
  return said;
}

void ShellVariable::set(const std::string& key, ShellItem item) {
  constexpr size_t kMost = 1 << 12;
  array = true;
  const bool number = !key.empty() && key.size() < 5 &&
                      std::ranges::all_of(key, [](unsigned char c) { return std::isdigit(c); });
  const size_t at = number ? std::stoul(key) : kMost;
  if (at >= kMost) {
    keyed[key] = std::move(item.text);
    return;
  }
  while (items.size() <= at) items.push_back({"", item.where});
  items[at] = std::move(item);
}

ShellCondition ShellCondition::negated() const {
  ShellCondition other = *this;
  if (truth == Truth::kTrue) other.truth = Truth::kFalse;
  if (truth == Truth::kFalse) other.truth = Truth::kTrue;
  return other;
}

// Words as they grow: quoted text joins the last one, an unquoted expansion is split at blanks.
class ShellWords::Fields {
 public:
  Fields(const ShellPlace& where, bool splits, bool escapes = false)
      : where_(where), splits_(splits), escapes_(escapes) {}

  void add(std::string_view text, bool quoted) {
    open_ = true;
    bytes_ += text.size();
    if (bytes_ > kMostBytes) fail(where_, fmt::format("expands to more than {} bytes", kMostBytes));
    for (const char c : text) {
      if (escapes_ && quoted && std::string_view("*?[]\\|+@!()").find(c) != text.npos) {
        current_ += '\\';
      }
      current_ += c;
    }
  }
  void split(std::string_view text, const ShellPlace& from, bool quoted) {
    if (!splits_ || quoted) return add(text, quoted);
    size_t begin = 0;
    while (begin < text.size()) {
      if (is_blank(text[begin])) {
        end_word();
        ++begin;
        continue;
      }
      size_t end = begin;
      while (end < text.size() && !is_blank(text[end])) ++end;
      if (!open_) place_ = from;
      add(text.substr(begin, end - begin), false);
      begin = end;
    }
  }
  // Every item is a word, as of "$@".
  void items(const ShellItems& list, bool quoted) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (i > 0) splits_ ? end_word() : add(" ", quoted);
      if (!open_) place_ = list[i].where;
      split(list[i].text, list[i].where, quoted);
    }
  }
  [[nodiscard]] bool splits() const { return splits_; }
  ShellItems take() {
    end_word();
    return std::move(done_);
  }

 private:
  void end_word() {
    if (!open_) return;
    done_.push_back({std::move(current_), place_.source == nullptr ? where_ : place_});
    if (done_.size() > kMostWords)
      fail(where_, fmt::format("expands to over {} words", kMostWords));
    current_.clear();
    place_ = {};
    open_ = false;
  }

  ShellPlace where_;
  bool splits_;
  bool escapes_;
  ShellItems done_;
  std::string current_;
  ShellPlace place_;
  bool open_ = false;
  size_t bytes_ = 0;
};

void ShellWords::fail(const ShellPlace& where, const std::string& what) {
  throw InputError(where.location(), what);
}

std::string ShellWords::mark(ShellUnknown unknown) {
  const size_t id = script_.unknowns.size();
  script_.unknowns.push_back(std::move(unknown));
  return fmt::format("{}{}{}", kShellMarkBegin, id, kShellMarkEnd);
}

std::vector<std::string> ShellWords::names_in(std::string_view text) const {
  std::vector<std::string> names;
  for (const size_t id : script_.unknowns_in(std::string(text))) {
    for (const std::string& name : script_.unknowns[id].names) {
      if (std::ranges::count(names, name) == 0) names.push_back(name);
    }
  }
  return names;
}

std::string ShellWords::mark_of(std::initializer_list<std::string_view> texts) {
  std::string all;
  for (const std::string_view text : texts) all += text;
  return mark({names_in(all), {}, false});
}

const ShellUnknown* ShellWords::unset_in(std::string_view text) const {
  if (text.empty() || text.front() != kShellMarkBegin ||
      text.find(kShellMarkEnd) + 1 != text.size()) {
    return nullptr;
  }
  const auto ids = script_.unknowns_in(std::string(text));
  return !ids.empty() && script_.unknowns[ids[0]].unset ? &script_.unknowns[ids[0]] : nullptr;
}

void ShellWords::add_compared(const std::string& text, const std::string& value) {
  const auto ids = script_.unknowns_in(text);
  const bool whole =
      text.starts_with(kShellMarkBegin) && text.find(kShellMarkEnd) + 1 == text.size();
  const bool plain = !value.empty() && value.find_first_of("*?[\x01") == std::string::npos;
  if (!whole || !plain || ids.size() != 1) return;
  const ShellUnknown& unknown = script_.unknowns[ids[0]];
  if (unknown.names.size() != 1 || !unknown.alternatives.empty()) return;
  std::vector<std::string>& values = script_.compared[unknown.names[0]];
  if (std::ranges::count(values, value) == 0) values.push_back(value);
}

ShellItems ShellWords::expand(const ShellWord& word) {
  Fields fields(word.where, true);
  expand_parts(word.raw, word.where, false, fields);
  return fields.take();
}

std::string ShellWords::expand_one(const ShellWord& word, bool pattern) {
  Fields fields(word.where, false, pattern);
  expand_parts(word.raw, word.where, false, fields);
  const ShellItems items = fields.take();
  return items.empty() ? "" : items.front().text;
}

namespace {

// A backslash and what stands behind it.
std::string escaped(const std::string& part, bool quoted) {
  if (part.size() == 1 || part[1] == '\n' || part[1] == '\r') return "";
  const bool kept = quoted && std::string_view("\"\\$`").find(part[1]) == std::string_view::npos;
  return kept ? part : part.substr(1);
}

}  // namespace

void ShellWords::expand_parts(const std::string& raw, const ShellPlace& where, bool quoted,
                              Fields& to) {
  if (++depth_ > kDeepestWords) fail(where, "variables within variables, too deep");
  for (size_t at = 0; at < raw.size();) {
    const char c = raw[at];
    // An apostrophe in a quote stands for itself.
    const size_t end = quoted && c == '\'' ? at + 1 : shell_part_end(raw, at);
    if (end == std::string::npos) fail(where, "a quote or bracket here has no end");
    const std::string part = raw.substr(at, end - at);
    at = end;
    if (c == '\\') {
      to.add(escaped(part, quoted), true);
    } else if (c == '\'' && !quoted) {
      to.add(part.substr(1, part.size() - 2), true);
    } else if (c == '"' && !quoted) {
      to.add("", true);
      expand_parts(part.substr(1, part.size() - 2), where, true, to);
    } else if (c == '`') {
      to.split(captured(part.substr(1, part.size() - 2), where), where, quoted);
    } else if (c == '$' && part.size() > 1) {
      expand_dollar(part, where, quoted, to);
    } else {
      to.add(part, quoted);
    }
  }
  --depth_;
}

void ShellWords::expand_dollar(const std::string& part, const ShellPlace& where, bool quoted,
                               Fields& to) {
  if (part.starts_with("$((") && part.ends_with("))")) {
    to.split(calculate(part.substr(3, part.size() - 5), where), where, quoted);
  } else if (part[1] == '(') {
    to.split(captured(part.substr(2, part.size() - 3), where), where, quoted);
  } else if (part[1] == '\'') {
    to.add(part.substr(2, part.size() - 3), true);
  } else {
    const bool braces = part[1] == '{';
    expand_braces(braces ? part.substr(2, part.size() - 3) : part.substr(1), where, quoted, to);
  }
}

const ShellVariable* ShellWords::find(const std::string& name) {
  mentioned_.insert(name);
  const auto known = state_.variables.find(name);
  const auto fixed = given_.find(name);
  if (known != state_.variables.end() && fixed == given_.end()) return &known->second;
  const auto before = outside_.find(name);
  if (before != outside_.end()) return &before->second;
  if (fixed == given_.end()) return nullptr;
  return &(outside_[name] = {{{fixed->second, {}}}});
}

void ShellWords::assign(const std::string& name, ShellVariable value) {
  mentioned_.insert(name);
  size_t bytes = 0;
  for (const ShellItem& item : value.items) bytes += item.text.size();
  if (bytes > kMostBytes || value.items.size() > kMostWords) {
    fail(value.items[0].where,
         fmt::format("expands to more than {} words or {} bytes", kMostWords, kMostBytes));
  }
  // A program's output is asked for by the variable that takes it.
  for (const size_t id : script_.unknowns_in(value.items.empty() ? "" : value.items[0].text)) {
    if (script_.unknowns[id].names.empty() && script_.unknowns[id].alternatives.empty()) {
      script_.unknowns[id].names.push_back(name);
    }
  }
  state_.variables[name] = std::move(value);
}

// ${name[index]}; with @ or * all of them.
ShellItems ShellWords::elements(const std::string& name, const std::string& index,
                                const ShellPlace& where) {
  const ShellVariable* variable = find(name);
  const bool all = index == "@" || index == "*" || name == "@" || name == "*";
  if (variable == nullptr)
    return all ? ShellItems{} : ShellItems{{mark({{name}, {}, true}), where}};
  if (all) {
    ShellItems items = variable->items;
    for (const auto& [key, text] : variable->keyed) items.push_back({text, where});
    return items;
  }
  if (!index.empty()) return {element(*variable, expand_one({index, where}), where)};
  return variable->items.empty() ? ShellItems{{"", where}} : ShellItems{variable->items[0]};
}

ShellItem ShellWords::element(const ShellVariable& variable, const std::string& key,
                              const ShellPlace& where) {
  if (!variable.keyed.empty()) {
    const auto found = variable.keyed.find(key);
    if (!ShellScript::is_known(key)) return {mark_of({key}), where};
    return {found == variable.keyed.end() ? "" : found->second, where};
  }
  const std::string number = calculate(key, where);
  if (!ShellScript::is_known(number)) return {number, where};
  const long size = std::ssize(variable.items);
  long at = std::strtol(number.c_str(), nullptr, 10);
  if (at < 0) at += size;
  return at < 0 || at >= size ? ShellItem{"", where} : variable.items[static_cast<size_t>(at)];
}

// The inside of ${ }: #name, !name, name[index] and what is done to it.
struct ShellParameter {
  bool counts = false;
  bool indirect = false;
  std::string name, index, rest;

  explicit ShellParameter(const std::string& inside) : rest(inside) {
    counts = inside.size() > 1 && inside[0] == '#';
    indirect = inside.size() > 1 && inside[0] == '!';
    if (counts || indirect) rest.erase(0, 1);
    name = rest.substr(0, name_length(rest));
    rest.erase(0, name.size());
    if (rest.empty() || rest[0] != '[') return;
    const size_t end = std::min(rest.find(']'), rest.size());
    index = rest.substr(1, end - 1);
    rest.erase(0, end + 1);
  }
  [[nodiscard]] bool all() const { return index == "@" || index == "*"; }
  [[nodiscard]] bool colon() const { return rest.size() > 1 && rest[0] == ':'; }
  // One of - = ? +, or none of them.
  [[nodiscard]] char otherwise() const {
    const char c = rest.empty() ? '\0' : rest[colon() ? 1 : 0];
    return c != '\0' && std::string_view("-=?+").find(c) != std::string_view::npos ? c : '\0';
  }
};

void ShellWords::expand_braces(const std::string& inside, const ShellPlace& where, bool quoted,
                               Fields& to) {
  ShellParameter parameter(inside);
  if (parameter.name == "#") {
    const ShellVariable* all = find("@");
    const std::string count =
        all == nullptr ? mark({{"1"}, {}, false}) : fmt::format("{}", all->items.size());
    return to.split(count, where, quoted);
  }
  if (parameter.indirect && parameter.index.empty()) {
    parameter.name = elements(parameter.name, "", where)[0].text;
    if (!ShellScript::is_known(parameter.name)) {
      return to.split(mark_of({parameter.name}), where, quoted);
    }
  }
  ShellItems items = elements(parameter.name, parameter.index, where);
  if (parameter.counts) {
    const bool known = parameter.all() || ShellScript::is_known(items[0].text);
    const size_t size = parameter.all() ? items.size() : items[0].text.size();
    return to.split(known ? fmt::format("{}", size) : mark_of({items[0].text}), where, quoted);
  }
  if (parameter.otherwise() != '\0') {
    return expand_otherwise(parameter, items, where, quoted, to);
  }
  if (!parameter.rest.empty()) {
    for (ShellItem& item : items) item.text = changed(item.text, parameter.rest, where);
  }
  to.items(items, quoted);
}

// ${name:-other} and its like.
void ShellWords::expand_otherwise(const ShellParameter& parameter, const ShellItems& items,
                                  const ShellPlace& where, bool quoted, Fields& to) {
  const char kind = parameter.otherwise();
  const std::string text = items.empty() ? "" : items[0].text;
  const bool none =
      items.empty() || (parameter.colon() && text.empty()) || unset_in(text) != nullptr;
  if (kind == '?' || (!none && kind != '+')) return to.items(items, quoted);
  if (none == (kind == '+')) return;
  const std::string other = parameter.rest.substr(parameter.colon() ? 2 : 1);
  if (kind == '=') assign(parameter.name, {{{expand_one({other, where}), where}}});
  expand_parts(other, where, quoted, to);
}

// ${name#pattern} and its like.
std::string ShellWords::changed(const std::string& text, const std::string& operation,
                                const ShellPlace& where) {
  if (!ShellScript::is_known(text)) return mark_of({text});
  const char kind = operation[0];
  const bool twice = operation.size() > 1 && operation[1] == kind;
  const std::string rest = operation.substr(twice ? 2 : 1);
  if (kind == '^') return cased(text, std::toupper, twice);
  if (kind == ',') return cased(text, std::tolower, twice);
  if (kind == '#' || kind == '%') {
    return trimmed(text, expand_one({rest, where}, true), kind == '#', twice);
  }
  if (kind == '/') {
    const size_t slash = std::min(rest.find('/', 1), rest.size());
    const std::string by = slash < rest.size() ? expand_one({rest.substr(slash + 1), where}) : "";
    return replaced(text, expand_one({rest.substr(0, slash), where}, true), by, twice);
  }
  if (kind != ':') fail(where, fmt::format("'${{..{}}}' is no expansion that is known", operation));
  const size_t colon = rest.find(':');
  const std::string from = calculate(rest.substr(0, colon), where);
  const std::string count =
      colon == std::string::npos ? "" : calculate(rest.substr(colon + 1), where);
  return ShellScript::is_known(from + count) ? part_of(text, from, count) : mark_of({from, count});
}

std::string ShellWords::calculate(const std::string& expression, const ShellPlace& where) {
  const std::string text = expand_one({expression, where});
  ShellCalculation calculation(
      text,
      [&](const std::string& name) {
        const ShellVariable* variable = find(name);
        if (variable == nullptr) return mark({{name}, {}, true});
        return variable->items.empty() ? std::string() : variable->items[0].text;
      },
      [&](const std::string& name, long value) {
        assign(name, {{{fmt::format("{}", value), where}}});
      });
  if (const auto value = calculation.value()) return fmt::format("{}", *value);
  return mark({names_in(text + calculation.unknown()), {}, false});
}

}  // namespace pipesim
