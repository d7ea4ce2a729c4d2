#include "sim/interop/frameworks/draft.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

void take_rest(const Settings& settings, Draft& draft) {
  const Untaken untaken = settings.untaken();
  draft.without_effect = untaken.without_effect;
  const auto add = [](const std::vector<std::string>& from, std::vector<std::string>& to) {
    to.insert(to.end(), from.begin(), from.end());
  };
  add(untaken.not_modelled, draft.not_modelled);
  add(untaken.unknown, draft.unknown);
}

std::string scenario_of(const Draft& draft) {
  std::string text = fmt::format("# From {}.\n", draft.origin);
  text += comments("missing", draft.missing) + comments("assumed", draft.notes) +
          comments("not modelled", draft.not_modelled) + comments("unknown", draft.unknown);
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
  list("missing", draft.missing);
  list("assumed", draft.notes);
  list("not modelled", draft.not_modelled);
  list("unknown", draft.unknown);
  if (draft.without_effect > 0) {
    text += fmt::format("{} settings have no effect on what is simulated\n", draft.without_effect);
  }
  return text;
}

}  // namespace pipesim
