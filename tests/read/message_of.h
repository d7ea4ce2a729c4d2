// A reader's message on bad input.
#pragma once

#include <functional>
#include <string>

#include "sim/core/error.h"

namespace pipesim::testing {

// The message of the InputError that `read` throws, or "" when it throws none.
inline std::string message_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace pipesim::testing
