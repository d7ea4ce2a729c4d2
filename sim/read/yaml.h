// Strict reading of YAML: every value knows where it stands, and every mistake is an InputError
// there.
//
// A key that is unknown, double or left unread is refused. So is a value of the wrong kind, out of
// range or without its unit. The message has line, column, what was expected and the nearest valid
// name. Dashes in keys count as underscores. A value set below a name (`cluster: dgx-h100`) changes
// the named entry and keeps the name. Text that is no UTF-8, and text that YAML would leave out or
// write out without end, is refused before (sim/read/guarded_yaml.h). Values given on the command
// line (`path.to.key=value`) replace those of the file and are located on the command line.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <yaml-cpp/yaml.h>

#include "sim/core/error.h"
#include "sim/core/units.h"

namespace pipesim {

// A value that replaces a text's: one `path.to.key=value` of the command line, or one that a sweep
// sets.
struct Override {
  std::string path;
  std::string value;
  Location where;  // of the first letter of the path
  // Location of the value, where it is not behind the path and '='.
  std::optional<Location> value_where = {};
};

// Splits "path.to.key=value"; InputError when there is no '=' or an empty key.
Override parse_override(const std::string& text, const Location& where);

class YamlValue;

// The text that values are read from. Keep it alive while YamlValues are in use.
class YamlSource {
 public:
  // `name` is what messages call the text: a file's path.
  YamlSource(std::string name, const std::string& text, std::vector<Override> overrides = {});
  // InputError, located at `asked`, when the file cannot be read (sim/core/input_text.h).
  static YamlSource from_file(const std::string& path, const Location& asked,
                              std::vector<Override> overrides = {});

  // The same text with other values over it. Both tie their memory together: what is made of one
  // text is freed when all of it is.
  [[nodiscard]] YamlSource with(std::vector<Override> overrides) const;

  [[nodiscard]] YamlValue root() const;
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<Override>& overrides() const { return overrides_; }

 private:
  friend class YamlValue;
  // Location of the value of a path, or of the key that it ends in.
  [[nodiscard]] Location locate(const YAML::Mark& mark, const std::string& path,
                                bool key = false) const;
  void apply(const Override& replacement);

  std::string name_;
  SharedLines lines_;
  std::vector<Override> overrides_;
  YAML::Node root_;
};

// A node together with its path.
class YamlMap;

class YamlValue {
 public:
  YamlValue(const YamlSource& source, const YAML::Node& node, std::string path);

  [[nodiscard]] Location where() const;
  [[noreturn]] void fail(const std::string& message) const;
  // The same of the key, for a value of a map.
  [[nodiscard]] Location key_where() const;
  [[noreturn]] void fail_key(const std::string& message) const;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const YAML::Node& node() const { return node_; }

  // A node made from this value; where it has no place of its own, it stands at this one's.
  [[nodiscard]] YamlValue made_of(const YAML::Node& node) const {
    YamlValue made(*source_, node, path_);
    made.mark_ = mark_;
    return made;
  }

  [[nodiscard]] bool is_map() const { return node_.IsMap(); }
  [[nodiscard]] bool is_list() const { return node_.IsSequence(); }
  [[nodiscard]] bool is_scalar() const { return node_.IsScalar(); }
  [[nodiscard]] bool is_null() const { return node_.IsNull(); }

  [[nodiscard]] std::string text() const;
  // One of `choices`.
  [[nodiscard]] std::string choice(std::span<const std::string> choices) const;
  [[nodiscard]] bool flag() const;
  // Also as 8k, 1.5M, 2G or 15T, of thousands.
  [[nodiscard]] long integer(long minimum, long maximum) const;
  // The same of a sequence's tokens, in which 8k is 8192.
  [[nodiscard]] long tokens(long minimum, long maximum) const;
  // A finite number in [minimum, maximum], without a unit.
  [[nodiscard]] double number(double minimum, double maximum) const;
  // Quantities are finite, not negative, and carry a unit; a plain 0 needs none.
  [[nodiscard]] Seconds seconds() const;
  [[nodiscard]] Bytes bytes() const;
  [[nodiscard]] BytesPerSecond bandwidth() const;
  [[nodiscard]] Watts power() const;
  [[nodiscard]] FlopsPerSecond flop_rate() const;
  [[nodiscard]] std::vector<YamlValue> list() const;
  // The value as one line of YAML that reads back as the same. Keys are in alphabetical order,
  // dashes are underscores, so that equal values give equal texts.
  [[nodiscard]] std::string one_line() const;
  // Entries of a map whose keys are names that the file chooses: as written, in its order, each
  // once.
  [[nodiscard]] std::vector<std::pair<std::string, YamlValue>> entries() const;
  // The same of files of others, in which a key may stand twice.
  [[nodiscard]] std::vector<std::pair<std::string, YamlValue>> all_entries() const;

 private:
  [[nodiscard]] long whole_number(long minimum, long maximum, bool binary) const;
  [[nodiscard]] double quantity(const char* what, const char* example,
                                std::span<const std::pair<std::string, double>> units,
                                double most) const;
  friend class YamlMap;
  [[nodiscard]] std::vector<std::pair<std::string, YamlValue>> named_entries(
      const YamlMap& checked) const;

  const YamlSource* source_;
  YAML::Node node_;
  std::string path_;
  YAML::Mark mark_;
  YAML::Mark key_mark_ = YAML::Mark::null_mark();
};

// Reads the keys of a map; `finish` refuses those that nobody asked for.
class YamlMap {
 public:
  // InputError when `value` is no map or has a key twice.
  explicit YamlMap(const YamlValue& value) : YamlMap(value, false) {}

  [[nodiscard]] std::optional<YamlValue> find(const std::string& key);
  [[nodiscard]] YamlValue require(const std::string& key, const std::string& what);
  // InputError at the first unread key, naming the nearest of the keys that were asked for.
  void finish() const;
  // Keys that nobody asked for, in the order of the file.
  [[nodiscard]] std::vector<std::pair<std::string, YamlValue>> unread() const;
  [[nodiscard]] const YamlValue& value() const { return value_; }

 private:
  friend class YamlValue;
  YamlMap(const YamlValue& value, bool repeats);
  struct Entry {
    std::string key;
    YamlValue value;
    bool read = false;
  };
  void refuse_double_keys() const;

  YamlValue value_;
  std::vector<Entry> entries_;
  std::vector<std::string> asked_;
};

// Sets a flag that has a default.
void set_flag(YamlMap& map, const char* key, bool& flag);

}  // namespace pipesim
