#include "sim/read/description.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <utility>
#include <vector>

#include "sim/planning/description.h"
#include "sim/read/yaml.h"

namespace pipesim {
namespace {

constexpr size_t kMostParameters = 100;
constexpr size_t kMostLines = 10'000;
constexpr const char* kStages = "'s' for all, one stage, or a range such as 0..p-1";

const std::vector<std::string>& pass_kinds() {
  static const std::vector<std::string> kNames{"F", "B", "W", "BW", "R", "IF", "IB", "S", "T"};
  return kNames;
}

std::optional<PassKind> kind_of(std::string_view text) {
  for (const PassKind kind : {PassKind::kF, PassKind::kB, PassKind::kW, PassKind::kBW, PassKind::kR,
                              PassKind::kIF, PassKind::kIB, PassKind::kS, PassKind::kT}) {
    if (text == to_text(kind)) return kind;
  }
  return std::nullopt;
}

class DescriptionReader {
 public:
  DescriptionReader(const YamlValue& root, const std::string& path) : map_(root), path_(path) {}

  Description read() {
    const std::string name = std::filesystem::path(path_).filename().string();
    const auto placement = read_placement();
    int chunks = placement.kind == DescribedPlacement::Kind::kList ? listed_chunks(placement) : 2;
    if (const auto given = map_.find("chunks")) chunks = read_chunks(*given, placement);
    std::optional<int> splits;
    if (const auto given = map_.find("splits")) {
      splits = static_cast<int>(given->integer(1, 1024));
    }
    read_parameters();
    std::vector<Expression> requirements = read_requirements();
    Description description{
        .name = name,
        .file = path_,
        .summary = text_or("summary", "described in " + path_),
        .source = text_or("source", path_),
        .placement = placement,
        .chunks = chunks,
        .splits = splits,
        .parameters = {},
        .requirements = std::move(requirements),
        .block = {},
    };
    if (const auto rules = map_.find("rules")) {
      description.where = rules->key_where();
      description.rules = read_rules(*rules);
    } else {
      read_repeating(description);
    }
    description.versions = read_versions(description);
    description.copies = read_copies();
    map_.finish();
    description.parameters = std::move(parameters_);
    return description;
  }

 private:
  std::string text_or(const char* key, std::string missing) {
    const auto given = map_.find(key);
    if (!given) return missing;
    std::string text = given->text();
    if (text.empty() || text.find('\n') != std::string::npos) given->fail("expected one line");
    return text;
  }

  [[nodiscard]] Expression formula(const YamlValue& value) const { return formula(value, names_); }
  [[nodiscard]] static Expression formula(const YamlValue& value,
                                          const std::vector<std::string>& names) {
    return {value.text(), value.where(), names};
  }

  // ---- placement ----

  DescribedPlacement read_placement() {
    const YamlValue value =
        map_.require("placement", "linear, looped, v, wave, bidirectional, devices or a formula");
    DescribedPlacement placement;
    if (value.is_map()) {
      YamlMap map(value);
      placement = stages_on(map.require("device", "the device of each stage: a list or a formula"));
      if (const auto copies = map.find("copies")) {
        placement.copies = static_cast<int>(copies->integer(1, 1024));
      }
      if (const auto stages = map.find("stages")) {
        if (!placement.device)
          stages->fail_key("the list of devices says how many stages there are");
        placement.stages = formula(*stages, {"p", "v"});
      }
      map.finish();
    } else {
      placement = value.is_list() ? stages_on(value) : named(value);
    }
    placement.where = value.where();
    return placement;
  }

  static DescribedPlacement named(const YamlValue& value) {
    using Kind = DescribedPlacement::Kind;
    static const std::vector<std::string> kNames{"linear", "looped", "v", "wave", "bidirectional"};
    constexpr std::array kKinds{Kind::kLinear, Kind::kLooped, Kind::kVee, Kind::kWave,
                                Kind::kBidirectional};
    const std::string text = value.text();
    if (text.find_first_of("%+-*/() ") != std::string::npos) return stages_on(value);
    const std::string name = value.choice(kNames);
    const auto at = std::ranges::find(kNames, name) - kNames.begin();
    return {.kind = kKinds[static_cast<size_t>(at)]};
  }

