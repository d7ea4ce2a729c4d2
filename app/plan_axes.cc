#include "app/plan_axes.h"

#include <array>

#include "sim/core/text.h"

namespace pipesim {
namespace {

struct SizeOption {
  const char* name;
  const char* names;  // with the short one
  std::vector<int> PlanAxes::*sizes;
  const char* help;
};
constexpr std::array kSizes{
    SizeOption{"--tensor", "--tensor,--tp", &PlanAxes::tensor,
               "Only these tensor parallel sizes (default: divisors of a node)"},
    SizeOption{"--context", "--context,--cp", &PlanAxes::context,
               "Only these context parallel sizes"},
    SizeOption{"--expert", "--expert,--ep", &PlanAxes::expert, "Only these expert parallel sizes"},
    SizeOption{"--pipeline", "--pipeline,--pp", &PlanAxes::pipeline,
               "Only these pipeline parallel sizes"},
    SizeOption{"--virtual", "--virtual,--vpp", &PlanAxes::chunks,
               "Only these chunks per device, where a schedule has a choice"},
    SizeOption{"--micro-batch-size", "--micro-batch-size,--mbs", &PlanAxes::micro_batch,
               "Only these (default: 1, 2, 4, 8)"}};

// Reads some of `names`, as their numbers.
template <class Enum, class Names>
std::vector<Enum> read_names(const std::vector<std::string>& asked, const Names& names,
                             const std::string& option, const CommandLine& line) {
  check_once(asked, option, line);
  std::vector<Enum> all;
  const std::vector<std::string> known(names.begin(), names.end());
  for (const std::string& name : asked) {
    const auto found = std::ranges::find(known, name);
    if (found == known.end()) {
      throw InputError(line.where(option, name),
                       fmt::format("unknown name '{}'{}", name, suggestion(name, known)));
    }
    all.push_back(static_cast<Enum>(found - known.begin()));
  }
  return all;
}

std::vector<RecomputeGranularity> read_recompute(const std::vector<std::string>& asked,
                                                 const CommandLine& line) {
  const std::string option = "--recompute";
  check_once(asked, option, line);
  std::vector<std::string> known(kRecomputeGranularities.begin(), kRecomputeGranularities.end());
  known.insert(known.end(), kRecomputeModules.begin(), kRecomputeModules.end());
  std::vector<RecomputeGranularity> all;
  for (const std::string& name : asked) {
    const auto granularity = recompute_from(name);
    if (!granularity) {
      throw InputError(line.where(option, name),
                       fmt::format("unknown name '{}'{}", name, suggestion(name, known)));
    }
    all.push_back(*granularity);
  }
  return all;
}

std::vector<ContextExchange> read_exchanges(const std::vector<std::string>& asked,
                                            const CommandLine& line) {
  std::vector<std::string> names(kContextExchanges.begin(), kContextExchanges.end());
  names.emplace_back("all");
  const auto all = static_cast<ContextExchange>(kContextExchanges.size());
  auto exchanges = read_names<ContextExchange>(asked, names, "--cp-comm-type", line);
  if (std::ranges::count(exchanges, all) == 0) return exchanges;
  if (exchanges.size() > 1) {
    throw InputError(line.where("--cp-comm-type", "all"), "'all' stands alone");
  }
  return {ContextExchange::kAllGather, ContextExchange::kRing, ContextExchange::kHeads,
          ContextExchange::kHeadsAndRing};
}

// Why it is not planned; empty where it is.
std::string why_not_planned(const Schedule& schedule, bool no_offload) {
  if (schedule.place(2, schedule.min_chunks).directions() > 1) {
    return "holds two copies of the model: not planned";
  }
  if (schedule.versions) {
    return "steps with weights of before: not planned, pipesim run simulates it";
  }
  return no_offload && schedule.offloads() ? "offloads activations, which --no-offload excludes"
                                           : "";
}

std::vector<std::string> read_schedules(const PlanCommand& command, const CommandLine& line) {
  const std::string option = "--schedules";
  const std::vector<std::string> valid = schedule_names();
  std::vector<std::string> names;
  for (const std::string& given : command.schedules) {
    names.push_back(meant_name(given, valid));
    const Schedule* schedule = find_schedule(names.back());
    if (std::ranges::count(names, names.back()) > 1) {
      throw InputError(line.where(option, given),
                       fmt::format("{}: '{}' is there twice", option, given));
    }
    const std::string why = schedule == nullptr ? fmt::format("unknown schedule '{}'{}", given,
                                                              suggestion(given, valid))
                                                : why_not_planned(*schedule, command.no_offload);
    if (why.empty()) continue;
    throw InputError(line.where(option, given),
                     schedule == nullptr ? why : fmt::format("{} {}", given, why));
  }
  return names;
}

}  // namespace

PlanAxes read_plan_axes(const PlanCommand& command, const CommandLine& line) {
  PlanAxes axes = command.axes;
  if (!command.schedules.empty()) axes.schedules = read_schedules(command, line);
  for (const SizeOption& size : kSizes) check_once(axes.*size.sizes, size.name, line);
  if (!command.recompute.empty()) {
    axes.recompute = read_recompute(command.recompute, line);
  }
  if (!command.vocabulary.empty()) {
    axes.vocabulary = read_names<VocabularyPlacement>(command.vocabulary, kVocabularyPlacements,
                                                      "--vocabulary", line);
  }
  axes.sharding =
      read_names<ShardingStrategy>(command.sharding, kShardingStrategies, "--sharding", line);
  axes.exchange = read_exchanges(command.exchange, line);
  axes.dispatchers =
      read_names<ExpertDispatcher>(command.dispatchers, kExpertDispatchers, "--dispatcher", line);
  if (command.no_expert_overlap) axes.expert_overlap = {false};
  if (command.no_offload) {
    axes.offload = {false};
    std::erase_if(axes.schedules,
                  [](const std::string& name) { return find_schedule(name)->offloads(); });
  }
  return axes;
}

void add_plan_axes(Parser& parser, PlanCommand& command) {
  for (const SizeOption& size : kSizes) {
    add_list(parser, size.names, command.axes.*size.sizes, size.help).range(1, 1 << 16);
  }
  add_list(parser, "--schedules", command.schedules, "Only these schedules");
  add_list(parser, "--recompute", command.recompute,
           "Only these (default: none,pointwise,selective,full,layernorm, with experts "
           "layernorm+moe_act, with latent attention also mla_up_proj)");
  add_list(parser, "--vocabulary", command.vocabulary,
           "Only these placements (default: first_last,vocab-1,vocab-2)");
  add_list(parser, "--sharding", command.sharding,
           "Try these of no_shard,optim,optim_grads,optim_grads_params (default: what "
           "memory.data_parallel_sharding_strategy says, else optim, without a pipeline also "
           "optim_grads_params)");
  add_list(parser, "--cp-comm-type", command.exchange,
           "Exchanges of context ranks to try: some of all_gather,p2p,a2a,a2a+p2p, or all "
           "(default: parallel.cp_comm_type, else all_gather)");
  add_list(parser, "--dispatcher", command.dispatchers,
           "Dispatchers of tokens to try: some of alltoall,deepep,hybridep (default: "
           "cost.moe_token_dispatcher_type, else the recipes')");
  parser.add_flag("--no-expert-overlap", command.no_expert_overlap,
                  "Only layouts without overlap_moe_expert_parallel_comm");
  parser.add_flag("--no-offload", command.no_offload, "Activations stay on their GPU");
  parser.add_flag("--offload-modules", command.offload_modules,
                  "Also try layouts whose attention and norms offload their inputs");
}

}  // namespace pipesim
