#include "sim/read/sweep_text.h"

#include <sstream>
#include <string_view>

namespace pipesim {
namespace {

bool opens_sweep(const std::string& line) {
  constexpr std::string_view kSection = "sweep";
  return line.starts_with(kSection) &&
         line.find_first_not_of(" \t", kSection.size()) == line.find(':', kSection.size());
}

// True if a line can be within a section of the outermost map.
bool continues_section(const std::string& line) {
  return line.empty() || std::string_view(" \t\r}]").find(line.front()) != std::string_view::npos ||
         line.starts_with("- ");
}

std::string without_sweep(const std::string& text) {
  const std::vector<std::string> lines = lines_of(text);
  const std::vector<bool> of_sweep = lines_of_sweep(lines);
  std::string kept;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!of_sweep[i]) kept += lines[i] + '\n';
  }
  return kept;
}

std::string name_of(const YAML::Node& schedule) {
  if (schedule.IsScalar()) return schedule.Scalar();
  for (const char* key : {"name", "csv"}) {
    if (schedule.IsMap() && schedule[key] && schedule[key].IsScalar())
      return schedule[key].Scalar();
  }
  return "";
}

}  // namespace

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<bool> lines_of_sweep(const std::vector<std::string>& lines) {
  std::vector<bool> of_sweep(lines.size(), false);
  bool within = false;
  size_t begin = 0;  // of the comments in the first column that may belong to what follows
  for (size_t i = 0; i < lines.size(); ++i) {
    if (within && lines[i].starts_with('#')) continue;
    within = opens_sweep(lines[i]) || (within && continues_section(lines[i]));
    for (; within && begin <= i; ++begin) of_sweep[begin] = true;
    begin = i + 1;
  }
  return of_sweep;
}

SweepText read_sweep_text(const std::string& name, const std::string& text) {
  const YamlSource source(name, text);
  YamlMap root(source.root());
  SweepText read{without_sweep(text), {}, "roofline"};
  if (const auto schedule = root.find("schedule")) {
    const std::vector<YamlValue> each_of =
        schedule->is_list() ? schedule->list() : std::vector<YamlValue>{*schedule};
    for (const YamlValue& each : each_of)
      read.schedules.emplace_back(name_of(each.node()), each.one_line());
  }
  if (const auto cost = root.find("cost"); cost && cost->is_map() && cost->node()["kind"]) {
    read.cost = cost->node()["kind"].Scalar();
  }
  return read;
}

std::string text_of(const YamlSource& source) { return YAML::Dump(source.root().node()) + "\n"; }

}  // namespace pipesim
