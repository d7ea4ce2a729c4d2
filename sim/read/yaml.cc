#include "sim/read/yaml.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "sim/core/input_text.h"
#include "sim/core/text.h"
#include "sim/read/guarded_yaml.h"
#include "sim/read/observer.h"
#include "sim/read/short_names.h"

namespace pipesim {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::string kind_of(const YAML::Node& node) {
  if (node.IsMap()) return "a map";
  if (node.IsSequence()) return "a list";
  if (node.IsScalar()) return fmt::format("'{}'", node.Scalar());
  return "nothing";
}

std::optional<double> to_double(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

using Unit = std::pair<std::string, double>;

const std::array<Unit, 9> kTimeUnits{{{"s", 1},
                                      {"ms", 1e-3},
                                      {"us", 1e-6},
                                      {"µs", 1e-6},
                                      {"μs", 1e-6},
                                      {"ns", 1e-9},
                                      {"min", 60},
                                      {"h", 3600},
                                      {"d", 86400}}};
const std::array<Unit, 11> kByteUnits{{{"B", 1},
                                       {"KB", 1e3},
                                       {"MB", 1e6},
                                       {"GB", 1e9},
                                       {"TB", 1e12},
                                       {"KiB", 1024.0},
                                       {"MiB", 1048576.0},
                                       {"GiB", 1073741824.0},
                                       {"TiB", 1099511627776.0},
                                       {"kB", 1e3},
                                       {"PB", 1e15}}};
const std::array<Unit, 23> kBandwidthUnits{{{"B/s", 1},
                                            {"KB/s", 1e3},
                                            {"kB/s", 1e3},
                                            {"KiB/s", 1024.0},
                                            {"MB/s", 1e6},
                                            {"GB/s", 1e9},
                                            {"TB/s", 1e12},
                                            {"MiB/s", 1048576.0},
                                            {"GiB/s", 1073741824.0},
                                            {"TiB/s", 1099511627776.0},
                                            {"MBps", 1e6},
                                            {"GBps", 1e9},
                                            {"TBps", 1e12},
                                            {"kbps", 1e3 / 8},
                                            {"Mb/s", 1e6 / 8},
                                            {"Gb/s", 1e9 / 8},
                                            {"Tb/s", 1e12 / 8},
                                            {"Mbit/s", 1e6 / 8},
                                            {"Gbit/s", 1e9 / 8},
                                            {"Tbit/s", 1e12 / 8},
                                            {"Mbps", 1e6 / 8},
                                            {"Gbps", 1e9 / 8},
                                            {"Tbps", 1e12 / 8}}};
// Below this, in base units, a quantity is a slip.
constexpr double kLeast = 1e-15;

const std::array<Unit, 2> kPowerUnits{{{"W", 1}, {"kW", 1e3}}};
const std::array<Unit, 3> kFlopRateUnits{{{"FLOP/s", 1}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}}};

// True if YAML reads the text as itself without quotes.
bool is_bare(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view(" _-+./").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (text.empty() || std::isalnum(static_cast<unsigned char>(text.front())) == 0) return false;
  if (text == "null" || text == "Null" || text == "NULL") return false;
  return text.back() != ' ' && std::ranges::all_of(text, plain);
}

std::string quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const bool control = static_cast<unsigned char>(c) < 0x20;
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += control ? fmt::format("\\x{:02x}", c) : std::string(1, c);
  }
  return quoted + '"';
}

