// The inside of the reader of Hugging Face's config.json.
//
// models/catalog/architectures.yaml says which key of a file means what; its head describes its
// form. A file is a few maps (HfMap). An entry of the table (Architecture) has formulas over their
// keys. A derivation evaluates them to the keys of `model:` (docs/reference/scenario.md).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/read/yaml.h"

namespace pipesim {

using KeyedValues = std::vector<std::pair<std::string, YamlValue>>;

// One map of a config.json, in which null stands for a key that is not there.
class HfMap {
 public:
  explicit HfMap(const YamlValue& value, HfMap* outer = nullptr) : map_(value), outer_(outer) {}

  // `a.b` is key b of the map under a, `outer.a` key a of the map around this one.
  std::optional<YamlValue> find(const std::string& key);
  [[nodiscard]] const YamlValue& value() const { return map_.value(); }
  // Keys that nobody asked for, those of maps under a key included.
  [[nodiscard]] KeyedValues unread() const;

 private:
  YamlMap map_;
  HfMap* outer_;
  std::map<std::string, std::unique_ptr<HfMap>> nested_;
};

// An entry of the table, together with the entries that it is like.
struct Architecture {
  // Keys of files under one name for formulas; the first that the file has counts.
  std::map<std::string, std::vector<std::string>> spellings;
  std::map<std::string, YamlValue> defaults;  // formulas of what a file leaves out
  std::map<std::string, YamlValue> model;     // of keys of `model:`, those of a map as `moe.every`
  std::map<std::string, YamlValue> valid;     // the values that a key may have
  std::vector<YamlValue> refused;             // what is not modelled, and when
  std::vector<std::string> no_cost;           // `*` stands for any beginning
};

// The shipped table: read with the first call, alive as long as the program.
class Architectures {
 public:
  static const Architectures& shipped();

  // The entry that reads a class, or a model_type.
  [[nodiscard]] std::optional<Architecture> find(const std::string& name) const;
  [[nodiscard]] Architecture entry(const std::string& key) const;
  // Every class that an entry reads.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  // Maps in which a file may have its text's sizes.
  [[nodiscard]] const std::vector<std::string>& inner() const { return inner_; }
  // The key of `model:` that a file's key speaks of by its name; empty when it speaks of no size.
  [[nodiscard]] std::string spoken_of(const std::string& key) const;

 private:
  Architectures();
  void add(const std::string& key, Architecture& into) const;

  YamlSource source_;
  std::map<std::string, YamlValue> entries_;
  std::map<std::string, std::string> entry_of_name_;
  std::vector<std::string> names_;
  std::vector<std::string> inner_;
  std::vector<std::pair<std::string, std::string>> words_;
};

// The keys of `model:` by an entry's formulas. The keys in `stated` are left to the scenario.
// InputError in the file's terms where one has no value.
YAML::Node derive(const Architecture& architecture, HfMap& file,
                  std::span<const std::string> stated);
// True for a key of no cost that nothing has read.
bool is_of_no_cost(const Architecture& architecture, const std::string& key,
                   const YamlValue& value);
// Refuses the values that the entry refuses.
void refuse_values(const Architecture& architecture, HfMap& file);

}  // namespace pipesim
