// The one exception, and the stop and the progress of long work.
//
// All names are in namespace pipesim. Nothing here prints or exits. The same input gives the same
// numbers to the last bit.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>

namespace pipesim {

namespace api {}
#ifndef PIPESIM_LIBRARY  // inside the library pipesim has names of its own
using namespace api;
#endif

}  // namespace pipesim

namespace pipesim::api {

enum class ErrorKind {
  kInput,       // what a person wrote is wrong: where, and what was expected
  kInfeasible,  // understood, but it cannot be met: why, and what could be
  kStopped,     // Watch::stop was set
  kFault,       // pipesim is at fault, or a schedule of the program's own
};

class Error : public std::runtime_error {
 public:
  // `what()` is for a person: of kInput "file:line:column: message", then the line with a caret.
  Error(ErrorKind kind, const std::string& what, std::string file = "", int line = 0,
        int column = 0);
  ~Error() override;

  ErrorKind kind;
  std::string file;  // a path, or a name in angle brackets; empty where it is no place
  int line = 0;      // from 1; 0: not known
  int column = 0;    // likewise
};

// A person's hold on work that takes long.
struct Watch {
  // Ends the work within a second of being set, from any thread, with an Error of kStopped.
  const std::atomic<bool>* stop = nullptr;
  // Called now and then, from one thread at a time, not always the caller's.
  std::function<void(std::size_t done, std::size_t all)> progress = nullptr;
};

}  // namespace pipesim::api
