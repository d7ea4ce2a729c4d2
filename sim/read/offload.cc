#include "sim/read/offload.h"

#include <algorithm>
#include <fmt/format.h>

#include "sim/core/text.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

constexpr int kMostChunks = 1024;
constexpr int kMostMicrobatches = 1 << 20;

bool is_auto(const YamlValue& value) { return value.is_scalar() && value.text() == "auto"; }

// Numbers from 0, each once.
std::vector<int> read_numbers(const YamlValue& value, int most) {
  std::vector<int> numbers;
  for (const YamlValue& each : value.list()) {
    const auto number = static_cast<int>(each.integer(0, most - 1));
    if (std::ranges::find(numbers, number) != numbers.end()) each.fail("stands there twice");
    numbers.push_back(number);
  }
  if (numbers.empty()) value.fail("expected at least one number");
  return numbers;
}

OffloadedMicrobatches read_microbatches(const YamlValue& value) {
  OffloadedMicrobatches some;
  if (!value.is_map()) {
    if (!value.is_list()) {
      value.fail("expected a list of microbatches, such as [0, 2], or {from: 0, to: 4, every: 2}");
    }
    some.listed = read_numbers(value, kMostMicrobatches);
    return some;
  }
  YamlMap map(value);
  const auto number = [&map](const char* key, int least) -> std::optional<int> {
    const auto given = map.find(key);
    if (!given) return std::nullopt;
    return static_cast<int>(given->integer(least, kMostMicrobatches));
  };
  some.from = number("from", 0).value_or(0);
  some.to = number("to", some.from);
  some.every = number("every", 1).value_or(1);
  some.count = number("count", 1);
  map.finish();
  return some;
}

int read_count(const YamlValue& value) {
  const std::string text = value.is_scalar() ? value.text() : "";
  if (text.find_first_not_of("+-.0123456789") != std::string::npos) {
    const std::vector<std::string> words{"auto"};
    value.fail("expected a number of chunks, a list of them, or auto" + suggestion(text, words));
  }
  return static_cast<int>(value.integer(1, kMostChunks));
}

void check(const ScheduleChoice& choice, int microbatches) {
  const Offload& offload = *choice.offload;
  const auto refuse = [&offload](const std::string& message) {
    throw InputError(offload.where, message);
  };
  const OffloadedMicrobatches& some = offload.microbatches;
  const bool says_which =
      offload.chunks || !offload.which.empty() || offload.automatic || !some.all();
  const Schedule* schedule = choice.program ? nullptr : &schedule_of(choice);
  if (schedule != nullptr && schedule->offloads() && says_which) {
    refuse(
        fmt::format("{} offloads by itself: its option offload_chunks says how many chunks; "
                    "gis with group_size 1 and offload says which chunks and microbatches",
                    choice.name));
  }
  const bool shares_links = offload.devices_per_link.value_or(1) > 1;
  if (schedule != nullptr && schedule->describes_copies && (says_which || shares_links)) {
    refuse(
        fmt::format("'copies' of {} say what leaves, over links that devices have for "
                    "themselves: expected ratio or bandwidth",
                    choice.name));
  }
  const int last_chunk = offload.which.empty() ? -1 : std::ranges::max(offload.which);
  if (last_chunk >= chunks_of(choice)) {
    refuse(fmt::format("chunk {} is to offload, but {} has {} per device, from 0", last_chunk,
                       choice.name, chunks_of(choice)));
  }
  if (const int chunks = offload.chunks.value_or(0); chunks > chunks_of(choice)) {
    refuse(fmt::format("{} chunks are to offload, but {} has {} per device", chunks, choice.name,
                       chunks_of(choice)));
  }
  int last = std::max(some.from, some.to.value_or(0));
  if (!some.listed.empty()) last = std::ranges::max(some.listed);
  if (last >= microbatches) {
    refuse(
        fmt::format("microbatch {} is to offload, but there are {}, from 0", last, microbatches));
  }
  OffloadedMicrobatches named = some;
  named.count.reset();
  const size_t most = numbers_of(named, microbatches).size();
  if (static_cast<size_t>(some.count.value_or(0)) <= most) return;
  refuse(fmt::format("{} microbatches are to offload, of {}", *some.count, most));
}

