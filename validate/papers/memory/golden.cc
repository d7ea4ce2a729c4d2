#include "validate/papers/memory/golden.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/case/simulate.h"
#include "sim/core/text.h"
#include "sim/core/thread_team.h"
#include "sim/interop/frameworks/draft.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "sim/read/yaml.h"
#include "sim/report/text/aligned.h"

namespace pipesim {
namespace golden {
namespace {

constexpr int kNode = 8;
constexpr int kMostDoublings = 7;  // of the nodes

// Settings of models and runs that a scenario has no words for, and what they say.
constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kOthers{
    {{"encoder_num_layers", "an encoder"},
     {"decoder_num_layers", "an encoder"},
     {"bert_no_binary_head", "an encoder"},
     {"img_h", "images"},
     {"is_hybrid_model", "state-space layers"},
     {"hybrid_layer_pattern", "state-space layers"},
     {"hybrid_override_pattern", "state-space layers"},
     {"mamba_num_heads", "state-space layers"},
     {"mamba_state_dim", "state-space layers"},
     {"perform_rl_step", "reinforcement learning"},
     {"dataset_provider", "several models"},
     {"model_provider", "several models"},
     {"cuda_graph_impl", "CUDA graphs, whose pools keep what they captured"}}};

using Arguments = std::vector<std::pair<std::string, YamlValue>>;

std::string name_of(std::string key) {
  key.erase(0, key.find_first_not_of('-'));
  std::ranges::replace(key, '-', '_');
  return key;
}

const YamlValue* find(const Arguments& arguments, std::string_view name) {
  const auto found =
      std::ranges::find_if(arguments, [&](const auto& each) { return each.first == name; });
  return found == arguments.end() ? nullptr : &found->second;
}

long number_of(const Arguments& arguments, std::string_view name, long usual) {
  const YamlValue* value = find(arguments, name);
  return value == nullptr ? usual : value->integer(1, 1L << 40U);
}

bool is_set(const Arguments& arguments, std::string_view name) {
  const YamlValue* value = find(arguments, name);
  return value != nullptr && value->is_scalar() && value->text() == "true";
}

// Words of "[a b c]" and of a list; all else is one.
std::vector<std::string> words_of(const YamlValue& value) {
  if (value.is_list()) {
    std::vector<std::string> words;
    for (const YamlValue& each : value.list()) words.push_back(each.text());
    return words;
  }
  std::string text = value.text();
  if (!text.starts_with('[') || !text.ends_with(']') || text.find('*') != std::string::npos) {
    return {text};
  }
  std::istringstream stream(text.substr(1, text.size() - 2));
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

struct Ranks {
  long tensor, pipeline, context, expert, expert_tensor;

  explicit Ranks(const Arguments& arguments)
      : tensor(number_of(arguments, "tensor_model_parallel_size", 1)),
        pipeline(number_of(arguments, "pipeline_model_parallel_size", 1)),
        context(number_of(arguments, "context_parallel_size", 1)),
        expert(number_of(arguments, "expert_model_parallel_size", 1)),
        expert_tensor(number_of(arguments, "expert_tensor_parallel_size", tensor)) {}

  // The fewest GPUs of whole nodes.
  [[nodiscard]] long least() const {
    const long dense = tensor * context * pipeline;
    const long experts = expert > 1 ? expert * expert_tensor * pipeline : 1;
    long gpus = kNode;
    while (gpus % dense != 0 || gpus % experts != 0) gpus += kNode;
    return gpus;
  }
};

Settings settings_of(const std::string& file, const Arguments& arguments, long gpus) {
  Settings settings("megatron", file);
  for (const auto& [name, value] : arguments) {
    if (value.is_null()) continue;
    if (value.is_scalar() && value.text() == "false") continue;
    std::vector<std::string> words = words_of(value);
    if (words == std::vector<std::string>{"true"}) words.clear();
    settings.add({name, std::move(words), value.where()});
  }
  const auto add = [&](const char* name, long number) {
    settings.add({name, {fmt::format("{}", number)}, {file, 0, 0, ""}});
  };
  add("world_size", gpus);
  if (find(arguments, "vocab_size") == nullptr) {
    const YamlValue* project = find(arguments, "wandb_project");
    const bool release = project != nullptr && project->text() == "megatron-core-release-runs";
    add("vocab_size", release ? 256000 : 50257);
  }
  const YamlValue* schedule = find(arguments, "step_batch_size_schedule");
  if (find(arguments, "global_batch_size") == nullptr && schedule != nullptr) {
    const std::string text = schedule->text();  // "0:384 200B:768"
    add("global_batch_size", std::atol(text.c_str() + text.find(':') + 1));
  }
  return settings;
}

// The catalogue's cluster that a platform's name has a part of.
std::string cluster_of(const std::string& platform) {
  for (const auto& [part, cluster] :
       {std::pair{"gb200", "gb200-nvl72"}, {"h100", "dgx-h100"}, {"a100", "dgx-a100"}}) {
    if (platform.find(part) != std::string::npos) return cluster;
  }
  return "dgx-h100";
}

// The last rank of the world, which is of the last stage.
struct LastRank {
  Bytes peak;
  Bytes state;
  std::string scenario;
};

LastRank last_rank(const std::string& file, const Arguments& arguments, long gpus,
                   const std::string& cluster) {
  const Draft draft = megatron_draft(settings_of(file, arguments, gpus), cluster);
  if (!draft.missing.empty()) throw InfeasibleError("missing: " + draft.missing.front());
  LastRank rank;
  rank.scenario = scenario_of(draft);
  const Result result = simulate(prepare_first(read_scenario(YamlSource(file, rank.scenario))));
  const DeviceReport& last = result.report.devices.back();
  rank.peak = *last.peak_memory() - last.memory->overhead;
  rank.state = last.memory->weights + last.memory->gradients + last.memory->optimizer +
               last.memory->vocabulary;
  return rank;
}

struct Asked {
  std::string id;
  std::string file;
  Arguments arguments;
  std::string platform;
  Bytes measured;
  std::optional<Bytes> allocated;
};

// Its state nearest to what stays allocated.
LastRank on_likely_gpus(const Asked& asked, GoldenPeak& peak) {
  const std::string cluster = cluster_of(asked.platform);
  const long least = Ranks(asked.arguments).least();
  peak.gpus = static_cast<int>(least);
  LastRank best = last_rank(asked.file, asked.arguments, least, cluster);
  const bool divided = is_set(asked.arguments, "use_distributed_optimizer");
  if (!divided || !asked.allocated) return best;
  const auto off = [&](const LastRank& rank) {
    return std::abs((rank.state - *asked.allocated).value());
  };
  for (int doubling = 1; doubling <= kMostDoublings; ++doubling) {
    const long gpus = least << static_cast<unsigned>(doubling);
    try {
      LastRank more = last_rank(asked.file, asked.arguments, gpus, cluster);
      if (off(more) >= off(best)) break;
      best = std::move(more);
      peak.gpus = static_cast<int>(gpus);
    } catch (const InputError&) {
      break;  // the batch does not divide by its data ranks
    } catch (const InfeasibleError&) {
      break;  // nor has the schedule enough microbatches
    }
  }
  return best;
}

GoldenPeak compared(const Asked& asked) {
  GoldenPeak peak{.id = asked.id,
                  .family = asked.id.substr(0, asked.id.find('/')),
                  .platform = asked.platform,
                  .measured = asked.measured};
  for (const auto& [setting, what] : kOthers) {
    if (find(asked.arguments, setting) == nullptr) continue;
    peak.reason = fmt::format("{}: {}", setting, what);
    return peak;
  }
  try {
    LastRank rank = on_likely_gpus(asked, peak);
    peak.simulated = rank.peak;
    peak.scenario = std::move(rank.scenario);
  } catch (const InputError& error) {
    peak.reason = error.message();
  } catch (const InfeasibleError& error) {
    peak.reason = error.what();
  }
  return peak;
}

std::vector<Asked> read_rows(const YamlSource& source) {
  YamlMap root(source.root());
  if (const auto about = root.find("about")) (void)about->text();
  std::vector<Asked> all;
  for (const YamlValue& value :
       root.require("rows", "a list of {id, arguments, measured}").list()) {
    YamlMap row(value);
    const std::string id = row.require("id", "the test's folder").text();
    Arguments arguments;
    for (const auto& [key, argument] : row.require("arguments", "a map of flags").entries()) {
      arguments.emplace_back(name_of(key), argument);
    }
    (void)row.find("env");
    for (const auto& [platform, value] : row.require("measured", "a map of platforms").entries()) {
      YamlMap measured(value);
      const auto peak = measured.find("peak_allocated_bytes");
      const auto allocated = measured.find("allocated_bytes");
      if (!peak || peak->is_null()) continue;
      Asked asked{id, source.name(), arguments, platform, Bytes(peak->number(1, 1e15)), {}};
      if (allocated && !allocated->is_null()) asked.allocated = Bytes(allocated->number(1, 1e15));
      all.push_back(std::move(asked));
    }
    row.finish();
  }
  root.finish();
  return all;
}

std::string percent(double share) { return fmt::format("{:+.1f}%", 100 * share); }

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// A line of those that are simulated.
Row summary(const std::string& name, const std::vector<const GoldenPeak*>& peaks) {
  std::vector<double> errors;
  for (const GoldenPeak* peak : peaks) {
    if (peak->simulated) errors.push_back(peak->error());
  }
  Row row{name, fmt::format("{}", peaks.size()), fmt::format("{}", errors.size())};
  if (errors.empty()) {
    row.insert(row.end(), {"-", "-", "-"});
    return row;
  }
  row.push_back(percent(median_of(errors)));
  for (double& error : errors) error = std::abs(error);
  const auto near = std::ranges::count_if(errors, [](double error) { return error <= 0.15; });
  row.push_back(fmt::format("{:.1f}%", 100 * median_of(errors)));
  row.push_back(fmt::format(
      "{:.0f}%", 100.0 * static_cast<double>(near) / static_cast<double>(errors.size())));
  return row;
}

}  // namespace
}  // namespace golden

double GoldenPeak::error() const {
  return simulated ? *simulated / measured - 1 : std::numeric_limits<double>::quiet_NaN();
}

bool has_rows(const std::string& path, const Location& asked) {
  const YamlSource source = YamlSource::from_file(path, asked);
  return YamlMap(source.root()).find("rows").has_value();
}

std::vector<GoldenPeak> golden_peaks(const std::string& path, const Location& asked) {
  const YamlSource source = YamlSource::from_file(path, asked);
  const std::vector<golden::Asked> rows = golden::read_rows(source);
  std::vector<GoldenPeak> peaks(rows.size());
  ThreadTeam().run(rows.size(), [&](size_t i) { peaks[i] = golden::compared(rows[i]); });
  return peaks;
}

std::string golden_text(const std::vector<GoldenPeak>& peaks) {
  std::vector<std::string> families;
  std::map<std::string, std::vector<const GoldenPeak*>> large;
  std::vector<const GoldenPeak*> all;
  std::vector<const GoldenPeak*> small;
  std::map<std::string, int> reasons;
  for (const GoldenPeak& peak : peaks) {
    if (!peak.reason.empty()) ++reasons[peak.reason];
    if (peak.measured <= kGoldenFrom) {
      small.push_back(&peak);
      continue;
    }
    if (!large.contains(peak.family)) families.push_back(peak.family);
    large[peak.family].push_back(&peak);
    all.push_back(&peak);
  }
  std::vector<Row> rows{
      {"Megatron-LM's tests", "peaks", "modelled", "signed", "median", "within 15%"}};
  for (const std::string& family : families) rows.push_back(golden::summary(family, large[family]));
  rows.push_back(golden::summary(fmt::format("all over {}", human(kGoldenFrom)), all));
  rows.push_back(golden::summary("the others", small));
  std::string text = aligned(rows);
  for (const auto& [reason, number] : reasons) {
    text += fmt::format("not modelled: {} ({})\n", reason, number);
  }
  return text;
}

std::string golden_rows(const std::vector<GoldenPeak>& peaks) {
  std::vector<Row> rows{{"test", "platform", "GPUs", "measured", "simulated", "error"}};
  for (const GoldenPeak& peak : peaks) {
    rows.push_back({peak.id, peak.platform, fmt::format("{}", peak.gpus), human(peak.measured),
                    peak.simulated ? human(*peak.simulated) : "-",
                    peak.simulated ? golden::percent(peak.error()) : peak.reason});
  }
  return aligned(rows, 2);
}

std::string golden_json(const std::vector<GoldenPeak>& peaks) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const GoldenPeak& peak : peaks) {
    Json json{{"id", peak.id},
              {"family", peak.family},
              {"platform", peak.platform},
              {"gpus", peak.gpus},
              {"measured_bytes", peak.measured.value()}};
    json["simulated_bytes"] = peak.simulated ? Json(peak.simulated->value()) : Json(nullptr);
    json["relative_error"] = peak.simulated ? Json(peak.error()) : Json(nullptr);
    json["status"] = peak.simulated ? "simulated" : "not modelled";
    json["reason"] = peak.reason.empty() ? Json(nullptr) : Json(peak.reason);
    list.push_back(std::move(json));
  }
  return list.dump(1) + "\n";
}

}  // namespace pipesim