  static DescribedPlacement stages_on(const YamlValue& value) {
    using Kind = DescribedPlacement::Kind;
    if (!value.is_list()) {
      return {.kind = Kind::kFormula, .device = formula(value, placement_names())};
    }
    DescribedPlacement placement{.kind = Kind::kList};
    for (const YamlValue& each : value.list()) {
      placement.devices.push_back(static_cast<int>(each.integer(0, (1 << 16) - 1)));
    }
    if (placement.devices.empty()) value.fail("expected the device of each stage");
    return placement;
  }

  static int listed_chunks(const DescribedPlacement& placement) {
    std::vector<int> held(static_cast<size_t>(std::ranges::max(placement.devices)) + 1, 0);
    for (const int device : placement.devices) ++held[static_cast<size_t>(device)];
    return std::ranges::max(held);
  }

  static int read_chunks(const YamlValue& value, const DescribedPlacement& placement) {
    using Kind = DescribedPlacement::Kind;
    const bool chosen = placement.kind == Kind::kLooped || placement.kind == Kind::kWave ||
                        placement.kind == Kind::kFormula;
    if (!chosen) value.fail_key("the placement says how many chunks a device has");
    return static_cast<int>(value.integer(1, 1024));
  }

  // ---- parameters ----

  void read_parameters() {
    for (const char* section : {"parameters", "let"}) {
      const auto given = map_.find(section);
      if (!given) continue;
      const bool free = section == std::string_view("parameters");
      for (const auto& [name, value] : given->entries()) add_parameter(name, value, free);
    }
  }

  void add_parameter(const std::string& name, const YamlValue& value, bool free) {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
    const auto is_rest = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
    if (name.empty() || !is_letter(name.front()) || !std::ranges::all_of(name, is_rest)) {
      value.fail_key("a parameter's name has small letters, digits and '_', a letter first");
    }
    const std::vector<std::string> reserved = reserved_names();
    if (std::ranges::find(reserved, name) != reserved.end()) {
      value.fail_key(fmt::format("'{}' has a meaning of its own: choose another name", name));
    }
    if (std::ranges::find(names_, name) != names_.end()) {
      value.fail_key(fmt::format("'{}' is there already", name));
    }
    if (parameters_.size() == kMostParameters) {
      value.fail_key(fmt::format("more than {} parameters", kMostParameters));
    }
    parameters_.push_back(free ? free_parameter(name, value)
                               : DescribedParameter{name, formula(value), {}, {}});
    names_.push_back(name);
  }

  [[nodiscard]] DescribedParameter free_parameter(const std::string& name,
                                                  const YamlValue& value) const {
    if (!value.is_map()) {
      value.fail(
          "expected {usual: FORMULA, from: FORMULA, to: FORMULA}; a value that is not to be "
          "chosen stands in 'let'");
    }
    YamlMap map(value);
    DescribedParameter parameter{
        name, formula(map.require("usual", "its value where none is given")),
        formula(map.require("from", "its least value")), formula(map.require("to", "its most"))};
    map.finish();
    return parameter;
  }

  std::vector<Expression> read_requirements() {
    std::vector<Expression> all;
    const auto given = map_.find("require");
    if (!given) return all;
    if (!given->is_list()) return {formula(*given)};
    for (const YamlValue& each : given->list()) all.push_back(formula(each));
    return all;
  }

  // ---- weight versions ----

  std::optional<DescribedVersions> read_versions(const Description& description) {
    const auto given = map_.find("weight_versions");
    if (!given) return std::nullopt;
    const bool one = description.placement.kind == DescribedPlacement::Kind::kLinear;
    const bool pairs = description.rules ? description.rules->has(PassKind::kFB)
                                         : !description.beside_forward.empty();
    if (!one || description.splits || pairs) {
      given->fail_key(
          "iterations run into each other with a linear placement, no splits and no pairs only");
    }
    static const std::vector<std::string> kSteps{"microbatch", "iteration"};
    YamlMap map(*given);
    DescribedVersions versions{
        formula(map.require("kept", "versions of weights on device d of p"), {"p", "d"}),
        map.require("step_after", "microbatch or iteration").choice(kSteps) == "microbatch"};
    map.finish();
    return versions;
  }

  // ---- copies to the host ----

  std::vector<DescribedCopies> read_copies() {
    std::vector<DescribedCopies> lines;
    const auto given = map_.find("copies");
    if (!given) return lines;
    if (!given->is_list()) given->fail("expected a list of {stage: s, ahead: PASSES}");
    for (const YamlValue& each : given->list()) {
      if (lines.size() == kMostLines) each.fail(fmt::format("more than {} lines", kMostLines));
      YamlMap map(each);
      DescribedCopies copies{.where = each.where()};
      copies.stages = read_stages(map.require("stage", kStages));
      for (const auto& [key, of] :
           {std::pair("only", &copies.only), std::pair("ahead", &copies.ahead),
            std::pair("room", &copies.room)}) {
        if (const auto value = map.find(key)) *of = formula(*value, names_and(pass_names()));
      }
      map.finish();
      lines.push_back(std::move(copies));
    }
    return lines;
  }

