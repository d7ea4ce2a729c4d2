// The keys that readers asked samples for, as a tree.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "sim/read/observer.h"

namespace pipesim {

// A place in a text: what readers take there, and the keys below it.
struct ObservedPlace {
  std::set<ValueKind> kinds;
  double minimum = 0;  // of numbers, the least of all
  std::set<std::string> choices;
  std::set<std::string> units;  // of quantities
  std::set<std::string> names;  // that samples chose as keys; below `any`
  std::map<std::string, std::unique_ptr<ObservedPlace>> keys;
  std::unique_ptr<ObservedPlace> item;  // of a list
  std::unique_ptr<ObservedPlace> any;   // below a free name

  [[nodiscard]] bool has(ValueKind kind) const { return kinds.contains(kind); }
};

// Notes what is asked of the texts that it follows, one after another, and of no others.
class ObservedText : public ReadObserver {
 public:
  // From here on the text of this name.
  void follow(std::string name) { name_ = std::move(name); }

  void asked(const std::string& name, const std::string& path, const std::string& key) override;
  void read(const std::string& name, const std::string& path, const ValueRead& value) override;

  [[nodiscard]] ObservedPlace& root() { return root_; }

 private:
  ObservedPlace& at(std::string_view path);

  std::string name_;
  ObservedPlace root_;
};

}  // namespace pipesim
