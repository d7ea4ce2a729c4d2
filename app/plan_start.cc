#include "app/plan_start.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "app/orders.h"
#include "sim/core/error.h"
#include "sim/core/text.h"
#include "sim/layouts/baseline.h"
#include "sim/layouts/question.h"
#include "sim/planning/schedule.h"
#include "sim/read/scenario.h"
#include "sim/read/short_names.h"

namespace pipesim {
namespace {

constexpr std::array<std::string_view, 5> kFiles{"model.hf_config", "model.traced", "cost.file",
                                                 "cost.anchor", "cost.passes"};
// Keys that are true of the scenario's own GPU alone.
constexpr std::array<std::string_view, 4> kOfGpu{"memory.capacity", "cost.file", "cost.anchor",
                                                 "cost.passes"};
// Keys that say how fast a machine is, and change nothing of what runs on it.
constexpr std::array<std::string_view, 5> kOfMachine{"cost.kind", "cost.file", "cost.anchor",
                                                     "cost.passes", "cost.software"};
// An option says the length; the number of data ranks, and so of copies, is planned.
constexpr std::array<std::string_view, 2> kSaidElsewhere{
    "batch.seq_length", "memory.num_distributed_optimizer_instances"};

// A value as a setting has it; a file beside the scenario by a path that any folder reaches.
std::string text_of_value(const std::string& path, const YamlValue& value,
                          const std::filesystem::path& folder) {
  if (!value.is_scalar() || std::ranges::count(kFiles, path) == 0) return value.one_line();
  const std::filesystem::path beside = folder / value.node().Scalar();
  std::error_code ignored;
  return std::filesystem::is_regular_file(beside, ignored)
             ? in_quotes(std::filesystem::absolute(beside).string())
             : value.one_line();
}

// Adds the keys that a plan starts from, one for each value, where it stands.
void add_keys(const std::string& path, const YamlValue& value, const std::filesystem::path& folder,
              std::vector<Override>& keys) {
  if (value.is_map()) {
    for (const auto& [name, each] : value.entries()) {
      const std::string key = key_in(path, name);
      add_keys(path.empty() ? key : fmt::format("{}.{}", path, key), each, folder, keys);
    }
  } else if (starts_plan(path) && std::ranges::count(kSaidElsewhere, path) == 0) {
    keys.push_back({path, text_of_value(path, value, folder), value.where(), value.where()});
  }
}

// A layout that plans can run as a row of theirs.
bool may_be_baseline(const Scenario& scenario) {
  if (scenario.schedules.size() != 1) return false;
  const ScheduleChoice& choice = scenario.schedules.front();
  return !choice.program && !choice.described && !schedule_of(choice).versions &&
         scenario.parallel.pipelines == 1;
}

long samples_of(const Scenario& scenario) {
  return static_cast<long>(scenario.batch.microbatches) *
         scenario.batch.micro_batch_size.value_or(1) * scenario.parallel.data;
}

// Removes the scenario among the settings.
std::optional<std::string> take_scenario(PlanCommand& command, const CommandLine& line) {
  std::optional<std::string> file;
  std::vector<std::string> settings;
  for (const std::string& text : command.settings) {
    std::error_code ignored;
    const bool setting =
        text.find('=') != std::string::npos && !std::filesystem::exists(text, ignored);
    if (setting || !is_yaml(text)) {
      settings.push_back(text);
    } else if (file) {
      throw InputError(line.where(text), "a plan starts from one scenario");
    } else {
      file = text;
    }
  }
  command.settings = std::move(settings);
  return file;
}

void check_complete(const PlanCommand& command, const CommandLine& line) {
  const auto require = [&line](bool said, const char* option) {
    if (said) return;
    throw InputError(line.where(line.arguments().size()),
                     fmt::format("{} is required, or a scenario to start from{}", option,
                                 option == std::string_view("--global-batch-size")
                                     ? ": samples of an iteration, such as 512 of 8k tokens for 4M"
                                     : ""));
  };
  require(!command.model.empty() || command.starts, "--model");
  require(!command.clusters.empty(), "--cluster");
  require(command.global_batch > 0, "--global-batch-size");
  require(command.seq_length > 0, "--seq-length");
}

void erase_section(std::vector<Override>& keys, const std::string& section) {
  std::erase_if(keys, [&section](const Override& each) {
    return each.path == section || each.path.starts_with(section + ".");
  });
}

// Keys that an option says another way.
void erase_said(PlanCommand& command) {
  const auto erase = [&command](const std::vector<std::string>& asked,
                                std::initializer_list<std::string_view> paths) {
    std::erase_if(command.own, [&](const Override& each) {
      return !asked.empty() && std::ranges::count(paths, each.path) > 0;
    });
  };
  erase(command.sharding,
        {"memory.data_parallel_sharding_strategy", "memory.use_distributed_optimizer"});
  erase(command.exchange,
        {"parallel.cp_comm_type", "parallel.hierarchical_context_parallel_sizes"});
  erase(command.dispatchers,
        {"cost.moe_token_dispatcher_type", "cost.moe_flex_dispatcher_backend"});
  if (!command.model.empty()) erase_section(command.own, "model");
  if (!command.clusters.empty()) erase_section(command.own, "cluster");
}

bool sets(const PlanCommand& command, std::string_view section) {
  return std::ranges::any_of(command.settings, [section](const std::string& each) {
    return each.starts_with(section) && (each.substr(section.size()).starts_with("=") ||
                                         each.substr(section.size()).starts_with("."));
  });
}

// Drops kOfGpu, each with a note.
void forget_gpu(PlanCommand& command, const std::string& file) {
  const auto of_gpu = [](const Override& each) {
    return std::ranges::count(kOfGpu, each.path) > 0;
  };
  for (const Override& each : command.own) {
    if (!of_gpu(each)) continue;
    command.notes.push_back(
        fmt::format("{} of {} is left out: it is of another cluster", each.path, file));
  }
  std::erase_if(command.own, of_gpu);
}

// True where model, cluster and precision are the scenario's own.
bool asks_about_the_same(const PlanCommand& command) {
  constexpr std::array<std::string_view, 3> kOthers{"model", "cluster", "memory.precision"};
  const bool by_options =
      !command.model.empty() || !command.clusters.empty() || !command.precisions.empty();
  return !by_options && std::ranges::none_of(kOthers, [&command](std::string_view each) {
    return sets(command, each);
  });
}

bool is_on_another_gpu(const PlanCommand& command) {
  return !command.own_cluster || std::ranges::any_of(command.settings, [](const std::string& each) {
    return each.starts_with("cluster=") || each.starts_with("cluster.name=");
  });
}

// Sets sizes that no option says; true where all are the scenario's.
bool fill_sizes(const Scenario& scenario, PlanCommand& command) {
  bool same = command.nodes == 0;
  const auto fill = [&same](auto& option, auto value) {
    if (option == 0) option = value;
    same = same && option == value;
  };
  const ParallelSizes& sizes = scenario.parallel;
  const auto says_no_gpus = [](const std::string& each) { return each.find(':') == each.npos; };
  if (command.nodes == 0 && std::ranges::any_of(command.clusters, says_no_gpus)) {
    fill(command.gpus, sizes.tensor * sizes.context * sizes.pipeline * sizes.data);
  }
  fill(command.global_batch, samples_of(scenario));
  if (scenario.batch.seq_length) fill(command.seq_length, *scenario.batch.seq_length);
  return same;
}

// Where a section, or a key of it, stands; where the scenario does when it has none.
Location place_of(const YamlValue& root, std::string_view section, std::string_view key = {}) {
  for (const auto& [name, value] : root.entries()) {
    if (key_in("", name) != section) continue;
    return key.empty() || !value.is_map() ? value.where() : place_of(value, key);
  }
  return root.where();
}

// Says where the values stand that `before` did not have.
void place_options(const PlanCommand& before, const YamlValue& root, PlanCommand& command) {
  const auto place = [&](bool given, const char* option, std::string_view section,
                         std::string_view key = {}) {
    if (!given) command.said_at[option] = place_of(root, section, key);
  };
  place(!before.clusters.empty(), "--cluster", "cluster");
  place(before.gpus > 0 || before.nodes > 0, "--gpus", "parallel");
  place(before.global_batch > 0, "--global-batch-size", "batch", "global_batch_size");
  place(before.seq_length > 0, "--seq-length", "batch", "seq_length");
}

// Adds a note for each thing of the scenario that no plan knows.
void note_unplanned(const Scenario& scenario, const std::string& file, PlanCommand& command) {
  if (scenario.batch.unequal) {
    command.notes.push_back(fmt::format("{}'s lengths are not planned: samples are equal", file));
  }
  if (!scenario.perturb.stragglers.empty() || !scenario.perturb.links.empty()) {
    command.notes.push_back(fmt::format("{}'s slow devices and links are not planned", file));
  }
}

void start(PlanCommand& command, const std::string& file, const CommandLine& line) {
  const Location asked = line.where(file);
  const Scenario scenario = read_scenario_file(file, asked);
  if (!scenario.roofline || !scenario.hardware) {
    throw InputError(asked,
                     "a plan starts from a scenario whose seconds follow from its model and "
                     "cluster");
  }
  command.starts = true;
  const YamlSource source = YamlSource::from_file(file, asked);
  add_keys("", source.root(), std::filesystem::path(file).parent_path(), command.own);
  place_options(command, source.root(), command);
  const bool same = asks_about_the_same(command);
  erase_said(command);
  command.own_cluster = command.clusters.empty();
  if (is_on_another_gpu(command)) forget_gpu(command, file);
  if (command.own_cluster) command.clusters = {scenario.hardware->name};
  const bool same_sizes = fill_sizes(scenario, command);
  note_unplanned(scenario, file, command);
  if (!same || !same_sizes || command.baseline != "published") return;
  command.own_baseline = may_be_baseline(scenario);
  if (command.own_baseline) {
    command.baseline = file;
  } else {
    command.notes.push_back(fmt::format(
        "{}'s layout is not row 0: it needs one built-in schedule in one pipeline", file));
  }
}

}  // namespace

std::optional<Baseline> own_baseline(PlanCommand& command, const PlanQuestion& question,
                                     const CommandLine& line) {
  const Location where = command.own_baseline ? line.where(command.baseline)
                                              : line.where("--baseline", command.baseline);
  static const std::vector<std::string> kNamed{"published", "usual", "none", "FILE.yaml"};
  if (!is_yaml(command.baseline) && !std::filesystem::exists(command.baseline)) {
    throw InputError(where, fmt::format("unknown baseline '{}'{}", command.baseline,
                                        suggestion(command.baseline, kNamed)));
  }
  // Times that stand side by side are of one machine.
  std::vector<Override> measured;
  if (command.own_baseline) measured = line.overrides(command.settings);
  std::erase_if(measured, [](const Override& each) {
    return std::ranges::count(kOfMachine, each.path) == 0;
  });
  Scenario scenario = read_scenario_file(command.baseline, where, std::move(measured));
  try {
    return Baseline{baseline_of(question, scenario, where), command.baseline, std::move(scenario)};
  } catch (const InfeasibleError& error) {
    if (!command.own_baseline) throw;
    command.notes.push_back(
        fmt::format("{}'s layout is not row 0: {}", command.baseline, error.what()));
    return std::nullopt;
  }
}

PlanCommand with_start(PlanCommand command, const CommandLine& line) {
  if (const auto file = take_scenario(command, line)) start(command, *file, line);
  check_complete(command, line);
  return command;
}

std::vector<Override> behind(std::vector<Override> own, const std::vector<Override>& later) {
  std::erase_if(own, [&later](const Override& each) {
    return std::ranges::any_of(later, [&each](const Override& other) {
      return each.path == other.path || each.path.starts_with(other.path + ".");
    });
  });
  own.insert(own.end(), later.begin(), later.end());
  return own;
}

}  // namespace pipesim
