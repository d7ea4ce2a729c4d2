// The state of a script that is evaluated: variables, and what is not known of them. Private to
// this folder.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/interop/shell/script.h"
#include "sim/interop/shell/syntax.h"

namespace pipesim {

// A mark of an unknown value: these around the number of a ShellUnknown.
constexpr char kShellMarkBegin = '\x01';
constexpr char kShellMarkEnd = '\x02';

struct ShellItem {
  std::string text;
  ShellPlace where;
  bool operator==(const ShellItem& other) const { return text == other.text; }
};
using ShellItems = std::vector<ShellItem>;

struct ShellVariable {
  ShellItems items;  // one, but for an array
  std::map<std::string, std::string> keyed = {};
  bool array = false;
  // Sets an element of the array; large numbers and other keys are in `keyed`.
  void set(const std::string& key, ShellItem item);
  bool operator==(const ShellVariable&) const = default;
};

enum class Truth { kFalse, kTrue, kUnknown };

struct ShellCondition {
  Truth truth = Truth::kUnknown;
  std::vector<std::string> names = {};  // that decide it
  bool assumed = false;                 // a variable counts as not set

  static ShellCondition of(bool value) { return {value ? Truth::kTrue : Truth::kFalse}; }
  [[nodiscard]] ShellCondition negated() const;
};

// Everything that a command changes; a branch that may not run changes a copy.
struct ShellState {
  std::map<std::string, ShellVariable> variables;
  std::map<std::string, const ShellNode*> functions;
  std::vector<std::string> conditions;  // of the branch that runs
  std::string output;                   // of echo, where $( ) takes it
  bool exited = false;
  bool returned = false;
  bool broken = false;
};

struct ShellParameter;  // the inside of ${ }

// Expands words. Derived: what runs commands, for $( ).
class ShellWords {
 public:
  ShellWords(ShellScript& script, const std::map<std::string, std::string>& given)
      : script_(script), given_(given) {}
  virtual ~ShellWords() = default;
  ShellWords(const ShellWords&) = delete;
  ShellWords& operator=(const ShellWords&) = delete;

 protected:
  // A word, or as many as its unquoted expansions have.
  ShellItems expand(const ShellWord& word);
  // One text, as an assignment takes it. `pattern`: quoted letters are escaped for fnmatch.
  std::string expand_one(const ShellWord& word, bool pattern = false);

  std::string mark(ShellUnknown unknown);
  // A mark for what follows from unknown texts.
  std::string mark_of(std::initializer_list<std::string_view> texts);
  std::vector<std::string> names_in(std::string_view text) const;
  // The unset variable that the whole text is; null where it is anything else.
  const ShellUnknown* unset_in(std::string_view text) const;

  // A text that is one name from outside has `value` among those that it is compared with.
  void add_compared(const std::string& text, const std::string& value);

  // The value of an expression as in $(( )); a mark where a part of it is unknown.
  std::string calculate(const std::string& expression, const ShellPlace& where);
  const ShellVariable* find(const std::string& name);
  void assign(const std::string& name, ShellVariable value);
  [[noreturn]] static void fail(const ShellPlace& where, const std::string& what);

  // The text that commands would print.
  virtual std::string captured(const std::string& commands, const ShellPlace& where) = 0;

  ShellScript& script_;
  const std::map<std::string, std::string>& given_;
  ShellState state_;
  std::set<std::string> mentioned_;

 private:
  class Fields;
  void expand_parts(const std::string& raw, const ShellPlace& where, bool quoted, Fields& to);
  void expand_dollar(const std::string& part, const ShellPlace& where, bool quoted, Fields& to);
  void expand_otherwise(const ShellParameter& parameter, const ShellItems& items,
                        const ShellPlace& where, bool quoted, Fields& to);
  void expand_braces(const std::string& inside, const ShellPlace& where, bool quoted, Fields& to);
  std::string changed(const std::string& text, const std::string& operation,
                      const ShellPlace& where);
  ShellItem element(const ShellVariable& variable, const std::string& key, const ShellPlace& where);
  ShellItems elements(const std::string& name, const std::string& index, const ShellPlace& where);

  std::map<std::string, ShellVariable> outside_;  // given, or unset and marked
  int depth_ = 0;
};

}  // namespace pipesim
