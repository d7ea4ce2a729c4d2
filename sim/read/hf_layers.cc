#include "sim/read/hf_layers.h"

#include <algorithm>
#include <fmt/format.h>
#include <sstream>
#include <utility>
#include <vector>

#include "sim/read/model.h"

namespace pipesim {
namespace {

constexpr long kMostLayers = 1 << 16;

using Letters = std::vector<std::pair<std::string, std::string>>;

Letters letters_by_name(YamlMap& form) {
  Letters letters;
  for (const auto& [name, letter] : form.require("letters", "names and letters").entries()) {
    letters.emplace_back(name, letter.text());
  }
  return letters;
}

std::string letter_of(const YamlValue& entry, const Letters& letters) {
  std::vector<std::string> names;
  for (const auto& [name, letter] : letters) names.push_back(name);
  const auto at = std::ranges::find(names, entry.choice(names)) - names.begin();
  return letters[static_cast<size_t>(at)].second;
}

// {list: KEY, letters: {full_attention: G, ...}}, with `behind` as many entries more at most.
LayerLetters of_list(YamlMap& form, const YamlValue& key, const HfFacts& facts) {
  const Letters letters = letters_by_name(form);
  const auto value = facts.given(key.text());
  if (!value || !value->is_list()) return {};
  const std::vector<YamlValue> list = value->list();
  const auto behind = form.find("behind");
  const long more = behind ? facts.number(*behind).value_or(0) : 0;
  const auto entries = static_cast<long>(list.size());
  if (facts.layers > 0 && entries > 0 &&
      (entries < facts.layers || entries > facts.layers + more)) {
    value->fail(
        fmt::format("expected one entry for each of {} layers, not {}", facts.layers, entries));
  }
  const size_t read_entries = facts.layers > 0 ? static_cast<size_t>(facts.layers) : list.size();
  std::string read;
  for (size_t i = 0; i < std::min(list.size(), read_entries); ++i) {
    read += letter_of(list[i], letters);
  }
  return {read, value};
}

// {text: KEY}, with `letters` where the file's are others.
LayerLetters of_letters(YamlMap& form, const YamlValue& key, const HfFacts& facts) {
  const auto value = facts.given(key.text());
  if (!value || !value->is_scalar()) return {};
  if (!form.find("letters")) return {value->text(), value};
  const Letters letters = letters_by_name(form);
  std::string read;
  for (const char letter : value->text()) {
    const auto found =
        std::ranges::find(letters, std::string(1, letter), &Letters::value_type::first);
    if (found == letters.end()) value->fail(fmt::format("no kind of layer is '{}'", letter));
    read += found->second;
  }
  return {read, value};
}

// Numbers of layers: a list, or a text with commas.
std::vector<YamlValue> numbers_of(const YamlValue& value) {
  if (value.is_list()) return value.list();
  std::vector<YamlValue> numbers;
  std::istringstream text(value.text());
  for (std::string each; std::getline(text, each, ',');) {
    numbers.push_back(value.made_of(YAML::Node(each)));
  }
  return numbers;
}

// {at: KEY, letters: [E, '-']}: the first letter where the list has the layer's number, which
// counts from `first` on, or from 0.
LayerLetters of_indices(YamlMap& form, const YamlValue& key, const HfFacts& facts) {
  const std::vector<YamlValue> letters = form.require("letters", "two letters").list();
  const auto value = facts.given(key.text());
  if (!value || value->is_map() || facts.layers < 1) return {};
  const std::vector<YamlValue> numbers = numbers_of(*value);
  if (numbers.empty()) return {};
  const auto counted = form.find("first");
  const long first = counted ? counted->integer(0, 1) : 0;
  std::string read;
  for (int layer = 0; layer < facts.layers; ++layer) read += letters.at(1).text();
  for (const YamlValue& entry : numbers) {
    const auto layer = entry.integer(first, facts.layers - 1 + first) - first;
    read[static_cast<size_t>(layer)] = letters.at(0).text()[0];
  }
  return {read, value};
}

// {runs: [[W, 5], [G, 1]]}, repeated over the layers.
LayerLetters of_runs(const YamlValue& runs, const HfFacts& facts) {
  std::string read;
  for (const YamlValue& run : runs.list()) {
    const auto parts = run.list();
    const auto number = facts.number(parts.at(1));
    if (!number || *number < 0 || *number > kMostLayers) return {};
    for (long i = 0; i < *number; ++i) read += parts.at(0).text();
  }
  return {read};
}

}  // namespace

LayerLetters letters_of(const YamlValue& form, const HfFacts& facts) {
  if (form.is_list()) {
    for (const YamlValue& each : form.list()) {
      if (auto read = letters_of(each, facts); !read.letters.empty()) return read;
    }
    return {};
  }
  if (form.is_scalar()) return {form.text()};
  YamlMap map(form);
  if (const auto condition = map.find("when");
      condition && facts.number(*condition).value_or(0) == 0) {
    return {};
  }
  if (const auto key = map.find("list")) return of_list(map, *key, facts);
  if (const auto key = map.find("text")) return of_letters(map, *key, facts);
  if (const auto key = map.find("at")) return of_indices(map, *key, facts);
  return of_runs(map.require("runs", "a form of layers"), facts);
}

std::string shortest_period(const std::string& letters) {
  for (size_t period = 1; period < letters.size(); ++period) {
    size_t at = period;
    while (at < letters.size() && letters[at] == letters[at - period]) ++at;
    if (at == letters.size()) return letters.substr(0, period);
  }
  return letters;
}

std::optional<ExpertLayers> expert_layers(const LayerLetters& read, const YamlValue& file) {
  const std::string& letters = read.letters;
  const size_t first = letters.find('E');
  if (first == std::string::npos) return std::nullopt;
  const size_t second = letters.find('E', first + 1);
  const size_t every = second == std::string::npos ? letters.size() - first : second - first;
  const size_t end = letters.rfind('E') + every;  // where the next would stand
  const size_t behind = letters.size() - std::min(end, letters.size());
  for (size_t layer = 0; layer < letters.size() - behind; ++layer) {
    const bool expected = layer >= first && (layer - first) % every == 0;
    if (expected != (letters[layer] == 'E')) {
      read.from.value_or(file).fail(
          "layers without experts between those with them: write 'first_dense_layers' and "
          "'every' in 'moe'");
    }
  }
  return ExpertLayers{static_cast<int>(first), static_cast<int>(std::max<size_t>(1, every)),
                      static_cast<int>(behind)};
}

}  // namespace pipesim
