#include "sim/scenario/choice_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <vector>

#include "sim/core/text.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

std::string to_text(const OptionValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* count = std::get_if<long>(&value)) return fmt::format("{}", *count);
  return fmt::format("{:g}", std::get<double>(value));
}

std::string share_of_chunks(const char* all, int count, const ScheduleChoice& choice) {
  const int chunks = chunks_of(choice);
  return count < chunks ? fmt::format("{} {} of {}", all, count, chunks) : all;
}

// The part of each stage, where it is not every layer by itself.
std::string layers_text(const RecomputedLayers& layers) {
  std::string text;
  if (layers.first > 0) text += fmt::format(", {} layers a stage", layers.first);
  if (layers.every > 1) text += fmt::format(", one of {} layers", layers.every);
  if (layers.group > 1) text += fmt::format(", {} layers together", layers.group);
  if (layers.others.of_modules()) {
    text += fmt::format(", {} in the others", pipesim::to_text(layers.others));
  }
  if (layers.encoder) text += *layers.encoder ? ", all of the encoder" : ", not the encoder";
  return text;
}

std::string recompute_text(const ScheduleChoice& choice) {
  const RecomputeGranularity granularity = granularity_of(choice);
  const int chunks = recompute_chunks_of(choice);
  if (chunks > 0) {
    if (!choice.recompute->layers.decoder) return "the encoder";
    return share_of_chunks("full", chunks, choice) + layers_text(choice.recompute->layers);
  }
  if (!granularity.of_modules()) return "none";
  return to_text(granularity) + layers_text(choice.recompute->layers);
}

std::string offload_text(const ScheduleChoice& choice) {
  if (!choice.program && schedule_of(choice).offloads()) return "by the schedule";
  const int chunks = offload_chunks_of(choice);
  if (chunks == 0) return "none";
  std::string text = share_of_chunks("full", chunks, choice);
  const Offload& offload = *choice.offload;
  if (offload.ratio < 1) text += fmt::format(", {:.4g}% of each", 100 * offload.ratio);
  if (offload.microbatches.count) {
    text += fmt::format(", {} microbatches", *offload.microbatches.count);
  }
  return text;
}

}  // namespace

std::string options_text(const ScheduleChoice& choice) {
  std::vector<std::string> texts;
  if (choice.chunks) texts.push_back(fmt::format("{} chunks", *choice.chunks));
  for (const auto& [name, value] : choice.options) {
    texts.push_back(fmt::format("{} {}", name, to_text(value)));
  }
  if (choice.slice_units) {
    texts.push_back(fmt::format("splits optimal of {}", *choice.slice_units));
  } else if (choice.equal_slices) {
    texts.push_back(fmt::format("splits {} of equal FLOPs", choice.equal_slices->count));
  } else if (!choice.slices.empty()) {
    texts.push_back(fmt::format("splits {}", fmt::join(choice.slices, ":")));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string limit_text(const ScheduleChoice& choice) {
  const auto& limit = choice.memory_limit;
  if (const auto* times = std::get_if<double>(&limit)) return fmt::format("{:g}", *times);
  if (const auto* bytes = std::get_if<Bytes>(&limit)) return human(*bytes);
  if (const auto* total = std::get_if<TotalLimit>(&limit)) {
    return fmt::format("{} in total", human(total->bytes));
  }
  return "";
}

ChoiceColumns columns_of(const ScheduleChoice& choice) {
  return {choice.name, options_text(choice), recompute_text(choice), offload_text(choice),
          limit_text(choice)};
}

std::string label_of(const ScheduleChoice& choice, const std::string& apart) {
  const int chunks = chunks_of(choice);
  std::string text;
  const auto add = [&](std::string_view what, int count) {
    if (count == 0) return;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", what);
    if (count < chunks) text += fmt::format(" {} of {}", count, chunks);
  };
  const RecomputeGranularity granularity = granularity_of(choice);
  if (granularity.of_modules()) {
    text =
        fmt::format("{} recompute{}", to_text(granularity), layers_text(choice.recompute->layers));
  }
  const int recomputed = recompute_chunks_of(choice);
  const bool whole = recomputed == 0 || choice.recompute->layers.decoder;
  add(whole ? "recompute" : "recompute of the encoder", recomputed);
  if (recomputed > 0 && whole) text += layers_text(choice.recompute->layers);
  add("offload", offload_chunks_of(choice));
  if (choice.offload && choice.offload->ratio < 1) {
    text += fmt::format(", {:.4g}% of each activation", 100 * choice.offload->ratio);
  }
  if (choice.offload && choice.offload->microbatches.count) {
    text += fmt::format(", {} microbatches", *choice.offload->microbatches.count);
  }
  if (!apart.empty()) text += (text.empty() ? "" : ", ") + apart;
  return text.empty() ? choice.name : fmt::format("{} ({})", choice.name, text);
}

namespace {

// All that the choice states besides its name.
std::string options_of(const ScheduleChoice& choice) {
  std::string options = options_text(choice);
  const std::string limit = limit_text(choice);
  if (limit.empty()) return options;
  return fmt::format("{}{}memory_limit {}", options, options.empty() ? "" : ", ", limit);
}

using Places = std::map<std::string, std::vector<size_t>>;

// The places of choices by label.
Places by_label(const std::vector<ScheduleChoice>& choices, const std::vector<std::string>& apart) {
  Places places;
  for (size_t i = 0; i < choices.size(); ++i) {
    places[label_of(choices[i], apart[i])].push_back(i);
  }
  return places;
}

}  // namespace

std::vector<std::string> tell_apart(const std::vector<ScheduleChoice>& choices) {
  std::vector<std::string> apart(choices.size());
  for (const auto& [label, same] : by_label(choices, apart)) {
    if (same.size() == 1) continue;
    for (const size_t i : same) apart[i] = options_of(choices[i]);
  }
  for (const auto& [label, same] : by_label(choices, apart)) {
    for (size_t number = 1; number < same.size(); ++number) {
      std::string& text = apart[same[number]];
      text += fmt::format("{}number {}", text.empty() ? "" : ", ", number + 1);
    }
  }
  return apart;
}

}  // namespace pipesim
