// Runs the tree of a script over a state, without running anything of it.
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>
#include <sstream>

#include "sim/interop/shell/commands.h"
#include "sim/interop/shell/conditions.h"
#include "sim/interop/shell/merge.h"
#include "sim/interop/shell/slurm.h"
#include "sim/interop/shell/state.h"

namespace pipesim {
namespace {

constexpr int kDeepestCall = 40;
constexpr int kMostSteps = 200000;
constexpr int kMostRounds = 256;  // of a loop

class ShellRun : public ShellWords {
 public:
  ShellRun(ShellScript& script, const std::map<std::string, std::string>& given,
           const ShellReader& reader)
      : ShellWords(script, given), reader_(reader) {}

  void run(const std::string& file, const std::string& text) {
    texts_.push_back({file, text});
    script_.slurm = slurm_options(file, text);
    set_slurm();
    set_positionals();
    run_text(texts_.back());
    script_.mentioned.assign(mentioned_.begin(), mentioned_.end());
    for (const auto& [name, variable] : state_.variables) add_list(name, variable);
  }

 private:
  // ---- texts ----

  void run_text(const ShellText& source) {
    trees_.push_back(parse_shell(source));
    run_all(trees_.back());
  }
  void run_made(const std::string& text, const ShellPlace& where) {
    texts_.push_back({where.source->file, text, where.location().line});
    run_text(texts_.back());
  }
  std::string captured(const std::string& commands, const ShellPlace& where) override {
    if (++depth_ > kDeepestCall) fail(where, "commands within commands, too deep");
    const ShellState before = state_;
    state_.output.clear();
    const size_t commands_before = script_.commands.size();
    try {
      run_made(commands, where);
    } catch (const InputError&) {  // a text of another language
      state_.output = mark({});
    }
    std::string output = std::move(state_.output);
    const bool asks = script_.commands.size() > commands_before;
    script_.commands.resize(commands_before);
    state_ = before;
    --depth_;
    while (output.ends_with('\n')) output.pop_back();
    return asks ? mark({names_in(output), {}, false}) : output;
  }
  void set_positionals() {
    ShellItems items;
    for (int i = 1; given_.contains(fmt::format("{}", i)); ++i) {
      items.push_back({given_.at(fmt::format("{}", i)), {&texts_.back(), 1, 1}});
    }
    if (!items.empty()) state_.variables["@"] = {items, {}, true};
    state_.variables["?"] = {{{"0", {&texts_.back(), 1, 1}}}};
    state_.variables["0"] = {{{last_part_of(texts_.back().file), {&texts_.back(), 1, 1}}}};
  }
  void add_list(const std::string& name, const ShellVariable& variable) {
    const std::string first = variable.items.empty() ? "" : variable.items[0].text;
    const size_t begin = first.find_first_not_of(" \t\n");
    if (begin == std::string::npos || first.compare(begin, 2, "--") != 0) return;
    ShellCommand list;
    for (const ShellItem& item : variable.items) {
      std::istringstream words(item.text);
      const Location where = item.where.source == nullptr ? Location{} : item.where.location();
      for (std::string word; words >> word;) list.words.push_back({word, where});
    }
    script_.lists.emplace_back(name, std::move(list));
  }

  void set_slurm() {
    for (const auto& [variable, option] : slurm_variables(script_.slurm)) {
      state_.variables[variable] = {{{script_.slurm.at(option).text,
                                      {&texts_.back(), script_.slurm.at(option).where.line, 1}}}};
    }
  }

  // ---- control ----

