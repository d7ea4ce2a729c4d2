// The three ways in which pipesim fails, as exceptions; only `app/` prints them and chooses the
// exit code.
//
// InputError: what a person wrote is wrong; says where, what was expected and the nearest valid
// name. InfeasibleError: the request is understood but cannot be met; says why and the nearest
// feasible one. LogicError: pipesim itself is at fault.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "sim/core/shared_text.h"

namespace pipesim {

// A place in something a person wrote. Line and column count from 1; 0 means "not known".
struct Location {
  std::string file;
  int line = 0;
  int column = 0;
  SharedLine text;  // the source line, shown above the caret; may be empty
};

class InputError : public std::runtime_error {
 public:
  // `what()` is "file:line:column: message", then the source line with a caret when it is known.
  InputError(const Location& where, std::string_view message);
  [[nodiscard]] const Location& where() const { return where_; }
  // Alone, for a place in what nobody wrote.
  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  Location where_;
  std::string message_;
};

class InfeasibleError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class LogicError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace pipesim