std::string in_one_line(const YAML::Node& node) {
  if (node.IsScalar()) return is_bare(node.Scalar()) ? node.Scalar() : quoted(node.Scalar());
  std::vector<std::string> parts;
  if (node.IsSequence()) {
    for (const auto& each : node) parts.push_back(in_one_line(each));
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }
  if (!node.IsMap()) return "~";
  for (const auto& item : node) {
    const bool text = item.first.IsScalar();
    parts.push_back((text ? key_in("", item.first.Scalar()) : in_one_line(item.first)) + ": " +
                    in_one_line(item.second));
  }
  std::ranges::sort(parts);
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

// Thousands of a count, as people write them.
struct Multiple {
  std::string_view letters;
  long decimal;
  long binary;  // of tokens of a sequence: 8k is 8192
};
constexpr std::array<Multiple, 3> kMultiples{
    {{"kK", 1000, 1024}, {"M", 1000000, 1048576}, {"BG", 1000000000, 1073741824}}};
constexpr long kTera = 1000000000000;

// A whole number, or a decimal one with a letter behind it that makes it whole: 8k, 1.5M, 15T.
std::optional<long> to_integer(std::string_view text, bool binary) {
  long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
  if (error != std::errc()) return std::nullopt;
  if (rest.empty()) return value;
  const char letter = text.back();
  const auto number = to_double(text.substr(0, text.size() - 1));
  long factor = letter == 'T' ? kTera : 0;
  for (const Multiple& each : kMultiples) {
    if (each.letters.find(letter) != std::string_view::npos) {
      factor = binary ? each.binary : each.decimal;
    }
  }
  constexpr double kMost = 1e18;
  if (!number || factor == 0 || std::abs(*number * static_cast<double>(factor)) > kMost) {
    return std::nullopt;
  }
  const double whole = *number * static_cast<double>(factor);
  if (std::abs(whole - std::round(whole)) > 1e-6 * std::abs(whole)) return std::nullopt;
  return std::lround(whole);
}

// The key under which a name stands where other keys change what it names.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kNameKeys{
    {{"cluster", "name"},
     {"model", "base"},
     {"engine", "name"},
     {"cluster.gpu", "name"},
     {"cost.software", "name"},
     {"recompute", "granularity"}}};

// Replaces the value at a path of a node. Containers on the way are made anew and everything else
// is kept: assigning into a node would change every alias of it.
class Replacing {
 public:
  Replacing(const YAML::Node& value, const Override& given)
      : value_(value), where_(given.where), path_(given.path) {}

  [[nodiscard]] YAML::Node in(const YAML::Node& at, std::span<const std::string> path) const {
    if (path.empty()) return value_;
    if (at.IsSequence()) return in_list(at, path);
    return in_map(at.IsScalar() ? map_of_name(at, path) : at, path);
  }

 private:
  [[nodiscard]] YAML::Node in_list(const YAML::Node& at, std::span<const std::string> path) const {
    const bool digits = path[0].find_first_not_of("0123456789") == std::string::npos;
    const size_t index = digits && path[0].size() < 10 ? std::stoul(path[0]) : at.size();
    if (index >= at.size()) {
      throw InputError(where_, fmt::format("'{}' is no index of a list of {}", path[0], at.size()));
    }
    YAML::Node made(YAML::NodeType::Sequence);
    for (size_t i = 0; i < at.size(); ++i) {
      made.push_back(i == index ? in(at[i], path.subspan(1)) : at[i]);
    }
    return made;
  }

  // A name above the keys that are set stays: as the key of the map that it becomes.
  [[nodiscard]] YAML::Node map_of_name(const YAML::Node& name,
                                       std::span<const std::string> path) const {
    std::string above = path_;
    for (size_t i = path.size(); i-- > 0;) above.resize(above.size() - path[i].size() - 1);
    YAML::Node made(YAML::NodeType::Map);
    for (const auto& [key, of] : kNameKeys) {
      if (above == key) made.force_insert(std::string(of), name);
    }
    return made;
  }

  // Turns any other value into a map.
  [[nodiscard]] YAML::Node in_map(const YAML::Node& at, std::span<const std::string> path) const {
    YAML::Node made(YAML::NodeType::Map);
    const std::string section = path.size() > 1 ? "" : path_.substr(0, path_.rfind('.'));
    bool found = false;
    for (const auto& entry : at.IsMap() ? at : YAML::Node(YAML::NodeType::Map)) {
      const bool here =
          !found && entry.first.IsScalar() && key_in(section, entry.first.Scalar()) == path[0];
      made.force_insert(entry.first, here ? in(entry.second, path.subspan(1)) : entry.second);
      found = found || here;
    }
    if (!found) made.force_insert(path[0], in(YAML::Node(), path.subspan(1)));
    return made;
  }

  const YAML::Node& value_;
  const Location& where_;
  const std::string& path_;
};

// A number and what stands behind it.
struct Measured {
  std::string number, unit;
};

Measured split_unit(const std::string& text) {
  // "3e" of "3eB" is no number: take back letters that cannot end one.
  std::string number = text.substr(0, text.find_first_not_of("+-0123456789.eE"));
  while (!number.empty() && (number.back() == 'e' || number.back() == 'E')) number.pop_back();
  std::string unit = text.substr(number.size());
  while (!unit.empty() && unit.front() == ' ') unit.erase(0, 1);
  while (!unit.empty() && unit.back() == ' ') unit.pop_back();
  return {std::move(number), std::move(unit)};
}