  // ---- rules ----

  DeviceRules read_rules(const YamlValue& value) {
    for (const char* key :
         {"period", "group", "block", "pairs", "warm_up", "steady", "cool_down"}) {
      if (const auto given = map_.find(key)) given->fail_key("is of a block: 'rules' has none");
    }
    if (!value.is_list()) value.fail("expected a list of {passes: [F, BW], repeat: FORMULA}");
    DeviceRules rules;
    rules.where = value.key_where();
    for (const YamlValue& each : value.list()) {
      if (rules.phases.size() == kMostLines) {
        each.fail(fmt::format("more than {} phases", kMostLines));
      }
      rules.phases.push_back(read_phase(each));
    }
    if (rules.phases.empty()) value.fail("expected phases such as {passes: [F, BW]}");
    if (const auto order = map_.find("order")) {
      YamlMap map(*order);
      const auto chunk_of = [&](const char* key) -> std::optional<Expression> {
        const auto given = map.find(key);
        if (!given) return std::nullopt;
        return formula(*given, names_and(rule_names()));
      };
      rules.forward_order = chunk_of("F");
      rules.backward_order = chunk_of("B");
      map.finish();
    }
    return rules;
  }

  [[nodiscard]] RulePhase read_phase(const YamlValue& value) const {
    YamlMap map(value);
    RulePhase phase;
    const YamlValue passes = map.require("passes", "a list such as [F, BW]");
    if (!passes.is_list()) passes.fail("expected a list such as [F, BW]");
    for (const YamlValue& each : passes.list()) phase.steps.push_back(rule_step(each));
    if (phase.steps.empty()) passes.fail("expected passes such as [F, BW]");
    if (const auto rounds = map.find("repeat")) {
      phase.rounds = formula(*rounds, names_and({"d"}));
    }
    map.finish();
    return phase;
  }

  // BW, or F&BW as one block.
  static RuleStep rule_step(const YamlValue& value) {
    const std::string text = value.text();
    const size_t join = text.find('&');
    const auto pass = rule_pass(value, text.substr(0, join));
    if (join == std::string::npos) {
      if (!pass) (void)value.choice(pass_kinds());  // says which there are
      return {*pass};
    }
    const auto beside = rule_pass(value, text.substr(join + 1));
    if (!pass || !beside || pass->kind != PassKind::kF || !runs_beside_forward(beside->kind)) {
      value.fail("expected F&BW, F&B or F&W as an overlapped block, with chunks as in F0&BW1");
    }
    return {*pass, beside};
  }

  // BW, or BW1 of chunk 1; nothing where `text` is no kind of pass.
  static std::optional<RulePass> rule_pass(const YamlValue& value, const std::string& text) {
    const size_t digits = text.find_last_not_of("0123456789") + 1;
    const auto kind = kind_of(text.substr(0, digits));
    if (!kind) return std::nullopt;
    RulePass pass{.kind = *kind, .where = value.where()};
    if (digits == text.size()) return pass;
    if (is_vocabulary(pass.kind)) value.fail("a device's share of the vocabulary has no chunks");
    if (text.size() - digits > 4) value.fail("expected a chunk below 10000");
    pass.chunk = std::stoi(text.substr(digits));
    return pass;
  }

  // ---- the block ----

  void read_repeating(Description& description) {
    if (const auto order = map_.find("order"))
      order->fail_key("is of 'rules', which are not there");
    description.period =
        formula(map_.require("period", "the slots from one microbatch to the next"));
    description.group = read_group();
    const YamlValue block =
        map_.require("block", "a list of {pass: F, stage: s, at: SLOT}, or instead of it 'rules'");
    description.where = block.key_where();
    description.block = read_block(block);
    description.beside_forward = read_pairs(description.block);
    description.tightened = {is_tightened("warm_up"), is_tightened("steady"),
                             is_tightened("cool_down")};
  }

  std::optional<DescribedGroup> read_group() {
    const auto given = map_.find("group");
    if (!given) return std::nullopt;
    YamlMap map(*given);
    DescribedGroup group{
        formula(map.require("size", "the microbatches of a group")),
        formula(map.require("step", "the slots between two microbatches of a group"))};
    map.finish();
    return group;
  }