  [[nodiscard]] bool stopped() const { return state_.exited || state_.returned || state_.broken; }
  void run_all(const std::vector<ShellNode>& nodes) {
    for (const ShellNode& node : nodes) {
      if (stopped()) return;
      (void)run_node(node);
    }
  }
  void count_step(const ShellPlace& where) {
    if (++steps_ > kMostSteps) fail(where, "the script does not come to an end");
  }
  ShellCondition run_node(const ShellNode& node) {
    count_step(node.where);
    switch (node.kind) {
      case ShellKind::kCommand:
        return run_command(node);
      case ShellKind::kAnd:
      case ShellKind::kOr:
        return run_chain(node);
      case ShellKind::kNot:
        return run_list(node.children).negated();
      case ShellKind::kPipe:
        return run_pipe(node);
      case ShellKind::kSubshell:
        return run_subshell(node);
      case ShellKind::kGroup:
        return run_list(node.children);
      case ShellKind::kIf:
        return run_if(node, 0);
      case ShellKind::kCase:
        return run_case(node, 0);
      case ShellKind::kFor:
        return run_for(node);
      case ShellKind::kWhile:
        return run_while(node);
      case ShellKind::kFunction:
        return define(node);
      case ShellKind::kTest:
        return test(node.words);
      case ShellKind::kArithmetic:
        return truth_of(calculate(node.words[0].raw, node.where));
    }
    return {};
  }
  ShellCondition define(const ShellNode& node) {
    state_.functions[expand_one(node.words[0])] = &node.children[0];
    return ShellCondition::of(true);
  }
  ShellCondition run_list(const std::vector<ShellNode>& nodes) {
    ShellCondition last = ShellCondition::of(true);
    for (const ShellNode& node : nodes) {
      if (stopped()) break;
      last = run_node(node);
    }
    return last;
  }
  ShellCondition run_pipe(const ShellNode& node) {
    // echo "..." | bc: an expression.
    const ShellNode& last = node.children.back();
    const bool calculates = !last.words.empty() && last.words[0].raw == "bc";
    const std::string before = calculates ? std::exchange(state_.output, "") : "";
    ShellCondition condition;
    for (const ShellNode& each : node.children) {
      if (&each != &last || !calculates) condition = run_node(each);
    }
    if (calculates) {
      state_.output = before + calculate(state_.output, node.where);
    } else if (!state_.output.empty()) {
      state_.output = mark_of({state_.output});
    }
    return condition;
  }
  ShellCondition run_subshell(const ShellNode& node) {
    ShellState before = state_;
    ShellCondition last = run_list(node.children);
    before.output = state_.output;
    state_ = std::move(before);
    return last;
  }
  static ShellCondition truth_of(const std::string& number) {
    if (!ShellScript::is_known(number)) return {};
    return ShellCondition::of(number != "0");
  }

  // Names of a condition; of one that no variable decides, its line.
  [[nodiscard]] std::vector<std::string> names_of(const ShellCondition& condition,
                                                  const ShellPlace& where) const {
    if (!condition.names.empty()) return condition.names;
    return {fmt::format("if:{}", where.location().line)};
  }
  // A condition that is given by its line.
  ShellCondition decided(ShellCondition condition, const ShellPlace& where) {
    if (condition.truth != Truth::kUnknown || !condition.names.empty()) return condition;
    const std::string name = names_of(condition, where)[0];
    mentioned_.insert(name);
    const auto found = given_.find(name);
    if (found == given_.end()) return condition;
    return ShellCondition::of(found->second == "true" || found->second == "1");
  }

  using Branch = std::function<ShellCondition()>;
  // One of two branches, or both where it is not known which; branches that end the script are
  // none that trains. Nor is a `check` that ends it: an if without an else.
  ShellCondition choose(const ShellCondition& asked, const ShellPlace& where, const Branch& yes,
                        const Branch& no, bool check = false) {
    const ShellCondition condition = decided(asked, where);
    if (condition.truth != Truth::kUnknown) {
      const bool taken = condition.truth == Truth::kTrue;
      if (!condition.assumed && !check) return taken ? yes() : no();
      const ShellState before = state_;
      const size_t commands = script_.commands.size();
      ShellCondition result = taken ? yes() : no();
      const bool trains = !condition.assumed && script_.commands.size() > commands;
      if (!state_.exited || trains) {
        if (condition.assumed) add_assumed(condition.names);
        return result;
      }
      if (!condition.assumed) script_.passed.push_back(where.location().line);
      state_ = before;
      script_.commands.resize(commands);
      return taken ? no() : yes();
    }
    return both(names_of(condition, where), yes, no);
  }
  ShellCondition both(const std::vector<std::string>& names, const Branch& yes, const Branch& no) {
    if (++depth_ > kDeepestCall) return {};
    const ShellState before = state_;
    std::vector<ShellState> ends;
    std::vector<ShellCondition> results;
    for (const Branch& branch : {yes, no}) {
      state_ = before;
      state_.conditions.insert(state_.conditions.end(), names.begin(), names.end());
      const size_t commands = script_.commands.size();
      const ShellCondition result = branch();
      if (state_.exited && script_.commands.size() == commands) continue;
      state_.exited = false;
      ends.push_back(std::move(state_));
      results.push_back(result);
    }
    --depth_;
    if (ends.empty()) {
      state_ = before;
      state_.exited = true;
      return {};
    }
    const auto marks = [&](ShellUnknown unknown) { return mark(std::move(unknown)); };
    state_ = ends.size() == 1 ? std::move(ends[0]) : merged(ends, names, marks);
    state_.conditions = before.conditions;
    const bool same = results.size() == 1 || results[0].truth == results[1].truth;
    return same ? results[0] : ShellCondition{Truth::kUnknown, names, false};
  }
  void add_assumed(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (std::ranges::count(script_.assumed, name) == 0) script_.assumed.push_back(name);
    }
  }

