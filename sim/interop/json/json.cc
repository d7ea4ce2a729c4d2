#include "sim/interop/json/json.h"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/core/input_text.h"

namespace pipesim {
namespace {

// Where the next character stands, counted as they are taken.
struct Cursor {
  int line = 1;
  int column = 1;
};

// The parser's way through the text, which counts. The parser has taken one character beyond a
// number, and none beyond anything else.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, Cursor* next, Cursor* last)
      : at_(at), next_(next), last_(last) {}
  const char& operator*() const { return *at_; }
  CountingIterator& operator++() {
    *last_ = *next_;
    if (*at_ == '\n') {
      *next_ = {next_->line + 1, 1};
    } else {
      ++next_->column;
    }
    ++at_;
    return *this;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }
  friend bool operator!=(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ != b.at_;
  }

 private:
  const char* at_;
  Cursor* next_;
  Cursor* last_;  // of the character that was taken last
};

class Builder {
 public:
  Builder(const std::string& name, std::string_view streamed, const JsonFile::Each& each,
          const Cursor& last, JsonNode& root)
      : name_(name), streamed_(streamed), each_(each), last_(last), root_(root) {}

  // Each returns whether to go on.
  bool null() {
    put(JsonNode::Kind::kNull, 3);
    return true;
  }
  bool boolean(bool value) {
    put(JsonNode::Kind::kFlag, value ? 3 : 4).number = value ? 1 : 0;
    return true;
  }
  bool number_integer(std::int64_t value) {
    return number(static_cast<double>(value), fmt::formatted_size("{}", value));
  }
  bool number_unsigned(std::uint64_t value) {
    return number(static_cast<double>(value), fmt::formatted_size("{}", value));
  }
  bool number_float(double value, const std::string& text) { return number(value, text.size()); }
  bool string(std::string& text) {
    put(JsonNode::Kind::kText, text.size() + 1).text = std::move(text);
    return true;
  }
  bool binary(nlohmann::json::binary_t& /*bytes*/) { return false; }  // not of JSON
  bool start_object(std::size_t /*size*/) { return open(JsonNode::Kind::kMap); }
  bool start_array(std::size_t /*size*/) { return open(JsonNode::Kind::kList); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t /*byte*/, const std::string& token,
                   const nlohmann::json::exception& error) {
    const std::string text = error.what();
    const size_t colon = text.rfind("; ");
    const std::string reason = colon == std::string::npos ? "" : text.substr(colon);
    throw InputError({name_, last_.line, last_.column, ""},
                     fmt::format("not valid JSON near '{}'{}", token, reason));
  }

 private:
  JsonNode& put(JsonNode::Kind kind, size_t back) {
    JsonNode node{.kind = kind,
                  .line = last_.line,
                  .column = std::max(1, last_.column - static_cast<int>(back)),
                  .key = std::exchange(key_, {})};
    if (open_.empty()) {
      root_ = std::move(node);
      return root_;
    }
    hand_over();
    return open_.back()->nodes.emplace_back(std::move(node));
  }
  // The one before it is complete once another is put beside it.
  void hand_over() {
    if (open_.size() != 2 || !each_ || open_.back()->key != streamed_) return;
    auto& nodes = open_.back()->nodes;
    if (nodes.empty()) return;
    each_({name_, nodes.back()});
    nodes.clear();
  }
  bool number(double value, size_t length) {
    put(JsonNode::Kind::kNumber, length).number = value;
    return true;
  }
  bool open(JsonNode::Kind kind) {
    if (static_cast<int>(open_.size()) >= kJsonDepth) {
      throw InputError({name_, last_.line, last_.column, ""},
                       fmt::format("nested deeper than {}", kJsonDepth));
    }
    open_.push_back(&put(kind, 0));
    return true;
  }
  bool close() {
    hand_over();
    open_.pop_back();
    return true;
  }

  const std::string& name_;
  std::string_view streamed_;
  const JsonFile::Each& each_;
  const Cursor& last_;
  JsonNode& root_;
  std::vector<JsonNode*> open_;
  std::string key_;
};

std::string_view name_of(JsonNode::Kind kind) {
  constexpr std::string_view kNames[] = {"null",   "true or false", "a number",
                                         "a text", "a list",        "a map"};
  return kNames[static_cast<size_t>(kind)];
}

[[noreturn]] void expected(const JsonValue& value, const JsonNode& node, std::string_view what) {
  value.fail(fmt::format("expected {}, not {}", what, name_of(node.kind)));
}

}  // namespace

void JsonValue::fail(std::string_view message) const {
  throw InputError(where(), node_->key.empty() ? std::string(message)
                                               : fmt::format("{}: {}", node_->key, message));
}

const std::string& JsonValue::text() const {
  if (!is_text()) expected(*this, *node_, "a text");
  return node_->text;
}

bool JsonValue::flag() const {
  if (node_->kind != JsonNode::Kind::kFlag) expected(*this, *node_, "true or false");
  return node_->number != 0;
}

double JsonValue::number(double least, double most) const {
  if (!is_number()) expected(*this, *node_, "a number");
  if (node_->number >= least && node_->number <= most) return node_->number;
  fail(fmt::format("expected a number from {} to {}, not {}", least, most, node_->number));
}

long JsonValue::integer(long least, long most) const {
  if (!is_number()) expected(*this, *node_, "a whole number");
  const double value = node_->number;
  if (value == std::floor(value) && value >= static_cast<double>(least) &&
      value <= static_cast<double>(most)) {
    return static_cast<long>(value);
  }
  fail(fmt::format("expected a whole number from {} to {}, not {}", least, most, value));
}

std::vector<JsonValue> JsonValue::values() const {
  if (!is_list() && !is_map()) expected(*this, *node_, "a list or a map");
  std::vector<JsonValue> values;
  values.reserve(node_->nodes.size());
  for (const JsonNode& node : node_->nodes) values.emplace_back(*file_, node);
  return values;
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  if (!is_map()) expected(*this, *node_, "a map");
  for (const JsonNode& node : node_->nodes) {
    if (node.key == key) return JsonValue(*file_, node);
  }
  return std::nullopt;
}

JsonValue JsonValue::require(std::string_view key, std::string_view what) const {
  if (auto found = find(key)) return *found;
  fail(fmt::format("'{}' is missing: {}", key, what));
}

JsonFile::JsonFile(std::string name, std::string_view text, std::string_view streamed,
                   const Each& each)
    : name_(std::move(name)) {
  constexpr std::string_view kGzip = "\x1f\x8b";
  if (text.starts_with(kGzip)) {
    throw InputError({name_, 1, 1, ""}, "compressed with gzip: unpack it first (gunzip)");
  }
  Cursor next;
  Cursor last;
  Builder builder(name_, streamed, each, last, root_);
  const CountingIterator begin(text.data(), &next, &last);
  const CountingIterator end(text.data() + text.size(), &next, &last);
  nlohmann::json::sax_parse(begin, end, &builder);
}

JsonFile JsonFile::read(const std::string& path, const Location& asked, std::string_view streamed,
                        const Each& each) {
  const std::string text = read_input(path, asked);
  return {path, text, streamed, each};
}

}  // namespace pipesim
