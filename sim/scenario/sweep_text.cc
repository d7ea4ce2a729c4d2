#include "sim/scenario/sweep_text.h"

#include <sstream>

namespace pipesim {
namespace {

// A line in the first column that is neither blank nor a comment begins a section.
bool begins_section(const std::string& line) {
  return !line.empty() && std::string("# \t\r").find(line.front()) == std::string::npos;
}

std::string without_sweep(const std::string& text) {
  std::istringstream lines(text);
  std::string kept;
  std::string comments;  // in the first column: they belong to the section that follows
  bool within = false;
  for (std::string line; std::getline(lines, line);) {
    const std::string whole = line + '\n';
    if (begins_section(line)) {
      const size_t end = line.find_first_of(" \t:");
      const bool was_within = within;
      within = line.substr(0, end) == "sweep";
      if (!within) kept += was_within ? comments + whole : whole;
      comments.clear();
    } else if (!within) {
      kept += whole;
    } else if (line.starts_with('#')) {
      comments += whole;
    } else {
      comments.clear();
    }
  }
  return kept + comments;
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
