#include "sim/read/schedules.h"

#include <fmt/format.h>
#include <utility>

#include "sim/core/input_text.h"
#include "sim/core/text.h"
#include "sim/interop/torch/csv_reader.h"
#include "sim/planning/best_slices.h"
#include "sim/planning/schedule.h"
#include "sim/read/description.h"
#include "sim/read/offload.h"
#include "sim/read/recompute.h"

namespace pipesim {
namespace {

OptionValue read_option(const YamlValue& value, const OptionSpec& spec, int chunks) {
  switch (spec.type) {
    case OptionSpec::Type::kFlag:
      return value.flag();
    case OptionSpec::Type::kInteger:
      return value.integer(static_cast<long>(spec.minimum),
                           spec.counts_chunks ? chunks : static_cast<long>(spec.maximum));
    case OptionSpec::Type::kNumber:
      return value.number(spec.minimum, spec.maximum);
    case OptionSpec::Type::kText:
      break;
  }
  return value.text();
}

// Options come in the order of their record, what others need before them.
void check_need(const YamlValue& given, const OptionSpec& spec, const ScheduleChoice& choice) {
  if (spec.needs.empty() || choice.options.at(spec.name) == OptionValue(false)) return;
  const auto needed = choice.options.find(spec.needs);
  if (needed == choice.options.end() || needed->second != OptionValue(true)) {
    given.fail("needs " + spec.needs);
  }
}

std::vector<long> read_lengths(const YamlValue& list) {
  constexpr long kLongest = 1 << 28;
  std::vector<long> lengths;
  for (const YamlValue& each : list.list()) lengths.push_back(each.tokens(1, kLongest));
  if (lengths.empty()) list.fail("expected the length of at least one slice");
  if (lengths.size() > kMostSplits) {
    list.fail(fmt::format("expected at most {} slices, not {}", kMostSplits, lengths.size()));
  }
  return lengths;
}

EqualSlices read_equal_slices(YamlMap& map, const YamlValue& count) {
  constexpr long kMostTokens = 1 << 20;
  EqualSlices slices{.count = static_cast<int>(count.integer(1, kMostSplits))};
  if (const auto tokens = map.find("multiple_of")) {
    slices.multiple = static_cast<int>(tokens->tokens(1, kMostTokens));
  }
  return slices;
}

// A number of equal slices is an option; lengths, or how to choose them, are not.
bool read_slices(const YamlValue& value, ScheduleChoice& choice) {
  constexpr int kUsualUnits = 32;
  static const std::vector<std::string> kOptimal{"optimal"};
  if (value.is_map()) {
    YamlMap map(value);
    const auto count = map.find("equal_flops");
    const auto units = map.find(kOptimal.front());
    if (count && units) units->fail_key("stands beside 'equal_flops': give one of the two");
    if (count) {
      choice.equal_slices = read_equal_slices(map, *count);
    } else {
      if (!units) map.finish();  // names the nearest
      choice.slice_units = static_cast<int>(
          map.require(kOptimal.front(),
                      "parts of a sequence that slices are made of (or equal_flops: slices)")
              .integer(1, kMostSliceUnits));
    }
    map.finish();
    return true;
  }
  if (value.is_list()) {
    choice.slices = read_lengths(value);
    return true;
  }
  if (value.text().find_first_of("0123456789") != std::string::npos) return false;
  (void)value.choice(kOptimal);
  choice.slice_units = kUsualUnits;
  return true;
}

// Lengths of a program's splits.
std::vector<long> lengths_of_splits(const YamlValue& value, const Program& program) {
  const int splits = program.shape().splits;
  if (!value.is_list() || static_cast<int>(value.list().size()) != splits) {
    value.fail(
        fmt::format("expected a list of {} length{}, one for each split of a microbatch in "
                    "the CSV",
                    splits, splits == 1 ? "" : "s"));
  }
  return read_lengths(value);
}

ScheduleChoice read_named_schedule(const YamlValue& value) {
  const auto names = schedule_names();
  return {.name = value.choice(names), .where = value.where()};
}

ScheduleChoice read_described_schedule(const YamlValue& value, const std::string& scenario_file) {
  auto described = read_description_file(file_beside(scenario_file, value.text()), value.where());
  std::string name = described->schedule.name;
  return {.name = std::move(name), .where = value.where(), .described = std::move(described)};
}

// A plain number is a multiple of p x the activation of one microbatch, a size is bytes of
// activations, a map says those of a device in all.
decltype(ScheduleChoice::memory_limit) read_memory_limit(const YamlValue& value) {
  if (value.is_map()) {
    YamlMap map(value);
    const TotalLimit limit{
        map.require("total", "the memory of a device, such as '70 GiB'").bytes()};
    map.finish();
    return limit;
  }
  if (value.is_scalar() && value.text().find_first_not_of("+-0123456789.eE") == std::string::npos) {
    return value.number(0, 1e6);
  }
  return value.bytes();
}

void read_options(YamlMap& map, const Schedule& schedule, ScheduleChoice& choice) {
  for (const OptionSpec& spec : schedule.options) {
    const auto given = map.find(spec.name);
    if (!given || (spec.cuts_sequence && read_slices(*given, choice))) continue;
    choice.options.emplace(spec.name, read_option(*given, spec, chunks_of(choice)));
    check_need(*given, spec, choice);
  }
}

// Chooses among the schedule's records, so that it comes before all that they say.
void read_placement(YamlMap& map, ScheduleChoice& choice) {
  std::vector<std::string> placements;
  for (const Schedule* schedule : records_of(choice.name)) {
    if (schedule->placement) placements.push_back(schedule->placement->name);
  }
  if (placements.empty()) return;
  if (const auto given = map.find("placement")) {
    choice.options.emplace("placement", given->choice(placements));
  }
}

// Requires a name in a map with neither 'file' nor 'csv'.
YamlValue require_name(YamlMap& map) {
  const std::vector<std::string> valid{"name", "file", "csv"};
  if (auto name = map.find("name")) return *name;
  for (const auto& [key, value] : map.unread()) {
    const std::string near = nearest_name(key, valid);
    if (!near.empty()) value.fail_key(fmt::format("unknown key; did you mean '{}'?", near));
  }
  return map.require("name", "the name of a schedule, or 'file' or 'csv' instead");
}

ScheduleChoice read_schedule(const YamlValue& value, const std::string& scenario_file) {
  if (!value.is_map()) return read_named_schedule(value);
  YamlMap map(value);
  const auto recompute = [&map]() -> std::optional<Recompute> {
    const auto given = map.find("recompute");
    return given ? std::optional(read_recompute(*given)) : std::nullopt;
  };
  const auto offload = [&map](const Schedule* schedule) -> std::optional<Offload> {
    const auto given = map.find("offload");
    if (!given) return std::nullopt;
    if (schedule != nullptr && schedule->copies() && !given->is_map()) {
      given->fail(fmt::format("{} offloads by itself: expected a map of ratio{}", schedule->name,
                              schedule->offloads()
                                  ? ", plan, bandwidth, prefetch and "
                                    "devices_per_link; did you mean 'offload_chunks'?"
                                  : " and bandwidth"));
    }
    return read_offload(*given);
  };
  if (const auto csv = map.find("csv")) {
    const auto recomputed = recompute();
    const auto offloaded = offload(nullptr);
    const auto lengths = map.find("splits");
    map.finish();
    const std::string file = file_beside(scenario_file, csv->text());
    auto program = std::make_shared<const Program>(read_torch_csv_file(file, csv->where()));
    ScheduleChoice choice{
        .name = file,
        .where = csv->where(),
        .slices = lengths ? lengths_of_splits(*lengths, *program) : std::vector<long>(),
        .program = program,
        .recompute = recomputed,
        .offload = offloaded};
    if (offloaded) set_offload_plan(*map.find("offload"), choice);
    return choice;
  }
  const auto described = map.find("file");
  ScheduleChoice choice = described ? read_described_schedule(*described, scenario_file)
                                    : read_named_schedule(require_name(map));
  if (!described) read_placement(map, choice);
  if (const auto chunks = map.find(kChunksKey)) {
    choice.chunks = static_cast<int>(chunks->integer(1, 1024));
  }
  choice.recompute = recompute();
  const Schedule& schedule = schedule_of(choice);
  choice.offload = offload(&schedule);
  if (choice.offload) set_offload_plan(*map.find("offload"), choice);
  if (schedule.memory_limit) {
    if (const auto limit = map.find("memory_limit"))
      choice.memory_limit = read_memory_limit(*limit);
  }
  read_options(map, schedule, choice);
  map.finish();
  return choice;
}

}  // namespace

std::vector<ScheduleChoice> read_schedules(const YamlValue& value, const std::string& file) {
  std::vector<ScheduleChoice> choices;
  if (!value.is_list()) {
    choices.push_back(read_schedule(value, file));
    return choices;
  }
  for (const YamlValue& each : value.list()) choices.push_back(read_schedule(each, file));
  if (choices.empty()) value.fail("expected at least one schedule");
  return choices;
}

std::variant<double, Bytes> parse_memory_limit(const std::string& text, const Location& where) {
  const YamlSource source("", "memory_limit: 1", {{"memory_limit", text, where}});
  const auto limit = read_memory_limit(YamlMap(source.root()).require("memory_limit", ""));
  if (const auto* bytes = std::get_if<Bytes>(&limit)) return *bytes;
  if (const auto* multiple = std::get_if<double>(&limit)) return *multiple;
  throw InputError(where, "expected a number or a size of activations here, not a total");
}

}  // namespace pipesim
