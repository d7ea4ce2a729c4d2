// Expressions of $(( )), let and expr over whole numbers. Private to this folder.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace pipesim {

class ShellCalculation {
 public:
  using Lookup = std::function<std::string(const std::string& name)>;
  using Assign = std::function<void(const std::string& name, long value)>;
  ShellCalculation(std::string_view text, Lookup lookup, Assign assign)
      : text_(text), lookup_(std::move(lookup)), assign_(std::move(assign)) {}

  // Nothing where a part is unknown or it is no expression.
  std::optional<long> value();
  // The marks of operands that are not known.
  [[nodiscard]] const std::string& unknown() const { return unknown_; }

 private:
  void skip();
  bool take(std::string_view sign);
  long choice(int depth);
  long binary(int rank, int depth);
  long applied(std::string_view sign, long left, long right);
  long unary(int depth);
  long operand();
  long number(const std::string& digits);
  long variable(const std::string& name);
  long changed_by(const std::string& name, char sign, long value);

  std::string_view text_;
  Lookup lookup_;
  Assign assign_;
  size_t at_ = 0;
  bool known_ = true;
  std::string unknown_;
};

}  // namespace pipesim
