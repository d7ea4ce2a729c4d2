// [ ] and [[ ]]: what is true, false or not known. Private to this folder.
#pragma once

#include "sim/interop/shell/state.h"

namespace pipesim {

// A word of a test: expanded, and with its quoted letters escaped for patterns.
struct TestWord {
  std::string text;
  std::string pattern;
};

class ShellTest {
 public:
  // The names that a text depends on, whether it is an unset variable, and who hears that a text
  // from outside is compared with another.
  struct Knowledge {
    std::function<std::vector<std::string>(const std::string&)> names;
    std::function<bool(const std::string&)> unset;
    std::function<void(const std::string&, const std::string&)> compared;
  };
  ShellTest(std::vector<TestWord> words, Knowledge knowledge)
      : words_(std::move(words)), knowledge_(std::move(knowledge)) {}

  ShellCondition value();

 private:
  ShellCondition either(int depth);
  ShellCondition both(int depth);
  ShellCondition negation(int depth);
  ShellCondition primary(int depth);
  ShellCondition unary(char letter, const std::string& text) const;
  ShellCondition binary(const std::string& left, const std::string& sign,
                        const TestWord& right) const;
  [[nodiscard]] ShellCondition unknown_pair(const std::string& left, const std::string& sign,
                                            const std::string& right) const;
  [[nodiscard]] ShellCondition unknown(const std::string& text) const;
  [[nodiscard]] bool take(std::string_view a, std::string_view b);
  [[nodiscard]] std::string ahead(size_t by = 0) const {
    return at_ + by < words_.size() ? words_[at_ + by].text : "";
  }

  std::vector<TestWord> words_;
  Knowledge knowledge_;
  size_t at_ = 0;
};

std::vector<TestWord> words_of_test(const ShellItems& words);

// Two conditions joined by && or ||.
ShellCondition joined(const ShellCondition& a, const ShellCondition& b, bool both);

}  // namespace pipesim
