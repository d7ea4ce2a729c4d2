#include "app/plan_start.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "app/orders.h"
#include "sim/planning/schedule.h"
#include "sim/read/scenario.h"

namespace pipesim {
namespace {

constexpr std::array<std::string_view, 6> kSections{"model",  "cluster",   "cost",
                                                    "memory", "framework", "optimizer"};
constexpr std::array<std::string_view, 2> kOfParallel{"sequence_parallel", "cp_comm_type"};

// A file that stands beside the scenario, as the current folder has it.
std::string reached(const YamlValue& value, const std::filesystem::path& folder) {
  if (!value.is_scalar()) return value.one_line();
  const std::filesystem::path named(value.node().Scalar());
  std::error_code ignored;
  const bool beside = named.has_extension() && named.is_relative() &&
                      std::filesystem::is_regular_file(folder / named, ignored);
  return beside ? (folder / named).string() : value.one_line();
}

// The scenario's keys that a plan starts from, each where it stands.
std::vector<Override> keys_of(const std::string& file, const Location& asked) {
  const YamlSource source = YamlSource::from_file(file, asked);
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  std::vector<Override> keys;
  const auto add = [&](const std::string& path, const YamlValue& value) {
    // How many data ranks hold a copy follows from their number, which is planned.
    if (path == "memory.num_distributed_optimizer_instances") return;
    keys.push_back({path, reached(value, folder), value.where(), value.where()});
  };
  for (const auto& [section, value] : source.root().entries()) {
    const bool whole = std::ranges::count(kSections, section) > 0;
    if (!value.is_map()) {
      if (whole) add(section, value);
      continue;
    }
    for (const auto& [key, each] : value.entries()) {
      const bool part = section == "parallel" && std::ranges::count(kOfParallel, key) > 0;
      if (whole || part) add(fmt::format("{}.{}", section, key), each);
    }
  }
  return keys;
}

// A layout that plans can run as a row of theirs.
bool may_be_baseline(const Scenario& scenario) {
  if (scenario.schedules.size() != 1) return false;
  const ScheduleChoice& choice = scenario.schedules.front();
  return !choice.program && !choice.described && !schedule_of(choice).versions;
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
    if (text.find('=') != std::string::npos || !is_yaml(text)) {
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
                     fmt::format("{} is required, or a scenario to start from", option));
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
  erase(command.exchange, {"parallel.cp_comm_type"});
  erase(command.dispatchers,
        {"cost.moe_token_dispatcher_type", "cost.moe_flex_dispatcher_backend"});
  if (!command.model.empty()) erase_section(command.own, "model");
  if (!command.clusters.empty()) erase_section(command.own, "cluster");
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
  command.own = keys_of(file, asked);
  bool same = command.model.empty() && command.clusters.empty() && command.nodes == 0;
  erase_said(command);
  command.own_cluster = command.clusters.empty();
  if (command.own_cluster) command.clusters = {scenario.hardware->name};
  const auto fill = [&same](auto& option, auto value) {
    if (option == 0) option = value;
    same = same && option == value;
  };
  const ParallelSizes& sizes = scenario.parallel;
  if (command.nodes == 0 && command.clusters.front().find(':') == std::string::npos) {
    fill(command.gpus, sizes.tensor * sizes.context * sizes.pipeline * sizes.data);
  }
  fill(command.global_batch, samples_of(scenario));
  if (scenario.batch.seq_length) fill(command.seq_length, *scenario.batch.seq_length);
  if (same && command.baseline == "published" && may_be_baseline(scenario)) command.baseline = file;
}

}  // namespace

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
