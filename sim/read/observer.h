// Watches readers ask a text for keys of maps and for kinds of values. Schemas are made
// of it (sim/schema/schema.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pipesim {

enum class ValueKind : std::uint8_t {
  kText,
  kChoice,
  kFlag,
  kInteger,
  kNumber,
  kQuantity,
  kList,
  kMap,
  kNamedMap  // its keys are names that the file chooses
};

struct ValueRead {
  ValueKind kind;
  double minimum = 0;                   // of a number
  std::vector<std::string> words = {};  // choices, units, or the names of a map
};

class ReadObserver {
 public:
  virtual ~ReadObserver() = default;
  // `path` is that of a map in the text `name`; a path as in a scenario: "parallel.balance".
  virtual void asked(const std::string& name, const std::string& path, const std::string& key) = 0;
  virtual void read(const std::string& name, const std::string& path, const ValueRead& value) = 0;
};

// While it lives, what this thread's readers ask goes to the observer.
class Observing {
 public:
  explicit Observing(ReadObserver& observer);
  Observing(const Observing&) = delete;
  Observing& operator=(const Observing&) = delete;
  ~Observing();

  // Nothing where nobody observes.
  static ReadObserver* now();

 private:
  ReadObserver* before_;
};

}  // namespace pipesim