  ShellCondition run_chain(const ShellNode& node) {
    const bool and_then = node.kind == ShellKind::kAnd;
    ShellCondition left = run_node(node.children[0]);
    if (left.truth == Truth::kUnknown && !asks(node.children[0])) left = ShellCondition::of(true);
    const Branch right = [&] { return run_node(node.children[1]); };
    const Branch stay = [&] { return ShellCondition::of(!and_then); };
    if (is_test(node.children[1])) {
      const ShellCondition other = run_node(node.children[1]);
      return joined(left, other, and_then);
    }
    return and_then ? choose(left, node.where, right, stay) : choose(left, node.where, stay, right);
  }

  ShellCondition run_if(const ShellNode& node, size_t at) {
    if (at >= node.children.size()) return ShellCondition::of(true);
    if (at + 1 == node.children.size()) return run_list(node.children[at].children);
    const ShellCondition condition = run_list(node.children[at].children);
    if (stopped()) return {};
    return choose(
        condition, node.children[at].where,
        [&] { return run_list(node.children[at + 1].children); },
        [&] { return run_if(node, at + 2); }, node.children.size() == 2);
  }
  ShellCondition run_case(const ShellNode& node, size_t at) {
    const std::string word = expand_one(node.words[0]);
    for (; at < node.children.size(); ++at) {
      const ShellNode& item = node.children[at];
      bool matches = false;
      for (const ShellWord& pattern : item.words) {
        add_compared(word, expand_one(pattern));
        matches = matches || pattern.raw == "*" ||
                  (ShellScript::is_known(word) &&
                   fnmatch(expand_one(pattern, true).c_str(), word.c_str(), FNM_EXTMATCH) == 0);
      }
      if (matches) return run_list(item.children);
      if (!ShellScript::is_known(word)) {
        return both(
            names_of({Truth::kUnknown, names_in(word), false}, node.where),
            [&] { return run_list(item.children); }, [&] { return run_case(node, at + 1); });
      }
    }
    return ShellCondition::of(true);
  }
  ShellCondition run_for(const ShellNode& node) {
    ShellItems values;
    for (size_t i = 1; i < node.words.size(); ++i) {
      for (ShellItem& item : expand(node.words[i])) values.push_back(std::move(item));
    }
    const std::string name = expand_one(node.words[0]);
    for (size_t i = 0; i < std::min<size_t>(values.size(), kMostRounds) && !stopped(); ++i) {
      assign(name, {{values[i]}});
      (void)run_list(node.children[0].children);
      if (state_.broken) {
        state_.broken = false;
        break;
      }
    }
    return ShellCondition::of(true);
  }
  // Options are parsed in such loops, machines are waited for: one that cannot be known does not
  // run.
  ShellCondition run_while(const ShellNode& node) {
    for (int i = 0; i < kMostRounds && !stopped(); ++i) {
      const ShellCondition condition = run_list(node.children[0].children);
      if (condition.truth != Truth::kTrue) break;
      (void)run_list(node.children[1].children);
      if (std::exchange(state_.broken, false)) break;
    }
    return ShellCondition::of(true);
  }
  ShellCondition test(const std::vector<ShellWord>& words) {
    std::vector<TestWord> expanded;
    expanded.reserve(words.size());
    for (const ShellWord& word : words) {
      expanded.push_back({expand_one(word), expand_one(word, true)});
    }
    return tested(std::move(expanded));
  }
  ShellCondition tested(std::vector<TestWord> words) {
    ShellTest test(
        std::move(words),
        {[this](const std::string& text) { return names_in(text); },
         [this](const std::string& text) { return unset_in(text) != nullptr; },
         [this](const std::string& text, const std::string& other) { add_compared(text, other); }});
    return test.value();
  }