// Refuses to offload activations that modules already offload.
void refuse_twice(const ScheduleChoice& choice) {
  const Schedule* schedule = choice.program ? nullptr : &schedule_of(choice);
  if (!choice.offload && (schedule == nullptr || !schedule->copies())) return;
  throw InputError(choice.offload ? choice.offload->where : choice.where,
                   "whole activations are to offload, and memory.offload_modules names parts of "
                   "them: leave out one of the two");
}

bool read_switch(const YamlValue& value) {
  static const std::vector<std::string> kWords{"auto", "true", "false"};
  const bool word = value.is_scalar() && std::ranges::count(kWords, value.text()) > 0;
  if (!word) {
    value.fail("expected true, false, auto, or a map with chunks" +
               (value.is_scalar() ? suggestion(value.text(), kWords) : std::string()));
  }
  return value.flag();
}

}  // namespace

Offload read_offload(const YamlValue& value) {
  Offload offload;
  offload.where = value.where();
  if (is_auto(value)) {
    offload.automatic = true;
    return offload;
  }
  if (!value.is_map()) {
    if (!read_switch(value)) offload.chunks = 0;
    return offload;
  }
  YamlMap map(value);
  if (const auto chunks = map.find("chunks")) {
    if (chunks->is_list()) {
      offload.which = read_numbers(*chunks, kMostChunks);
    } else if (is_auto(*chunks)) {
      offload.automatic = true;
    } else {
      offload.chunks = read_count(*chunks);
    }
  }
  if (const auto some = map.find("microbatches")) offload.microbatches = read_microbatches(*some);
  if (const auto plan = map.find("plan")) {
    static const std::vector<std::string> kPlans{"published", "best"};
    (void)plan->choice(kPlans);  // set_offload_plan
  }
  if (const auto ratio = map.find("ratio")) offload.ratio = ratio->number(0, 1);
  if (const auto bandwidth = map.find("bandwidth")) {
    static const std::vector<std::string> kNames{"duplex", "alone"};
    const bool alone = bandwidth->choice(kNames) == "alone";
    offload.bandwidth = alone ? CopyBandwidth::kAlone : CopyBandwidth::kDuplex;
  }
  if (const auto prefetch = map.find("prefetch")) offload.prefetch = prefetch->number(0, 1e6);
  if (const auto devices = map.find("devices_per_link")) {
    offload.devices_per_link = static_cast<int>(devices->integer(1, 1024));
  }
  map.finish();
  return offload;
}

void set_offload_plan(const YamlValue& offload, ScheduleChoice& choice) {
  if (!offload.is_map()) return;
  const auto plan = YamlMap(offload).find("plan");
  if (!plan) return;
  const bool has_rules = !choice.program && schedule_of(choice).offloads();
  if (!has_rules && plan->text() != "best") {
    plan->fail(fmt::format("no paper says how {} offloads: expected best, or schedule po-h or po-f",
                           choice.name));
  }
  if (has_rules) choice.options.emplace("offload_plan", plan->text());
}

void settle_offload(YamlMap& root, Scenario& scenario) {
  const auto given = root.find("offload");
  if (given) scenario.offload = read_offload(*given);
  const auto is_none = [](const std::optional<Offload>& offload) {
    return offload && (offload->chunks == 0 || offload->ratio == 0);
  };
  if (is_none(scenario.offload)) scenario.offload.reset();
  for (ScheduleChoice& choice : scenario.schedules) {
    if (!choice.offload) {
      choice.offload = scenario.offload;
      if (given && choice.offload) set_offload_plan(*given, choice);
    }
    if (is_none(choice.offload)) choice.offload.reset();
    if (choice.offload) check(choice, scenario.batch.microbatches);
    if (scenario.modelled && scenario.modelled->context.offloaded.any()) refuse_twice(choice);
  }
}

void read_copy_cost(YamlMap& map, const std::function<std::vector<Seconds>(const YamlValue&)>& read,
                    GivenCost& cost) {
  const auto out = map.find("copy_out");
  const auto in = map.find("copy_in");
  if (out.has_value() != in.has_value()) {
    (out ? *out : *in).fail("needs both 'copy_out' and 'copy_in'");
  }
  if (out) {
    cost.copy_out = read(*out);
    cost.copy_in = read(*in);
  }
  if (const auto factor = map.find("copy_solo_factor")) {
    if (!out) factor->fail("is of 'copy_out' and 'copy_in', which are not given");
    cost.copy_solo_factor = factor->number(1e-6, 1);
  }
}

}  // namespace pipesim
