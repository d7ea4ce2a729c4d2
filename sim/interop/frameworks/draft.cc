#include "sim/interop/frameworks/draft.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <span>

#include "sim/core/letters.h"
#include "sim/read/model.h"

namespace pipesim {
namespace {

std::string comments(const char* what, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += fmt::format("# {}: {}\n", what, line);
  return text;
}

std::string section_text(const char* name, const Section& section) {
  if (section.empty()) return "";
  std::string text = fmt::format("{}:\n", name);
  std::string open;
  for (const auto& [key, value] : section) {
    // "moe.num_experts" stands in a map within.
    const size_t dot = key.find('.');
    const std::string outer = dot == std::string::npos ? "" : key.substr(0, dot);
    if (outer != open && !outer.empty()) text += fmt::format("  {}:\n", outer);
    open = outer;
    text += outer.empty() ? fmt::format("  {}: {}\n", key, value)
                          : fmt::format("    {}: {}\n", key.substr(dot + 1), value);
  }
  return text;
}

}  // namespace

void put(Section& section, std::string_view key, long value) {
  section.emplace_back(key, fmt::format("{}", value));
}
void put(Section& section, std::string_view key, std::string_view value) {
  section.emplace_back(key, value);
}
void put_flag(Section& section, std::string_view key, bool value) {
  section.emplace_back(key, value ? "true" : "false");
}

bool has_key(const Section& section, std::string_view key) {
  return std::ranges::any_of(section, [key](const auto& entry) { return entry.first == key; });
}

void put_sharding(Section& memory, const ParameterState& state) {
  const ShardingStrategy strategy = strategy_of(state);
  if (strategy == ShardingStrategy::kNoShard) return;
  if (strategy == ShardingStrategy::kOptim) {
    put_flag(memory, "use_distributed_optimizer", true);
  } else {
    put(memory, "data_parallel_sharding_strategy", to_text(strategy));
  }
  if (state.shard_degree > 0) put(memory, "data_parallel_shard_degree", state.shard_degree);
  if (!state.reshard_after_forward) put_flag(memory, "reshard_after_forward", false);
  if (!state.reduce_every_microbatch) put_flag(memory, "reduce_every_microbatch", false);
}

std::optional<Transformer> catalogue_model(Settings& settings) {
  const Setting* named = settings.find({"model"});
  if (named == nullptr) return std::nullopt;
  return find_model(named->text(), named->where);
}

namespace {

// "; compared with 7B, 13B", where a script does so.
std::string compared_text(const Settings& settings, const std::string& name) {
  const auto found = settings.compared().find(name);
  if (found == settings.compared().end()) return "";
  constexpr size_t kMost = 12;
  const auto shown = std::span(found->second).first(std::min(found->second.size(), kMost));
  return fmt::format("; compared with {}{}", fmt::join(shown, ", "),
                     found->second.size() > kMost ? ", ..." : "");
}

// "TP=...: tensor_model_parallel_size (line 4)", a line for each variable.
std::vector<std::string> questions(const Settings& settings) {
  const std::vector<Asked> asked = settings.asked();
  std::vector<std::pair<std::string, std::vector<std::string>>> by_name;
  for (const Asked& each : asked) {
    std::vector<std::string> others = each.alternatives;
    std::erase(others, "");
    constexpr size_t kMost = 4;
    const auto shown = std::span(each.what).first(std::min(each.what.size(), kMost));
    std::string said =
        fmt::format("{}{}", fmt::join(shown, ", "), each.what.size() > kMost ? ", ..." : "");
    if (each.where.line > 0) said += fmt::format(" (line {}", each.where.line);
    if (others.size() > 1 && others.size() <= kMost)
      said += fmt::format(": {}", fmt::join(others, " or "));
    if (each.where.line > 0) said += ")";
    for (const std::string& name : each.names) {
      auto found = std::ranges::find(by_name, name, [](const auto& pair) { return pair.first; });
      if (found == by_name.end()) found = by_name.insert(found, {name, {}});
      if (std::ranges::count(found->second, said) == 0) found->second.push_back(said);
    }
  }
  std::vector<std::string> lines;
  for (auto& [name, uses] : by_name) {
    constexpr size_t kMost = 4;
    const bool more = uses.size() > kMost;
    uses.resize(std::min(uses.size(), kMost));
    lines.push_back(fmt::format("{}=...: {}{}{}", name, fmt::join(uses, ", "), more ? ", ..." : "",
                                compared_text(settings, name)));
  }
  return lines;
}

// A line that names a missing setting and says what a question says already.
bool repeats(const std::string& line, const std::vector<Asked>& asked) {
  static constexpr std::array<std::string_view, 8> kSizes{
      "nnodes",  "num_nodes",     "nodes",    "nproc_per_node",
      "devices", "gpus_per_node", "num_gpus", "ntasks"};
  return std::ranges::any_of(asked, [&](const Asked& each) {
    return std::ranges::any_of(each.what, [&](const std::string& what) {
      if (line.find(what + "=N") != std::string::npos || line.starts_with(what + "=true"))
        return true;
      if (what == "fp16" || what == "fp8_format") return line.starts_with("bf16=true");
      if (what == "num_layers") return line.starts_with("a model");
      return std::ranges::count(kSizes, what) > 0 && line.find("world_size=N") != std::string::npos;
    });
  });
}

}  // namespace

void take_rest(const Settings& settings, Draft& draft) {
  const Untaken untaken = settings.untaken();
  draft.without_effect = untaken.without_effect;
  draft.stops.insert(draft.stops.end(), untaken.stops.begin(), untaken.stops.end());
  draft.command = settings.command();
  const auto add = [](const std::vector<std::string>& from, std::vector<std::string>& to) {
    to.insert(to.end(), from.begin(), from.end());
  };
  add(untaken.not_modelled, draft.not_modelled);
  add(untaken.unknown, draft.unknown);
  draft.notes.insert(draft.notes.begin(), settings.notes().begin(), settings.notes().end());
  const std::vector<Asked> asked = settings.asked();
  std::erase_if(draft.missing, [&](const std::string& line) { return repeats(line, asked); });
  const std::vector<std::string> lines = questions(settings);
  draft.missing.insert(draft.missing.begin(), lines.begin(), lines.end());
}

std::vector<std::string> accept(const std::vector<std::string>& names, Draft& draft) {
  std::vector<std::string> others;
  for (const std::string& name : names) {
    const size_t removed =
        std::erase_if(draft.stops, [&](const auto& stop) { return stop.first == name; });
    if (removed == 0) others.push_back(name);
  }
  return others;
}

namespace {

std::vector<std::string> stop_lines(const Draft& draft) {
  std::vector<std::string> lines;
  for (const auto& [name, words] : draft.stops) {
    lines.push_back(
        fmt::format("{}: it changes the answer; --accept {} goes on without", words, name));
  }
  return lines;
}

}  // namespace

void not_understood(Draft& draft, std::string name, std::string words) {
  draft.unknown.push_back(words);
  draft.stops.emplace_back(std::move(name), std::move(words));
}

void stop_at_optimizer(const char* setting, const std::string& named, Draft& draft) {
  const std::string name = small_letters(named);
  const auto has = [&name](const char* part) { return name.find(part) != std::string::npos; };
  const bool two_moments = has("adam") || has("lamb");
  const bool compressed =
      has("onebit") || has("zeroone") || has("8bit") || has("4bit") || has("mini");
  if (two_moments && !compressed) return;
  not_understood(
      draft, setting,
      fmt::format("{} {}: its states and exchange count as Adam's here", setting, named));
}

std::string scenario_of(const Draft& draft) {
  std::string text = fmt::format("# From {}.\n", draft.origin);
  if (!draft.command.empty()) text += fmt::format("# command: {}\n", draft.command);
  text += comments("not understood", stop_lines(draft)) + comments("missing", draft.missing) +
          comments("assumed", draft.notes) + comments("not modelled", draft.not_modelled) +
          comments("unknown", draft.unknown);
  text += fmt::format("schedule: {}\n", draft.schedule);
  text += section_text("parallel", draft.parallel) + section_text("batch", draft.batch) +
          section_text("model", draft.model);
  if (!draft.model_name.empty()) text += fmt::format("model: {}\n", draft.model_name);
  if (!draft.cluster.empty()) text += fmt::format("cluster: {}\n", draft.cluster);
  if (!draft.recompute.empty()) text += fmt::format("recompute: {}\n", draft.recompute);
  return text + section_text("memory", draft.memory) + section_text("cost", draft.cost) +
         section_text("optimizer", draft.optimizer) + section_text("framework", draft.framework);
}

std::string summary_of(const Draft& draft) {
  std::string text;
  const auto list = [&text](const char* what, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) text += fmt::format("{}: {}\n", what, line);
  };
  list("not understood", stop_lines(draft));
  list("missing", draft.missing);
  if (!draft.command.empty()) text += fmt::format("command: {}\n", draft.command);
  list("assumed", draft.notes);
  const auto stops = [&draft](const std::string& line) {
    return std::ranges::any_of(draft.stops, [&](const auto& each) { return each.second == line; });
  };
  for (const std::string& line : draft.not_modelled) {
    if (!stops(line)) text += fmt::format("not modelled: {}\n", line);
  }
  if (const auto others = std::ranges::count_if(
          draft.unknown, [&](const std::string& line) { return !stops(line); });
      others > 0) {
    text += fmt::format("unknown: {} settings, none of which names a size, a schedule or memory\n",
                        others);
  }
  if (draft.without_effect > 0) {
    text += fmt::format("{} settings have no effect on what is simulated\n", draft.without_effect);
  }
  return text;
}

}  // namespace pipesim
