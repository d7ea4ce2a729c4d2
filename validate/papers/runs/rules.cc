#include "validate/papers/runs/rules.h"

#include <algorithm>
#include <cctype>

#include "sim/core/error.h"

namespace pipesim::runs {
namespace {

void read_settings(const YamlValue& value, Settings& to) {
  static const std::vector<std::string> kLayers{"front", "uniform", "cumulative"};
  YamlMap map(value);
  set_flag(map, "sequence_parallel", to.sequence_parallel);
  set_flag(map, "distributed_optimizer", to.distributed_optimizer);
  set_flag(map, "fp32_gradients", to.fp32_gradients);
  set_flag(map, "fp8_parameters", to.fp8_parameters);
  set_flag(map, "fused_gate", to.fused_gate);
  set_flag(map, "overlap_tensor", to.overlap_tensor);
  set_flag(map, "overlap_gradients", to.overlap_gradients);
  set_flag(map, "overlap_parameters", to.overlap_parameters);
  set_flag(map, "blocking", to.blocking);
  set_flag(map, "flash_attention", to.flash_attention);
  set_flag(map, "fused_loss", to.fused_loss);
  set_flag(map, "dropout", to.dropout);
  set_flag(map, "forced_balance", to.forced_balance);
  if (const auto recompute = map.find("recompute")) to.recompute = recompute->text();
  if (const auto layers = map.find("layers")) to.layers = layers->choice(kLayers);
  if (const auto precision = map.find("precision")) to.precision = precision->text();
  if (const auto micro = map.find("micro_batch")) {
    to.micro_batch = static_cast<int>(micro->integer(1, 1 << 16));
  }
  if (const auto gpu = map.find("gpu")) to.gpu = gpu->text();
  if (const auto tokens = map.find("sequence")) {
    to.sequence = static_cast<int>(tokens->integer(1, 1 << 24));
  }
  if (const auto words = map.find("vocabulary")) {
    to.vocabulary = static_cast<int>(words->integer(1, 1 << 24));
  }
  map.finish();
}

Rule read_rule(const std::string& table, const YamlValue& value, const Rules& before) {
  YamlMap map(value);
  Rule rule;
  if (const auto as = map.find("as")) {
    const auto found = std::ranges::find(before.rules, as->text(), &Rule::table);
    if (found == before.rules.end()) as->fail("no rule of this name stands before");
    rule = *found;
  }
  rule.table = table;
  rule.source = map.require("source", "what the framework did, and where that is from").text();
  rule.framework = map.require("framework", "its name").text();
  rule.versions.clear();
  for (const YamlValue& each : map.require("versions", "a list").list()) {
    YamlMap of(each);
    Version version;
    if (const auto in = of.find("in")) version.in = in->text();
    if (const auto precision = of.find("precision")) version.precision = precision->text();
    if (const auto dispatcher = of.find("dispatcher")) version.dispatcher = dispatcher->text();
    set_flag(of, "overlap_experts", version.overlap_experts);
    version.year = static_cast<int>(of.require("year", "a year").integer(2018, 2100));
    version.software = of.require("software", "a name of the software catalogue").text();
    of.finish();
    rule.versions.push_back(version);
  }
  if (rule.versions.empty() || !rule.versions.back().in.empty() ||
      !rule.versions.back().precision.empty() || !rule.versions.back().dispatcher.empty()) {
    map.value().fail("the last of 'versions' must hold for every row");
  }
  if (const auto settings = map.find("settings")) read_settings(*settings, rule.settings);
  map.finish();
  return rule;
}

// In any case of letters.
bool has(const std::string& text, const std::string& word) {
  const auto same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end() ||
         word.empty();
}

std::vector<std::string> texts(const YamlValue& value) {
  std::vector<std::string> all;
  for (const YamlValue& each : value.list()) all.push_back(each.text());
  return all;
}

}  // namespace

const Rule& Rules::of(const std::string& table) const {
  const auto found = std::ranges::find(rules, table, &Rule::table);
  if (found != rules.end()) return *found;
  return *std::ranges::find(rules, "default", &Rule::table);
}

Rules read_rules(const YamlSource& source) {
  Rules rules;
  for (const auto& [name, value] : source.root().entries()) {
    if (name == "hardware") {
      for (const YamlValue& each : value.list()) {
        YamlMap map(each);
        rules.hardware.push_back({texts(map.require("words", "a list")),
                                  map.require("cluster", "a name of the catalogue").text()});
        map.finish();
      }
    } else if (name == "models") {
      for (const auto& [model, known] : value.entries()) rules.models[model] = known.text();
    } else if (name == "ignored") {
      rules.ignored = texts(value);
    } else {
      rules.rules.push_back(read_rule(name, value, rules));
    }
  }
  if (std::ranges::find(rules.rules, "default", &Rule::table) == rules.rules.end()) {
    source.root().fail("a rule 'default' is missing");
  }
  return rules;
}

const Version& version_of(const Rule& rule, const Row& row) {
  const std::string said = row.text("source") + " " + row.text("system") + " " +
                           row.text("software") + " " + row.text("framework");
  for (const Version& version : rule.versions) {
    if (said.find(version.in) != std::string::npos &&
        has(row.text("precision"), version.precision) &&
        has(row.text("dispatcher"), version.dispatcher)) {
      return version;
    }
  }
  return rule.versions.back();
}

}  // namespace pipesim::runs