  // ---- commands ----

  void run_assignments(const ShellNode& node) {
    for (const ShellAssignment& each : node.assignments) run_assignment(each);
  }
  void run_assignment(const ShellAssignment& made) {
    const ShellVariable* known = made.adds || made.indexed ? find(made.name) : nullptr;
    ShellVariable value = known == nullptr ? ShellVariable{} : *known;
    if (made.array) {
      add_elements(made, value);
    } else if (made.indexed) {
      value.set(expand_one({made.index, made.where}), {expand_one(made.values[0]), made.where});
    } else {
      const std::string text = expand_one(made.values[0]);
      if (value.items.empty()) value.items.push_back({"", made.where});
      value.items[0].text += text;
    }
    assign(made.name, std::move(value));
  }
  void add_elements(const ShellAssignment& made, ShellVariable& value) {
    value.array = true;
    for (const ShellWord& word : made.values) {
      const size_t close = word.raw.find("]=");
      if (word.raw.starts_with("[") && close != std::string::npos) {
        value.set(expand_one({word.raw.substr(1, close - 1), word.where}),
                  {expand_one({word.raw.substr(close + 2), word.where}), made.where});
        continue;
      }
      for (ShellItem& item : expand(word)) value.items.push_back(std::move(item));
    }
  }
  ShellCondition run_command(const ShellNode& node) {
    ShellItems words;
    for (const ShellWord& word : node.words) {
      for (ShellItem& item : expand(word)) words.push_back(std::move(item));
    }
    if (words.empty()) {
      run_assignments(node);
      return ShellCondition::of(true);
    }
    const std::string name = words[0].text;
    if (const auto function = state_.functions.find(name); function != state_.functions.end()) {
      return call(*function->second, words);
    }
    if (const BuiltIn run = built_in(name)) return (this->*run)(node, words);
    if (is_shell(name) && node.heredoc) {
      run_made(*node.heredoc, node.where);
      return ShellCondition::of(true);
    }
    return run_program(node, words);
  }
  ShellCondition call(const ShellNode& body, const ShellItems& words) {
    if (++depth_ > kDeepestCall) fail(body.where, "functions within functions, too deep");
    const auto outer = state_.variables.find("@");
    const std::optional<ShellVariable> before =
        outer == state_.variables.end() ? std::nullopt : std::optional(outer->second);
    set_arguments({words.begin() + 1, words.end()});
    ShellCondition result = run_node(body);
    state_.returned = false;
    if (before) {
      set_arguments(before->items);
    } else {
      set_arguments({});
      state_.variables.erase("@");
    }
    --depth_;
    return result;
  }
  void set_arguments(const ShellItems& items) {
    for (int i = 1; state_.variables.erase(fmt::format("{}", i)) > 0; ++i) {
    }
    for (size_t i = 0; i < items.size(); ++i) {
      state_.variables[fmt::format("{}", i + 1)] = {{items[i]}};
    }
    state_.variables["@"] = {items, {}, true};
  }

  using BuiltIn = ShellCondition (ShellRun::*)(const ShellNode&, const ShellItems&);