// True if the unit is one of bits, which are never taken, or offered, for bytes.
bool in_bits(const std::string& unit) {
  return unit.find('b') != std::string::npos && unit.find('B') == std::string::npos;
}

std::string unknown_unit(const std::string& unit, std::span<const Unit> units) {
  std::vector<std::string> names;
  for (const Unit& each : units) {
    if (in_bits(each.first) == in_bits(unit)) names.push_back(each.first);
  }
  if (names.empty()) {
    for (const Unit& each : units) names.push_back(each.first);
    return fmt::format("unit '{}' is not known; valid: {}", unit, fmt::join(names, ", "));
  }
  return fmt::format("unit '{}' is not known{}", unit, suggestion(unit, names));
}

std::string plain_text(const YamlValue& value) {
  if (!value.is_scalar() || value.node().Scalar().empty()) {
    value.fail(fmt::format("expected text, not {}", kind_of(value.node())));
  }
  return value.node().Scalar();
}

void tell(const YamlValue& value, ValueKind kind, double minimum = 0,
          std::span<const std::string> words = {}) {
  if (ReadObserver* observer = Observing::now()) {
    observer->read(value.where().file, value.path(), {kind, minimum, {words.begin(), words.end()}});
  }
}

// Tells the last part of each path, for a map whose keys the file chooses.
void tell_names(const YamlValue& map,
                const std::vector<std::pair<std::string, YamlValue>>& entries) {
  if (Observing::now() == nullptr) return;
  const size_t above = map.path().empty() ? 0 : map.path().size() + 1;
  std::vector<std::string> names;
  for (const auto& [name, value] : entries) names.push_back(value.path().substr(above));
  tell(map, ValueKind::kNamedMap, 0, names);
}

}  // namespace

Override parse_override(const std::string& text, const Location& where) {
  const size_t equals = text.find('=');
  const std::string path = text.substr(0, equals);
  const auto parts = split(path, '.');
  if (equals == std::string::npos || std::ranges::any_of(parts, &std::string::empty)) {
    throw InputError(where, fmt::format("'{}': expected path.to.key=value; an option's values have "
                                        "commas between them",
                                        text));
  }
  Location value = where;
  if (value.column > 0) value.column += static_cast<int>(equals) + 1;
  return {in_full(path), text.substr(equals + 1), where, value};
}

YamlSource::YamlSource(std::string name, const std::string& text, std::vector<Override> overrides)
    : name_(std::move(name)), lines_(text), overrides_(std::move(overrides)) {
  check_utf8(name_, text);
  root_ = load_yaml(text, [this](const YAML::Mark& mark) { return locate(mark, ""); });
  for (const Override& replacement : overrides_) apply(replacement);
}

YamlSource YamlSource::from_file(const std::string& path, const Location& asked,
                                 std::vector<Override> overrides) {
  return {path, read_input(path, asked), std::move(overrides)};
}

void YamlSource::apply(const Override& replacement) {
  const Location& where = replacement.where;
  const YAML::Node value = load_yaml(replacement.value, [&](const YAML::Mark&) { return where; });
  const auto parts = split(replacement.path, '.');
  root_.reset(Replacing(value, replacement).in(root_, parts));
}

YamlSource YamlSource::with(std::vector<Override> overrides) const {
  YamlSource changed = *this;
  changed.overrides_ = std::move(overrides);
  for (const Override& replacement : changed.overrides_) changed.apply(replacement);
  return changed;
}

YamlValue YamlSource::root() const { return {*this, root_, ""}; }

Location YamlSource::locate(const YAML::Mark& mark, const std::string& path, bool key) const {
  for (size_t i = overrides_.size(); i-- > 0;) {  // the last one given holds
    const Override& given = overrides_[i];
    const bool below = path == given.path || path.starts_with(given.path + ".");
    const bool above = !path.empty() && given.path.starts_with(path + ".") && mark.is_null();
    if (!below && !above) continue;
    if (above || (key && path == given.path)) return given.where;
    if (given.value_where) return *given.value_where;
    Location where = given.where;
    if (where.column > 0) where.column += static_cast<int>(given.path.size()) + 1;
    return where;
  }
  if (mark.is_null()) return {name_, 1, 1, lines_[0]};
  return {name_, mark.line + 1, mark.column + 1, lines_[static_cast<size_t>(mark.line)]};
}

