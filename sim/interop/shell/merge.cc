#include "sim/interop/shell/merge.h"

#include <algorithm>
#include <sstream>

namespace pipesim {
namespace {

using Mark = std::function<std::string(ShellUnknown)>;

ShellItems split_items(const ShellVariable& value) {
  ShellItems words;
  if (value.items.empty()) return words;
  std::istringstream text(value.items[0].text);
  for (std::string word; text >> word;) words.push_back({word, value.items[0].where});
  return words;
}

// Words that all have at their beginnings and ends.
struct Ends {
  size_t head;
  size_t tail;

  explicit Ends(const std::vector<ShellItems>& pieces) {
    const ShellItems& first = pieces[0];
    size_t least = head = tail = first.size();
    for (const ShellItems& each : pieces) {
      head = std::min(head, same(each.begin(), each.end(), first.begin(), first.end()));
      tail = std::min(tail, same(each.rbegin(), each.rend(), first.rbegin(), first.rend()));
      least = std::min(least, each.size());
    }
    tail = std::min(tail, least - head);
  }

 private:
  template <typename Iterator>
  static size_t same(Iterator a, Iterator a_end, Iterator b, Iterator b_end) {
    return static_cast<size_t>(std::mismatch(a, a_end, b, b_end).first - a);
  }
};

std::string text_of(const ShellItems& items, size_t begin, size_t end) {
  std::string text;
  for (size_t i = begin; i < end; ++i) text += (text.empty() ? "" : " ") + items[i].text;
  return text;
}

ShellVariable joined_values(const std::vector<ShellVariable>& values,
                            const std::vector<std::string>& names, const Mark& mark) {
  const bool array = std::ranges::any_of(values, &ShellVariable::array);
  const auto keyed = std::ranges::find_if(values, [](const auto& v) { return !v.keyed.empty(); });
  if (keyed != values.end()) return *keyed;
  std::vector<ShellItems> pieces;
  ShellPlace where;
  for (const ShellVariable& value : values) {
    pieces.push_back(array ? value.items : split_items(value));
    if (!value.items.empty()) where = value.items.front().where;
  }
  const Ends ends(pieces);
  ShellUnknown unknown{names, {}, false};
  for (const ShellItems& each : pieces) {
    std::string middle = text_of(each, ends.head, each.size() - ends.tail);
    if (std::ranges::count(unknown.alternatives, middle) == 0) {
      unknown.alternatives.push_back(std::move(middle));
    }
  }
  const ShellItems& first = pieces[0];
  ShellItems items(first.begin(), first.begin() + static_cast<long>(ends.head));
  items.push_back({mark(std::move(unknown)), where});
  items.insert(items.end(), first.end() - static_cast<long>(ends.tail), first.end());
  if (array) return {items, {}, true};
  return {{{text_of(items, 0, items.size()), where}}};
}

}  // namespace

ShellState merged(const std::vector<ShellState>& states, const std::vector<std::string>& names,
                  const Mark& mark) {
  ShellState result = states.front();
  std::set<std::string> all;
  for (const ShellState& state : states) {
    for (const auto& [name, value] : state.variables) all.insert(name);
    result.functions.insert(state.functions.begin(), state.functions.end());
    if (state.output != states.front().output) result.output += mark({names, {}, false});
  }
  for (const std::string& name : all) {
    std::vector<ShellVariable> values;
    for (const ShellState& state : states) {
      const auto found = state.variables.find(name);
      values.push_back(found == state.variables.end() ? ShellVariable{} : found->second);
    }
    const bool same = std::ranges::all_of(values, [&](const auto& v) { return v == values[0]; });
    if (!same) result.variables[name] = joined_values(values, names, mark);
  }
  return result;
}

}  // namespace pipesim
