#include "sim/schema/observed.h"

#include <algorithm>
#include <cctype>

namespace pipesim {
namespace {

ObservedPlace& made(std::unique_ptr<ObservedPlace>& place) {
  if (place == nullptr) place = std::make_unique<ObservedPlace>();
  return *place;
}

// The longest of the names with which the path begins, all of a part; empty where none is.
std::string_view name_in(const std::set<std::string>& names, std::string_view path) {
  std::string_view longest;
  for (const std::string& name : names) {
    const bool whole = path.size() == name.size() || path.substr(0, name.size() + 1).ends_with('.');
    if (path.starts_with(name) && whole && name.size() > longest.size()) longest = name;
  }
  return longest;
}

bool is_number(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

ObservedPlace& ObservedText::at(std::string_view path) {
  ObservedPlace* place = &root_;
  while (!path.empty()) {
    std::string_view part = name_in(place->names, path);
    if (!part.empty()) {
      place = &made(place->any);
    } else {
      part = path.substr(0, path.find('.'));
      const bool item = place->has(ValueKind::kList) && is_number(part);
      place = item ? &made(place->item) : &made(place->keys[std::string(part)]);
    }
    path.remove_prefix(std::min(part.size() + 1, path.size()));
  }
  return *place;
}

void ObservedText::asked(const std::string& name, const std::string& path, const std::string& key) {
  if (name == name_ && !key.empty()) made(at(path).keys[key]);
}

void ObservedText::read(const std::string& name, const std::string& path, const ValueRead& value) {
  if (name != name_) return;
  ObservedPlace& place = at(path);
  const bool number = value.kind == ValueKind::kInteger || value.kind == ValueKind::kNumber;
  if (number) {
    const bool first = !place.has(ValueKind::kInteger) && !place.has(ValueKind::kNumber);
    place.minimum = first ? value.minimum : std::min(place.minimum, value.minimum);
  }
  place.kinds.insert(value.kind);
  auto& words = value.kind == ValueKind::kChoice     ? place.choices
                : value.kind == ValueKind::kQuantity ? place.units
                                                     : place.names;
  words.insert(value.words.begin(), value.words.end());
  if (value.kind == ValueKind::kNamedMap) {
    made(place.any);
    for (const std::string& each : value.words) place.keys.erase(each);
  }
}

}  // namespace pipesim