YamlValue::YamlValue(const YamlSource& source, const YAML::Node& node, std::string path)
    : source_(&source), node_(node), path_(std::move(path)), mark_(node_.Mark()) {}

Location YamlValue::where() const { return source_->locate(mark_, path_); }

Location YamlValue::key_where() const { return source_->locate(key_mark_, path_, true); }

void YamlValue::fail(const std::string& message) const {
  throw InputError(where(), path_.empty() ? message : fmt::format("{}: {}", path_, message));
}

void YamlValue::fail_key(const std::string& message) const {
  throw InputError(key_where(), fmt::format("{}: {}", path_, message));
}

std::string YamlValue::text() const {
  tell(*this, ValueKind::kText);
  return plain_text(*this);
}

std::string YamlValue::choice(std::span<const std::string> choices) const {
  tell(*this, ValueKind::kChoice, 0, choices);
  const std::string given = plain_text(*this);
  std::string meant = meant_name(given, choices);
  if (std::ranges::find(choices, meant) != choices.end()) return meant;
  fail(fmt::format("'{}' is not known{}", given, suggestion(given, choices)));
}

bool YamlValue::flag() const {
  tell(*this, ValueKind::kFlag);
  if (node_.IsScalar() && node_.Scalar() == "true") return true;
  if (node_.IsScalar() && node_.Scalar() == "false") return false;
  fail(fmt::format("expected true or false, not {}", kind_of(node_)));
}

long YamlValue::integer(long minimum, long maximum) const {
  return whole_number(minimum, maximum, false);
}

long YamlValue::tokens(long minimum, long maximum) const {
  return whole_number(minimum, maximum, true);
}

long YamlValue::whole_number(long minimum, long maximum, bool binary) const {
  tell(*this, ValueKind::kInteger, static_cast<double>(minimum));
  if (node_.IsScalar()) {
    const auto value = to_integer(node_.Scalar(), binary);
    if (value && *value >= minimum && *value <= maximum) return *value;
  }
  fail(fmt::format("expected a whole number from {} to {}, not {}", minimum, maximum,
                   kind_of(node_)));
}

double YamlValue::number(double minimum, double maximum) const {
  tell(*this, ValueKind::kNumber, minimum);
  const auto value = node_.IsScalar() ? to_double(node_.Scalar()) : std::nullopt;
  if (value && *value >= minimum && *value <= maximum) return *value;
  fail(fmt::format("expected a number from {} to {}, not {}", minimum, maximum, kind_of(node_)));
}

double YamlValue::quantity(const char* what, const char* example, std::span<const Unit> units,
                           double most) const {
  if (Observing::now() != nullptr) {
    std::vector<std::string> names;
    for (const Unit& each : units) names.push_back(each.first);
    tell(*this, ValueKind::kQuantity, 0, names);
  }
  const auto expected = fmt::format("expected {} such as '{}'", what, example);
  if (!node_.IsScalar()) fail(fmt::format("{}, not {}", expected, kind_of(node_)));
  const std::string& given = node_.Scalar();
  const auto [number, unit] = split_unit(given);
  const auto value = to_double(number);
  if (!value) fail(fmt::format("{}, not '{}'", expected, given));
  if (*value < 0) fail(fmt::format("must not be negative: '{}'", given));
  if (unit.empty() && *value == 0) return 0;
  if (unit.empty()) fail(fmt::format("'{}' has no unit; {}", given, expected));
  const auto scale = std::ranges::find(units, unit, &Unit::first);
  if (scale == units.end()) fail(unknown_unit(unit, units));
  const double result = *value * scale->second;
  if (result > most) {
    fail(fmt::format("'{}' is too large; at most {:g} {}", given, most, units[0].first));
  }
  if (result > 0 && result < kLeast) fail(fmt::format("'{}' is too small to tell from 0", given));
  return result;
}

Seconds YamlValue::seconds() const {
  return Seconds(quantity("a time", "18.5 ms", kTimeUnits, 1e9));
}
Bytes YamlValue::bytes() const { return Bytes(quantity("a size", "3.7 GiB", kByteUnits, 1e18)); }
BytesPerSecond YamlValue::bandwidth() const {
  return BytesPerSecond(quantity("a bandwidth", "400 Gbps", kBandwidthUnits, 1e18));
}
Watts YamlValue::power() const { return Watts(quantity("a power", "700 W", kPowerUnits, 1e9)); }
FlopsPerSecond YamlValue::flop_rate() const {
  return FlopsPerSecond(quantity("a rate", "989 TFLOP/s", kFlopRateUnits, 1e18));
}