  // Null where the shell has no such command of its own. Steps that say nothing of what trains
  // count as such.
  static BuiltIn built_in(const std::string& name) {
    static const std::map<std::string_view, BuiltIn> kAll{
        {"export", &ShellRun::run_declare},  {"declare", &ShellRun::run_declare},
        {"local", &ShellRun::run_declare},   {"readonly", &ShellRun::run_declare},
        {"typeset", &ShellRun::run_declare}, {"[", &ShellRun::run_test},
        {"test", &ShellRun::run_test},       {"true", &ShellRun::run_silent},
        {":", &ShellRun::run_silent},        {"false", &ShellRun::run_false},
        {"echo", &ShellRun::run_echo},       {"printf", &ShellRun::run_echo},
        {"let", &ShellRun::run_let},         {"expr", &ShellRun::run_expr},
        {"eval", &ShellRun::run_eval},       {"source", &ShellRun::run_source},
        {".", &ShellRun::run_source},        {"cat", &ShellRun::run_printing},
        {"pwd", &ShellRun::run_printing},    {"exit", &ShellRun::run_exit},
        {"return", &ShellRun::run_return},   {"break", &ShellRun::run_break},
        {"continue", &ShellRun::run_silent}, {"shift", &ShellRun::run_shift},
        {"set", &ShellRun::run_set},         {"unset", &ShellRun::run_unset},
        {"read", &ShellRun::run_read},       {"cd", &ShellRun::run_silent},
        {"mkdir", &ShellRun::run_silent},    {"trap", &ShellRun::run_silent},
        {"ulimit", &ShellRun::run_silent},   {"sleep", &ShellRun::run_silent},
        {"rm", &ShellRun::run_silent},       {"module", &ShellRun::run_silent},
        {"wait", &ShellRun::run_silent},     {"tee", &ShellRun::run_silent},
        {"touch", &ShellRun::run_silent},    {"shopt", &ShellRun::run_silent},
        {"conda", &ShellRun::run_silent}};
    const auto found = kAll.find(name);
    return found == kAll.end() ? nullptr : found->second;
  }
  ShellCondition run_silent(const ShellNode&, const ShellItems&) {
    return ShellCondition::of(true);
  }
  ShellCondition run_false(const ShellNode&, const ShellItems&) {
    return ShellCondition::of(false);
  }
  ShellCondition run_printing(const ShellNode&, const ShellItems&) {
    state_.output += mark({});
    return ShellCondition::of(true);
  }
  ShellCondition run_declare(const ShellNode& node, const ShellItems& words) {
    run_assignments(node);
    for (size_t i = 1; i < words.size(); ++i) {
      const bool option = words[i].text.starts_with("-");
      if (words[0].text != "export" && !option) assign(words[i].text, {});
    }
    return ShellCondition::of(true);
  }
  ShellCondition run_test(const ShellNode&, const ShellItems& words) {
    return tested(words_of_test(words));
  }
  ShellCondition run_let(const ShellNode& node, const ShellItems& words) {
    return truth_of(calculate(text_behind(words, 1), node.where));
  }
  ShellCondition run_eval(const ShellNode& node, const ShellItems& words) {
    run_made(text_behind(words, 1), node.where);
    return ShellCondition::of(true);
  }
  ShellCondition run_exit(const ShellNode&, const ShellItems&) {
    state_.exited = true;
    return ShellCondition::of(true);
  }
  ShellCondition run_break(const ShellNode&, const ShellItems&) {
    state_.broken = true;
    return ShellCondition::of(true);
  }
  ShellCondition run_return(const ShellNode&, const ShellItems& words) {
    state_.returned = true;
    if (words.size() < 2) return ShellCondition::of(true);
    return ShellScript::is_known(words[1].text) ? ShellCondition::of(words[1].text == "0")
                                                : ShellCondition{};
  }
  ShellCondition run_shift(const ShellNode&, const ShellItems& words) {
    const ShellVariable* all = find("@");
    const size_t by = words.size() > 1 ? std::strtoul(words[1].text.c_str(), nullptr, 10) : 1;
    if (all != nullptr) {
      const ShellItems items = all->items;
      set_arguments({items.begin() + static_cast<long>(std::min(by, items.size())), items.end()});
    }
    return ShellCondition::of(true);
  }
  ShellCondition run_set(const ShellNode&, const ShellItems& words) {
    if (words.size() > 1 && words[1].text == "--") set_arguments({words.begin() + 2, words.end()});
    return ShellCondition::of(true);
  }
  ShellCondition run_unset(const ShellNode&, const ShellItems& words) {
    for (const ShellItem& word : words) state_.variables.erase(word.text);
    return ShellCondition::of(true);
  }
  ShellCondition run_read(const ShellNode&, const ShellItems& words) {
    for (size_t i = 1; i < words.size(); ++i) {
      if (!words[i].text.starts_with("-")) assign(words[i].text, {{{mark({}), words[i].where}}});
    }
    return ShellCondition::of(true);
  }
  ShellCondition run_echo(const ShellNode&, const ShellItems& words) {
    size_t first = 1;
    while (first < words.size() && (words[first].text == "-n" || words[first].text == "-e"))
      ++first;
    const bool formats = words[0].text == "printf";
    const std::string text = text_behind(words, formats ? first + 1 : first);
    const bool plain = !formats || (words.size() > first && words[first].text.starts_with("%s"));
    state_.output += plain ? text + "\n" : mark_of({text});
    return ShellCondition::of(true);
  }
  ShellCondition run_expr(const ShellNode& node, const ShellItems& words) {
    state_.output += calculate(text_behind(words, 1), node.where);
    return ShellCondition::of(true);
  }
  ShellCondition run_source(const ShellNode& node, const ShellItems& words) {
    const std::string path = words.size() > 1 ? words[1].text : "";
    const std::string said =
        fmt::format("{} (line {})", script_.readable(path), node.where.location().line);
    // A folder that is not known is the script's own.
    const size_t known = path.rfind('\x02');
    std::string plain = known == std::string::npos ? path : path.substr(known + 1);
    if (known != std::string::npos) plain.erase(0, plain.find_first_not_of('/'));
    const auto text = ShellScript::is_known(plain) && !plain.empty() && ++depth_ < kDeepestCall
                          ? reader_(plain)
                          : std::nullopt;
    if (!text) {
      script_.not_sourced.push_back(said);
      return ShellCondition::of(true);
    }
    texts_.push_back({plain, *text});
    run_text(texts_.back());
    state_.returned = false;
    --depth_;
    return ShellCondition::of(true);
  }

