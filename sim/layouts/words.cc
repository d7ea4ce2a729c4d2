#include "sim/layouts/words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>

#include "sim/report/text/band.h"

namespace pipesim {
namespace {

struct Size {
  const char* name;
  int PlanPoint::*value;
};
constexpr std::array kSizes{
    Size{"tp", &PlanPoint::tensor},   Size{"cp", &PlanPoint::context},
    Size{"ep", &PlanPoint::expert},   Size{"etp", &PlanPoint::expert_tensor},
    Size{"pp", &PlanPoint::pipeline}, Size{"vpp", &PlanPoint::chunks}};

// The schedule that sizes alone say.
bool is_usual(const PlanPoint& point) {
  if (point.pipeline == 1) return true;
  return point.schedule->name == (point.chunks > 1 ? "interleaved-1f1b" : "1f1b");
}

std::vector<std::string> words_of_extras(const PlanQuestion& question, const PlanPoint& point) {
  std::vector<std::string> all;
  if (!is_usual(point)) all.push_back(point.schedule->name);
  if (point.recompute != RecomputeGranularity::kNone) {
    all.push_back(recompute_text(point));
  }
  if (point.vocabulary != VocabularyPlacement::kFirstLast) {
    all.emplace_back(to_text(point.vocabulary));
  }
  if (point.offload) all.emplace_back("offload");
  if (point.modules.any()) all.emplace_back("module offload");
  const ShardingStrategy strategy = strategy_of(state_of(question, point));
  if (strategy == ShardingStrategy::kOptimGradsParams) {
    all.emplace_back("FSDP");
  } else if (point.sharding && strategy != ShardingStrategy::kOptim) {
    all.emplace_back(to_text(strategy));
  }
  if (point.exchange) all.emplace_back(to_text(point.exchange->kind));
  if (point.dispatcher) all.emplace_back(to_text(*point.dispatcher));
  if (point.expert_overlap) all.emplace_back("expert overlap");
  return all;
}

}  // namespace

std::string recompute_text(const PlanPoint& point) {
  const int layers = point.recompute_layers;
  std::string text = fmt::format("{} recompute", to_text(point.recompute));
  if (layers > 0) text += fmt::format(" of {} layer{} a stage", layers, layers == 1 ? "" : "s");
  return text;
}

std::string gpu_text(std::string_view name) {
  for (const std::string_view form : {"-sxm", "-pcie", "-nvl"})
    name = name.substr(0, name.find(form));
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](unsigned char each) { return std::toupper(each); });
  return text;
}

std::string money_text(double amount, int digits) {
  constexpr double kMillion = 1e6;
  if (amount < kMillion) return fmt::format("${}", significant(amount, digits));
  return fmt::format("${} M", significant(amount / kMillion, digits));
}

std::string room_text(Bytes bytes) { return significant(bytes / kGiB, 2) + " GiB"; }

std::string layout_words(const PlanQuestion& question, const PlanPoint& point) {
  std::vector<std::string> words;
  for (const auto& [name, value] : kSizes) {
    const bool chunks = value == &PlanPoint::chunks;
    if (chunks && point.pipeline == 1) continue;
    if (point.*value > 1) words.push_back(fmt::format("{} {}", name, point.*value));
  }
  words.push_back(fmt::format("micro batch {}", point.micro_batch));
  std::ranges::copy(words_of_extras(question, point), std::back_inserter(words));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string chunks_text(const Planned& planned) {
  const int from = planned.point.chunks;
  const int to = planned.most_chunks_alike;
  // One stage that overlaps experts is simulated as two chunks; frameworks call it none.
  if (planned.point.pipeline == 1) return "1";
  return from < to ? fmt::format("{}-{}", from, to) : fmt::format("{}", from);
}

std::string extras_of(const PlanQuestion& question, const PlanPoint& point) {
  return fmt::format("{}", fmt::join(words_of_extras(question, point), ", "));
}

std::string runs_text(const Planned& planned) {
  const auto runs = [&](Framework framework) {
    return std::ranges::count(planned.runs_on, framework) > 0;
  };
  if (runs(Framework::kMegatronBridge)) return "Megatron-Bridge";
  if (runs(Framework::kMegatron)) return "Megatron-LM";
  if (runs(Framework::kZeroBubble)) return "zero-bubble's fork of Megatron-LM";
  if (runs(Framework::kTorchtitan)) return "torchtitan";
  return "no framework as it stands";
}

std::string frameworks_text(const std::vector<Framework>& frameworks) {
  std::vector<std::string_view> names;
  const auto runs = [&](Framework framework) {
    return std::ranges::count(frameworks, framework) > 0;
  };
  if (runs(Framework::kMegatron) && runs(Framework::kMegatronBridge))
    names.emplace_back("Megatron");
  for (const Framework each : frameworks) {
    const bool both = !names.empty() && names.front() == "Megatron";
    const bool named = each == Framework::kMegatron || each == Framework::kMegatronBridge;
    if (!both || !named) names.push_back(to_text(each));
  }
  return names.empty() ? "-" : fmt::format("{}", fmt::join(names, ", "));
}

std::string_view words_of(PlanShare share) {
  static constexpr std::array<std::string_view, kPlanShareNames.size()> kWords{
      "the model",
      "kernels below that peak",
      "recomputation",
      "exposed collectives",
      "warm-up and cool-down",
      "waiting for passes upstream",
      "waiting for slower stages",
      "waiting for messages",
      "copies to the host",
      "reduction of gradients",
      "the optimizer's step",
      "the software's fixed time"};
  return kWords[static_cast<size_t>(share)];
}

}  // namespace pipesim