std::string YamlValue::one_line() const { return in_one_line(node_); }

std::vector<YamlValue> YamlValue::list() const {
  tell(*this, ValueKind::kList);
  if (!node_.IsSequence()) fail(fmt::format("expected a list, not {}", kind_of(node_)));
  std::vector<YamlValue> values;
  for (size_t i = 0; i < node_.size(); ++i) {
    values.emplace_back(*source_, node_[i], fmt::format("{}.{}", path_, i));
  }
  return values;
}

std::vector<std::pair<std::string, YamlValue>> YamlValue::entries() const {
  return named_entries(YamlMap(*this));
}
std::vector<std::pair<std::string, YamlValue>> YamlValue::all_entries() const {
  return named_entries(YamlMap(*this, true));
}

std::vector<std::pair<std::string, YamlValue>> YamlValue::named_entries(
    const YamlMap& checked) const {
  std::vector<std::pair<std::string, YamlValue>> named;
  for (const auto& item : node_) {
    const YamlMap::Entry& entry = checked.entries_[named.size()];
    named.emplace_back(item.first.Scalar(), entry.value);
  }
  tell_names(*this, named);
  return named;
}

YamlMap::YamlMap(const YamlValue& value, bool repeats) : value_(value) {
  tell(value, ValueKind::kMap);
  if (!value.is_map()) value.fail(fmt::format("expected a map, not {}", kind_of(value.node())));
  for (const auto& item : value.node()) {
    const YamlSource& source = *value.source_;
    if (!item.first.IsScalar()) {
      YamlValue(source, item.first, value.path()).fail("expected plain text as a key");
    }
    const std::string key = key_in(value.path(), item.first.Scalar());
    const std::string path = value.path().empty() ? key : value.path() + "." + key;
    Entry entry{key, YamlValue(source, item.second, path)};
    entry.value.key_mark_ = item.first.Mark();
    if (item.second.IsNull() && key.find(':') != std::string::npos) {
      entry.value.fail_key("a space is missing behind ':'");
    }
    // A missing value has no place of its own: it is missing behind its key.
    if (item.second.IsNull()) entry.value.mark_ = item.first.Mark();
    entries_.push_back(std::move(entry));
  }
  if (!repeats) refuse_double_keys();
}

void YamlMap::refuse_double_keys() const {
  std::vector<const Entry*> sorted;
  sorted.reserve(entries_.size());
  for (const Entry& entry : entries_) sorted.push_back(&entry);
  std::ranges::stable_sort(sorted, {}, &Entry::key);
  const auto twice = std::ranges::adjacent_find(sorted, {}, &Entry::key);
  if (twice != sorted.end()) twice[1]->value.fail_key("this key is there twice");
}

std::optional<YamlValue> YamlMap::find(const std::string& key) {
  if (ReadObserver* observer = Observing::now()) {
    observer->asked(value_.where().file, value_.path(), key);
  }
  if (std::ranges::find(asked_, key) == asked_.end()) asked_.push_back(key);
  const auto found = std::ranges::find(entries_, key, &Entry::key);
  if (found == entries_.end()) return std::nullopt;
  found->read = true;
  return found->value;
}

YamlValue YamlMap::require(const std::string& key, const std::string& what) {
  auto found = find(key);
  if (!found) {
    // A misspelt key is the likelier mistake than a missing one.
    for (const Entry& entry : entries_) {
      if (!entry.read && nearest_name(entry.key, asked_) == key) {
        entry.value.fail_key(fmt::format("unknown key; did you mean '{}'?", key));
      }
    }
    value_.fail(fmt::format("'{}' is missing: expected {}", key, what));
  }
  return *found;
}

std::vector<std::pair<std::string, YamlValue>> YamlMap::unread() const {
  std::vector<std::pair<std::string, YamlValue>> left;
  for (const Entry& entry : entries_) {
    if (!entry.read) left.emplace_back(entry.key, entry.value);
  }
  tell_names(value_, left);
  return left;
}

void YamlMap::finish() const {
  for (const Entry& entry : entries_) {
    if (!entry.read) entry.value.fail_key("unknown key" + suggestion(entry.key, asked_));
  }
}

void set_flag(YamlMap& map, const char* key, bool& flag) {
  if (const auto value = map.find(key)) flag = value->flag();
}

}  // namespace pipesim
