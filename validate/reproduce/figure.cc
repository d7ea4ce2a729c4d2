#include "validate/reproduce/figure.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <stdexcept>
#include <utility>

#include "sim/read/yaml.h"
#include "validate/papers/validation.h"

namespace pipesim::reproduce {
namespace {

constexpr std::array kPapers{"zero_bubble", "controllable_memory", "pipeoffload",
                             "vocabulary_parallelism", "slides"};
const std::vector<std::string> kDrawings{"pareto", "curves", "heatmap", "timeline"};
constexpr std::array<std::pair<const char*, double>, 5> kUnits{
    {{"1", 1}, {"%", 0.01}, {"ms", 1e-3}, {"GB", 1e9}, {"GiB", 1024.0 * 1024 * 1024}}};

Pattern pattern_of(const YamlValue& value) {
  try {
    return Pattern(value.text());
  } catch (const std::invalid_argument& error) {
    value.fail(error.what());
  }
}

std::vector<std::string> texts(const std::optional<YamlValue>& value) {
  std::vector<std::string> all;
  if (!value) return all;
  if (!value->is_list()) return {value->text()};
  for (const YamlValue& each : value->list()) all.push_back(each.text());
  return all;
}

std::string text_or_nothing(YamlMap& map, const char* key) {
  const auto value = map.find(key);
  return value ? value->text() : std::string();
}

double scale_of(const YamlValue& unit) {
  std::vector<std::string> names;
  for (const auto& [name, scale] : kUnits) names.emplace_back(name);
  const std::string chosen = unit.choice(names);
  return std::ranges::find(kUnits, chosen, [](const auto& each) { return each.first; })->second;
}

Quantity read_quantity(const std::string& name, const YamlValue& value) {
  YamlMap map(value);
  Quantity quantity;
  quantity.name = name;
  quantity.tables = texts(map.require("tables", "tables of the validation"));
  quantity.fitted = texts(map.find("fitted"));
  quantity.cell = pattern_of(map.require("cell", "what a cell's name says, as '{model} p={p}'"));
  if (const auto unit = map.find("unit")) quantity.scale = scale_of(*unit);
  map.finish();
  return quantity;
}

LayerRatio read_ratio(const YamlValue& value) {
  YamlMap map(value);
  LayerRatio ratio;
  ratio.models = texts(map.require("models", "models of the catalogue"));
  if (const auto sizes = map.find("vocabularies")) {
    for (const YamlValue& each : sizes->list()) {
      ratio.vocabularies.push_back(each.integer(1, 1 << 24));
    }
  }
  map.finish();
  return ratio;
}

Part read_part(const YamlValue& value) {
  YamlMap map(value);
  Part part;
  part.where = value.where();
  const auto cells = map.find("cells");
  const auto sweep = map.find("sweep");
  const auto layers = map.find("layers");
  if (int{cells.has_value()} + int{sweep.has_value()} + int{layers.has_value()} != 1) {
    value.fail("expected one of cells, sweep and layers");
  }
  if (cells) {
    std::vector<std::string> names;
    for (const Validation& each : validations()) names.push_back(each.name);
    part.validation = cells->choice(names);
    const YamlValue quantities = map.require("quantities", "numbers by column");
    for (const auto& [name, quantity] : quantities.entries()) {
      part.quantities.push_back(read_quantity(name, quantity));
    }
  }
  if (sweep) {
    part.scenario = sweep->text();
    part.set = texts(map.find("set"));
  }
  if (layers) part.ratio = read_ratio(*layers);
  if (const auto names = map.find("names")) {
    for (const auto& [ours, theirs] : names->entries()) part.names[ours] = theirs.text();
  }
  if (const auto fields = map.find("fields")) {
    for (const auto& [name, field] : fields->entries()) {
      part.fields.emplace_back(name, pattern_of(field));
    }
  }
  if (const auto panel = map.find("panel")) part.panel = pattern_of(*panel);
  part.series = pattern_of(map.require("series", "what a line or mark is called"));
  map.finish();
  return part;
}

Figure read_figure(const std::string& name, const YamlValue& value) {
  YamlMap map(value);
  Figure figure;
  figure.name = name;
  figure.title = map.require("title", "what it shows").text();
  figure.draw = map.require("draw", "a kind of drawing").choice(kDrawings);
  figure.x = text_or_nothing(map, "x");
  figure.y = texts(map.require("y", "one or several columns"));
  figure.value = text_or_nothing(map, "value");
  figure.relative_to = text_or_nothing(map, "relative_to");
  figure.remark = text_or_nothing(map, "remark");
  for (const YamlValue& part : map.require("parts", "a list").list()) {
    figure.parts.push_back(read_part(part));
  }
  if (figure.draw == "heatmap" && figure.value.empty()) value.fail("a heat map needs 'value'");
  if (figure.draw != "timeline" && figure.x.empty()) value.fail("expected 'x'");
  map.finish();
  return figure;
}

}  // namespace

std::string Part::paper_name(const std::string& schedule) const {
  const auto found = names.find(schedule);
  return found == names.end() ? schedule : found->second;
}

std::vector<std::string> Figure::quantities() const {
  std::vector<std::string> all;
  const auto add = [&all](const std::string& name) {
    if (std::ranges::find(all, name) == all.end()) all.push_back(name);
  };
  if (draw == "heatmap") return {value};
  if (draw == "pareto") add(x);
  for (const std::string& each : y) add(each);
  return all;
}

bool Figure::has_published() const {
  return std::ranges::any_of(parts, [](const Part& part) { return !part.validation.empty(); });
}

std::vector<Figure> read_figures(const std::string& folder) {
  std::vector<Figure> all;
  for (const std::string paper : kPapers) {
    const std::string path = fmt::format("{}/{}.yaml", folder, paper);
    const YamlSource source = YamlSource::from_file(path, {path, 1, 1, ""});
    std::string name = paper;
    std::ranges::replace(name, '_', '-');
    for (const auto& [key, value] : source.root().entries()) {
      all.push_back(read_figure(fmt::format("{}/{}", name, key), value));
    }
  }
  return all;
}

}  // namespace pipesim::reproduce