  [[nodiscard]] std::vector<DescribedPasses> read_block(const YamlValue& block) const {
    if (!block.is_list()) block.fail("expected a list of {pass: F, stage: s, at: SLOT}");
    std::vector<DescribedPasses> lines;
    for (const YamlValue& each : block.list()) {
      if (lines.size() == kMostLines) each.fail(fmt::format("more than {} lines", kMostLines));
      lines.push_back(read_passes(each));
    }
    if (lines.empty()) block.fail("expected at least the lines of F and of BW, or of B and W");
    return lines;
  }

  std::vector<PassKind> read_pairs(const std::vector<DescribedPasses>& block) {
    static const std::vector<std::string> kPairs{"F&BW", "F&B", "F&W"};
    std::vector<PassKind> kinds;
    const auto given = map_.find("pairs");
    if (!given) return kinds;
    if (!given->is_list()) given->fail("expected a list such as [F&BW]");
    for (const YamlValue& each : given->list()) {
      const std::string pair = each.choice(kPairs);
      kinds.push_back(*kind_of(pair.substr(2)));
      if (std::ranges::find(block, kinds.back(), &DescribedPasses::kind) != block.end()) continue;
      each.fail(fmt::format("no line of the block has {}", pair.substr(2)));
    }
    return kinds;
  }

  [[nodiscard]] DescribedPasses read_passes(const YamlValue& value) const {
    YamlMap map(value);
    DescribedPasses passes;
    passes.where = value.where();
    const YamlValue pass = map.require("pass", "F, B, W, BW or R");
    passes.kind = *kind_of(pass.choice(pass_kinds()));
    const bool vocabulary = is_vocabulary(passes.kind);
    if (!vocabulary) {
      passes.stages = read_stages(map.require("stage", kStages));
    } else if (const auto stage = map.find("stage")) {
      stage->fail_key("every device has its share of the vocabulary: 'at' may name d");
    }
    const YamlValue at = map.require("at", "the slot in which the first microbatch's begins");
    if (at.text() != "free") {
      passes.at = formula(at, names_and(pass_names()));
    } else if (passes.kind != PassKind::kW) {
      at.fail("only W take free slots");
    }
    if (vocabulary && passes.at->mentions(names_.size())) {
      at.fail("every device has its share of the vocabulary: there is no s, but d");
    }
    if (const auto slots = map.find("slots")) passes.slots = formula(*slots);
    map.finish();
    return passes;
  }

  [[nodiscard]] DescribedStages read_stages(const YamlValue& value) const {
    const std::string text = value.text();
    if (text == "s") return {};
    const size_t dots = text.find("..");
    if (dots == std::string::npos) {
      return {.first = formula(value)};
    }
    Location second = value.where();
    const auto column = static_cast<size_t>(std::max(second.column, 1) - 1);
    const size_t at = second.text.view().find(text, column);
    if (at != std::string_view::npos) second.column = static_cast<int>(at + dots) + 3;
    return {.first = Expression(text.substr(0, dots), value.where(), names_),
            .last = Expression(text.substr(dots + 2), second, names_)};
  }

  [[nodiscard]] std::vector<std::string> names_and(const std::vector<std::string>& more) const {
    std::vector<std::string> names = names_;
    names.insert(names.end(), more.begin(), more.end());
    return names;
  }

  bool is_tightened(const char* key) {
    static const std::vector<std::string> kWays{"repeat", "tighten"};
    const auto given = map_.find(key);
    return given && given->choice(kWays) == "tighten";
  }

  YamlMap map_;
  const std::string& path_;
  std::vector<DescribedParameter> parameters_;
  std::vector<std::string> names_ = size_names();
};

}  // namespace

std::shared_ptr<const DescribedSchedule> read_description_file(const std::string& path,
                                                               const Location& asked) {
  return read_description(YamlSource::from_file(path, asked));
}

std::shared_ptr<const DescribedSchedule> read_description(const YamlSource& source) {
  const YamlValue root = source.root();
  if (root.is_null()) root.fail("expected a description: this file is empty");
  if (root.is_map() && root.node()["schedule"]) {
    root.fail(
        "expected the description of a schedule: this file is a scenario, and one is read at a "
        "time");
  }
  return as_schedule(DescriptionReader(source.root(), source.name()).read());
}

}  // namespace pipesim