  // A program with its arguments; a text for another shell among them runs in its place.
  ShellCondition run_program(const ShellNode& node, const ShellItems& words) {
    for (size_t i = 1; i < words.size(); ++i) {
      if (is_script(words, i)) {
        if (++depth_ > kDeepestCall) fail(node.where, "commands within commands, too deep");
        const size_t before = script_.commands.size();
        run_made(words[i].text, words[i].where);
        add_launcher(words, i, before);
        --depth_;
        return ShellCondition::of(true);
      }
    }
    ShellCommand command{{}, state_.conditions};
    for (const ShellItem& word : words) {
      const ShellPlace& where = word.where.source == nullptr ? node.where : word.where;
      command.words.push_back({word.text, where.location()});
    }
    script_.commands.push_back(std::move(command));
    return {};
  }
  // srun's own sizes come before the commands that it starts.
  void add_launcher(const ShellItems& words, size_t script, size_t before) {
    for (size_t i = before; i < script_.commands.size(); ++i) {
      std::vector<ShellValue> all;
      for (size_t j = 0; j + 1 < script; ++j) {
        const ShellPlace& where = words[j].where;
        all.push_back({words[j].text, where.source == nullptr ? Location{} : where.location()});
      }
      std::vector<ShellValue>& own = script_.commands[i].words;
      own.insert(own.begin(), all.begin(), all.end());
    }
  }

  const ShellReader& reader_;
  std::deque<ShellText> texts_;
  std::deque<std::vector<ShellNode>> trees_;
  int steps_ = 0;
  int depth_ = 0;
};

}  // namespace

ShellScript evaluate_shell(const std::string& file, const std::string& text,
                           const std::map<std::string, std::string>& given,
                           const ShellReader& reader) {
  std::string plain = text;  // without letters that are marks here, or ends of lines elsewhere
  std::erase_if(plain,
                [](char c) { return c == kShellMarkBegin || c == kShellMarkEnd || c == '\r'; });
  ShellScript script;
  ShellRun(script, given, reader).run(file, plain);
  return script;
}

}  // namespace pipesim
