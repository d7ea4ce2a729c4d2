// JSON files of other programs as values that know where they stand.
//
// A file is read as a whole, up to the size in sim/core/input_text.h and 64 deep. A list of events
// too large to keep (a profiler's trace) can be handed over element by element, each then dropped.
// Text that is no JSON, is too large or too deep is an InputError with file, line and column. So is
// a value of another kind than its reader expects. O(bytes).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/error.h"

namespace pipesim {

inline constexpr int kJsonDepth = 64;

struct JsonNode {
  enum class Kind { kNull, kFlag, kNumber, kText, kList, kMap };
  Kind kind = Kind::kNull;
  int line = 0;
  int column = 0;
  double number = 0;      // of a flag 0 or 1
  std::string text = {};  // of a text
  std::string key = {};   // within a map
  std::vector<JsonNode> nodes = {};
};

class JsonValue {
 public:
  JsonValue(const std::string& file, const JsonNode& node) : file_(&file), node_(&node) {}

  [[nodiscard]] Location where() const { return {*file_, node_->line, node_->column, ""}; }
  [[noreturn]] void fail(std::string_view message) const;

  [[nodiscard]] bool is_list() const { return node_->kind == JsonNode::Kind::kList; }
  [[nodiscard]] bool is_map() const { return node_->kind == JsonNode::Kind::kMap; }
  [[nodiscard]] bool is_number() const { return node_->kind == JsonNode::Kind::kNumber; }
  [[nodiscard]] bool is_text() const { return node_->kind == JsonNode::Kind::kText; }
  [[nodiscard]] bool is_null() const { return node_->kind == JsonNode::Kind::kNull; }

  [[nodiscard]] const std::string& key() const { return node_->key; }
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] bool flag() const;
  [[nodiscard]] double number(double least, double most) const;
  [[nodiscard]] long integer(long least, long most) const;
  [[nodiscard]] std::vector<JsonValue> values() const;  // of a list or a map
  // The first value of this key in a map.
  [[nodiscard]] std::optional<JsonValue> find(std::string_view key) const;
  // `what` says what is missing where it is not there.
  [[nodiscard]] JsonValue require(std::string_view key, std::string_view what) const;

 private:
  const std::string* file_;
  const JsonNode* node_;
};

class JsonFile {
 public:
  // `each` gets the elements of the list under the top-level key `streamed`, which are not kept.
  using Each = std::function<void(const JsonValue&)>;

  JsonFile(std::string name, std::string_view text, std::string_view streamed = {},
           const Each& each = {});
  // `asked` locates the request, for when the file cannot be read (sim/core/input_text.h).
  static JsonFile read(const std::string& path, const Location& asked,
                       std::string_view streamed = {}, const Each& each = {});

  [[nodiscard]] JsonValue root() const { return {name_, root_}; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::string name_;
  JsonNode root_;
};

}  // namespace pipesim
