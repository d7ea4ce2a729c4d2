#include "app/plan_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sstream>

#include "app/common_options.h"
#include "app/orders.h"
#include "app/outputs.h"
#include "app/plan_axes.h"
#include "app/plan_start.h"
#include "app/tokens.h"
#include "sim/core/text.h"
#include "sim/layouts/question.h"
#include "sim/layouts/runs_on.h"
#include "sim/layouts/switches.h"
#include "sim/read/modelled.h"
#include "sim/read/scenario.h"
#include "sim/read/traced.h"

namespace pipesim {
namespace {

constexpr int kMostGpus = 1 << 20;
constexpr std::array<std::string_view, 3> kBaselines{"usual", "published", "none"};

std::optional<int> whole_number(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(number) : std::nullopt;
}

std::optional<Framework> framework_of(const PlanCommand& command) {
  const auto found = std::ranges::find(kFrameworkNames, command.runs_on);
  if (found == kFrameworkNames.end()) return std::nullopt;
  return kFrameworks.at(static_cast<size_t>(found - kFrameworkNames.begin()));
}

// Where the value of an option stands: on the command line, or in the scenario that says it.
template <class Value>
Location place_of(const PlanCommand& command, const CommandLine& line, const std::string& option,
                  const Value& value) {
  const auto own = command.said_at.find(option);
  return own == command.said_at.end() ? line.where(option, fmt::format("{}", value)) : own->second;
}

// The settings of a framework that neither of two lists says otherwise.
auto defaults_beside(Framework framework, const std::vector<Override>& these,
                     const std::vector<Override>& those) {
  auto defaults = defaults_of(framework);
  std::erase_if(defaults, [&](const auto& each) {
    return std::ranges::count(these, each.path, &Override::path) > 0 ||
           std::ranges::count(those, each.path, &Override::path) > 0;
  });
  return defaults;
}

// Options as scenario keys, in front of those of the settings.
std::vector<Override> settings_of(const PlanCommand& command, const std::string& cluster,
                                  std::optional<Framework> framework, const CommandLine& line) {
  const std::vector<Override> others = line.overrides(command.settings);
  const auto check_unsaid = [&others](const std::vector<std::string>& asked, const char* option,
                                      std::initializer_list<std::string_view> paths) {
    for (const Override& other : others) {
      if (asked.empty() || std::ranges::count(paths, other.path) == 0) continue;
      throw InputError(other.where, fmt::format("{} is what {} says", other.path, option));
    }
  };
  check_unsaid(command.sharding, "--sharding",
               {"memory.data_parallel_sharding_strategy", "memory.use_distributed_optimizer"});
  check_unsaid(command.exchange, "--cp-comm-type",
               {"parallel.cp_comm_type", "parallel.hierarchical_context_parallel_sizes"});
  check_unsaid(command.dispatchers, "--dispatcher",
               {"cost.moe_token_dispatcher_type", "cost.moe_flex_dispatcher_backend"});
  std::vector<Override> settings;
  const auto add = [&](const std::string& path, const std::string& value, const std::string& option,
                       const std::string& typed = {}) {
    const auto same = std::ranges::find(others, path, &Override::path);
    if (same != others.end()) {
      throw InputError(same->where, fmt::format("{} is what {} says", path, option));
    }
    const Location where = place_of(command, line, option, typed.empty() ? value : typed);
    settings.push_back({path, value, where, where});
  };
  // A name stands as it is, unless keys of its own change it.
  const auto add_named = [&](const std::string& section, const std::string& key,
                             const std::string& name, const std::string& typed = {}) {
    const bool changed = std::ranges::any_of(
        others, [&](const Override& other) { return other.path.starts_with(section + "."); });
    add(changed ? section + "." + key : section, name, "--" + section, typed);
  };
  if (command.model.ends_with(".json")) {
    add(is_traced_file(command.model) ? "model.traced" : "model.hf_config", command.model,
        "--model");
  } else if (!command.model.empty()) {
    add_named("model", "base", command.model);
  }
  if (!command.own_cluster) add_named("cluster", "name", cluster, command.clusters.front());
  add("batch.seq_length", fmt::format("{}", command.seq_length), "--seq-length");
  for (const std::string& precision : command.precisions) {
    add("memory.precision", precision, "--precision");
  }
  if (command.limit) add("memory.capacity", *command.limit, "--memory-limit");
  if (framework) {
    for (const auto& [path, value] : defaults_beside(*framework, others, command.own)) {
      add(path, value, "--runs-on");
    }
  }
  settings.insert(settings.end(), others.begin(), others.end());
  return behind(command.own, settings);
}

// A person says how data ranks divide parameters' state.
bool says_sharding(const std::vector<Override>& settings) {
  return std::ranges::any_of(settings, [](const Override& each) {
    return each.path == "memory.data_parallel_sharding_strategy" ||
           each.path == "memory.use_distributed_optimizer" ||
           each.path == "memory.data_parallel_shard_degree";
  });
}

// The question as one framework is asked, or as none is.
PlanQuestion question_to(const PlanCommand& command, const std::string& cluster,
                         const PlanAxes& axes, std::optional<Framework> framework,
                         const CommandLine& line) {
  std::vector<Override> settings = settings_of(command, cluster, framework, line);
  PlanQuestion question = read_plan_question(settings).question;
  if (command.defaults == "recipes") {
    std::vector<PlanSetting> said;
    for (const Override& each : settings) said.push_back({each.path, each.value});
    const auto tuned = tuned_switches(framework, question, said);
    for (const auto& [path, value] : tuned) settings.push_back({path, value, {}});
    if (!tuned.empty()) question = read_plan_question(settings).question;
  }
  question.gpus = command.gpus > 0 ? command.gpus
                                   : command.nodes * question.base.hardware->cluster.gpus_per_node;
  question.global_batch = command.global_batch;
  question.axes = axes;
  question.axes.runs_on = framework;
  if (command.recompute.empty()) {
    question.axes.recompute = recompute_to_plan(question.base.modelled->model);
    question.axes.fewest_layers = framework != Framework::kTorchtitan;  // it has every n-th
  }
  if (command.offload_modules) question.axes.modules = modules_to_plan();
  question.axes.fsdp = axes.sharding.empty() && !says_sharding(settings) &&
                       strategy_of(question.base.modelled->state) == ShardingStrategy::kOptim;
  return question;
}

// One for each framework that can be asked.
std::vector<PlanQuestion> questions_to_frameworks(const PlanCommand& command,
                                                  const std::string& cluster, const PlanAxes& axes,
                                                  const CommandLine& line) {
  std::vector<PlanQuestion> all;
  for (const Framework framework : kFrameworks) {
    if (framework == Framework::kMegatronBridge) continue;  // runs what Megatron-LM runs
    try {
      PlanQuestion question = question_to(command, cluster, axes, framework, line);
      if (why_it_runs_none(framework, question).empty()) all.push_back(std::move(question));
    } catch (const InputError&) {
      // Its own settings contradict what is asked.
    }
  }
  return all;
}

// A cluster, its GPUs and a precision, of the lists that are asked for.
struct Part {
  PlanCommand command;  // with the GPUs and the precision of this part
  std::string cluster;  // its name
  std::string label;    // what tells it from the others
  size_t number = 0;    // of its cluster
};

Part part_of(const PlanCommand& command, size_t number, const CommandLine& line) {
  const std::string& text = command.clusters[number];
  Part part{command, text.substr(0, text.find(':')), text, number};
  part.command.clusters = {text};
  const Location where = place_of(command, line, "--cluster", text);
  if (is_yaml(part.cluster)) {
    throw InputError(where,
                     "--cluster is a name: a cluster of your own is an entry of clusters.yaml in "
                     "--catalog DIR (docs/how-to/your-cluster.md)");
  }
  if (const size_t colon = text.find(':'); colon != std::string::npos) {
    const auto gpus = whole_number(text.substr(colon + 1));
    if (!gpus || *gpus < 1 || *gpus > kMostGpus) {
      throw InputError(where, fmt::format("'{}': expected CLUSTER:GPUS, as dgx-h100:1024", text));
    }
    part.command.gpus = *gpus;
  }
  if (part.command.gpus == 0 && command.nodes == 0) {
    throw InputError(where,
                     fmt::format("how many GPUs? --gpus N, --nodes N or --cluster {}:N", text));
  }
  return part;
}

std::vector<Part> parts_of(const PlanCommand& command, const CommandLine& line) {
  std::vector<Part> parts;
  for (size_t i = 0; i < command.clusters.size(); ++i) {
    const Part part = part_of(command, i, line);
    if (command.precisions.empty()) parts.push_back(part);
    for (const std::string& precision : command.precisions) {
      parts.push_back(part);
      parts.back().command.precisions = {precision};
      if (command.precisions.size() > 1) parts.back().label += " " + precision;
    }
  }
  return parts;
}

void check_dispatchers(const PlanQuestion& question, const CommandLine& line) {
  const std::string none = why_no_flex(*question.base.hardware);
  const std::string missing = why_no_deepep(*question.base.hardware);
  for (const ExpertDispatcher each : question.axes.dispatchers) {
    if (each == ExpertDispatcher::kAllToAll) continue;
    const Location where = line.where("--dispatcher", std::string(to_text(each)));
    if (!none.empty()) throw InputError(where, none + ": expected alltoall");
    if (each == ExpertDispatcher::kDeepEp && !missing.empty()) {
      throw InputError(where, missing + ": expected hybridep");
    }
  }
}

void check_experts(const PlanQuestion& question, const CommandLine& line) {
  const Transformer& model = question.base.modelled->model;
  const bool divides = std::ranges::any_of(question.axes.expert, [](int n) { return n > 1; });
  if (divides && !model.experts) {
    throw InputError(line.where("--expert"), fmt::format("{} has no experts", model.name));
  }
}

ClusterPlan read_question(const PlanCommand& command, const std::string& cluster,
                          const PlanAxes& axes, const CommandLine& line) {
  ClusterPlan plan;
  const auto framework = framework_of(command);
  plan.question = question_to(command, cluster, axes, framework, line);
  check_dispatchers(plan.question, line);
  check_experts(plan.question, line);
  const std::string doubt = doubt_of_batch(command.global_batch, command.seq_length);
  if (!doubt.empty()) {
    throw InputError(place_of(command, line, "--global-batch-size", command.global_batch), doubt);
  }
  if (framework) {
    const std::string why = why_it_runs_none(*framework, plan.question);
    if (!why.empty()) {
      throw InputError(line.where("--runs-on", command.runs_on),
                       fmt::format("{} runs no layout of it: {}", command.runs_on, why));
    }
  }
  const int node = plan.question.base.hardware->cluster.gpus_per_node;
  if (command.gpus > node && command.gpus % node != 0) {
    const int whole = command.gpus / node * node;
    throw InputError(place_of(command, line, "--gpus", command.gpus),
                     fmt::format("{} has nodes of {} GPUs: give whole nodes, as {} or {}", cluster,
                                 node, whole, whole + node));
  }
  if (command.runs_on != "frameworks") return plan;
  plan.others = questions_to_frameworks(command, cluster, axes, line);
  // Megatron's switches are those of the plan itself, which also names what nothing runs.
  const bool megatron =
      !plan.others.empty() && plan.others.front().axes.runs_on == Framework::kMegatron;
  if (megatron && command.all) plan.question = plan.others.front();
  if (megatron) plan.others.erase(plan.others.begin());
  return plan;
}

void add_question(Parser& parser, PlanCommand& command) {
  parser.add_option(
      "--model", command.model,
      "A name of `pipesim list models`, a Hugging Face config.json, or a traced model");
  add_list(parser, "--cluster", command.clusters,
           "A name of `pipesim list clusters`, or several with commas to compare; NAME:N with its "
           "GPUs; your own are clusters.yaml of --catalog DIR");
  add_list(parser, "--precision", command.precisions,
           fmt::format("One of {}, or several to compare (default: memory.precision)",
                       fmt::join(precision_names(), ",")));
  const Option gpus =
      parser.add_option("--gpus", command.gpus, "How many GPUs, where --cluster does not say it")
          .range(1, kMostGpus);
  parser.add_option("--nodes", command.nodes, "How many nodes, in place of --gpus")
      .range(1, 1 << 14)
      .excludes(gpus);
  parser
      .add_option("--global-batch-size,--gbs", command.global_batch,
                  "Samples of an iteration: its tokens over --seq-length")
      .range(1, 1 << 30);
  parser.add_option("--seq-length", command.seq_length, "Tokens of a sample; 4k are 4096")
      .with_binary_units()
      .range(1, 1 << 28);
  parser.add_option("--memory-limit", command.limit,
                    "Memory of a GPU, such as '72 GiB' (default: the GPU's memory less "
                    "memory.margin)");
  parser.add_option("settings", command.settings,
                    "A scenario to start from, whose keys stand where no option does; "
                    "path.to.key=value: other keys, as cost.overlap_grad_reduce=true");
}

void check_factors(const PlanCommand& command, const CommandLine& line) {
  const std::string option = "--what-if-factors";
  const bool given = !std::ranges::equal(command.factors, kWhatIfFactors);
  if (given && !command.what_if) throw InputError(line.where(option), "needs --what-if");
  check_once(command.factors, option, line);
  if (std::ranges::count(command.factors, 1.0) > 0) {
    throw InputError(line.where(option, "1"), option + ": 1 is the plan itself");
  }
}

// Named changes stand behind --what-if, in one word: "network=0.5,schedule=1f1b".
std::vector<WhatIfChange> take_changes(PlanCommand& command, const CommandLine& line) {
  std::vector<WhatIfChange> changes;
  if (!command.what_if) return changes;
  std::vector<std::string> settings;
  for (const std::string& text : command.settings) {
    if (text.substr(0, text.find('=')).find('.') != std::string::npos ||
        text.find('=') == std::string::npos) {
      settings.push_back(text);
      continue;
    }
    std::istringstream list(text);
    for (std::string each; std::getline(list, each, ',');) {
      changes.push_back(read_what_if(each, line.where(text)));
    }
  }
  command.settings = settings;
  return changes;
}

}  // namespace

void add_plan_options(Parser& parser, PlanCommand& command) {
  add_question(parser, command);
  add_plan_axes(parser, command);
  parser
      .add_option(
          "--best", command.best,
          "How many layouts to name (default: one for each idea; of --all and --runs-on any "
          "10)")
      .range(1, 10000);
  parser.add_flag("--all", command.all,
                  "Name the fastest layouts, also where they differ in chunks alone");
  parser
      .add_option("--contention", command.contention,
                  "How many of them to run again by SimGrid, messages sharing ports and NICs "
                  "(default 10)")
      .range(0, 10000);
  parser.add_option("--tokens", command.tokens,
                    "Tokens of the whole training, such as 15T: adds days and GPU-hours");
  add_list(parser, "--price-per-gpu-hour", command.prices, "Adds the price; one, or one a cluster")
      .range(0.0, 1e9);
  parser.add_flag("--exhaustive", command.options.exhaustive,
                  "Run every point, which finds the same");
  parser.add_threads();
  std::vector<std::string> frameworks{"frameworks", "any"};
  frameworks.insert(frameworks.end(), kFrameworkNames.begin(), kFrameworkNames.end());
  parser
      .add_option("--runs-on", command.runs_on,
                  "Only layouts that this framework runs as they stand; of each its fastest "
                  "(frameworks, default); or also what nothing runs (any)")
      .one_of(frameworks);
  parser
      .add_option("--defaults", command.defaults,
                  "Switches that cost nothing: as the framework's tuned recipes set them "
                  "(recipes, default), or as the framework has them")
      .one_of({"recipes", "framework"});
  parser.add_option(
      "--baseline", command.baseline,
      "Layout to compare with: published (of a tuned run where there is one, default), "
      "usual, none, or a scenario");
  add_list(parser, "--why", command.why,
           "Two rows, as 1,3: where the second loses time against the first; 0 is the baseline")
      .range(0, 10000);
  parser.add_flag(
      "--what-if", command.what_if,
      "Search again with less and more memory, bandwidth and GPUs, one at a time; or with "
      "what stands behind it: memory, network, node, gpus, vocabulary=FACTOR, "
      "schedule=NAME, with commas between");
  add_list(parser, "--what-if-factors", command.factors,
           "Factors of --what-if (default: 0.8,1.1,1.5,2)")
      .range(0.01, 100.0);
  parser.add_option("--export", command.configurations,
                    "Folder for the fastest layout of each framework as its configuration");
  parser.add_flag("--wide", command.wide,
                  "Print every column, and what became of the points, however wide the terminal");
  add_json(parser, command.json, "all");
  add_csv(parser, command.csv, "the layouts");
  add_html(parser, command.html, "all");
  add_output(parser, command.output,
             "Write the fastest as a scenario for `pipesim run` ('-': standard output)");
}

PlanAsked read_plan_command(const PlanCommand& given, const CommandLine& line) {
  PlanAsked asked;
  PlanCommand command = with_start(given, line);
  asked.changes = take_changes(command, line);
  if (command.tokens) {
    const Location where = line.where("--tokens", *command.tokens);
    asked.tokens = read_tokens(*command.tokens, where);
    const double step = 1.0 * static_cast<double>(command.global_batch) * command.seq_length;
    if (*asked.tokens < step) {
      throw InputError(where, fmt::format("'{}' are fewer tokens than the {:.0f} of one iteration: "
                                          "expected those of the whole training, such as 15T",
                                          *command.tokens, step));
    }
  }
  if (command.prices.size() > 1 && command.prices.size() != command.clusters.size()) {
    throw InputError(line.where("--price-per-gpu-hour"),
                     fmt::format("expected one price, or one for each cluster ({}), not {}",
                                 command.clusters.size(), command.prices.size()));
  }
  if (!command.prices.empty() && !asked.tokens) {
    throw InputError(line.where("--price-per-gpu-hour"),
                     "--price-per-gpu-hour needs --tokens, which says for how long");
  }
  check_writable({command.json, command.csv, command.html, command.output}, line);
  if (!command.why.empty() && command.why.size() != 2) {
    throw InputError(line.where("--why"),
                     fmt::format("expected two rows, as 1,3, not {}", command.why.size()));
  }
  check_factors(command, line);
  const PlanAxes axes = read_plan_axes(command, line);
  check_once(command.clusters, "--cluster", line);
  check_once(command.precisions, "--precision", line);
  const std::vector<Part> parts = parts_of(command, line);
  for (const auto& [part, cluster, label, number] : parts) {
    asked.plans.push_back(read_question(part, cluster, axes, line));
    ClusterPlan& plan = asked.plans.back();
    plan.label = label;
    if (!command.prices.empty())
      plan.price = command.prices[command.prices.size() == 1 ? 0 : number];
    if (std::ranges::count(kBaselines, command.baseline) > 0) continue;
    plan.baseline = own_baseline(command, plan.question, line);
  }
  asked.notes = command.notes;
  return asked;
}

PlanOptions asked_options(const PlanCommand& command, const ClusterPlan& plan) {
  PlanOptions options = command.options;
  const Framework framework = plan.question.axes.runs_on.value_or(Framework::kMegatron);
  const bool some_run = !plan.others.empty() || why_it_runs_none(framework, plan.question).empty();
  if (!command.all && command.runs_on != "any" && some_run) options.ideas = framework;
  options.best = command.best;
  constexpr int kPlain = 10;
  if (!options.ideas && command.best == 0) options.best = kPlain;
  return options;
}

}  // namespace pipesim
