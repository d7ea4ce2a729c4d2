#include "sim/interop/megatron/log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "sim/interop/megatron/log_numbers.h"
#include "sim/scenario/gpus.h"
#include "sim/scenario/scenario.h"

namespace pipesim {
namespace {

// Beside `key` stand seconds times `scale`, or a rate.
struct StepForm {
  enum class Quantity { kSeconds, kSteps, kSamples, kTokens };
  std::string_view key;
  Quantity quantity = Quantity::kSeconds;
  double scale = 1;
  bool before = false;  // the number ends where the key begins
};

using enum StepForm::Quantity;
constexpr std::array kStepForms{
    StepForm{"elapsed time per iteration (ms):", kSeconds, 1e-3},
    StepForm{"elapsed_time_per_iteration_ms:", kSeconds, 1e-3},
    StepForm{"iter time (s):"},
    StepForm{"Step Time : "},
    StepForm{"train_step_timing in s:"},
    StepForm{"train_step_timing in s="},
    StepForm{"s/it, loss=", kSeconds, 1, true},
    StepForm{"it/s, loss=", kSteps, 1, true},
    StepForm{"CurrSamplesPerSec=", kSamples},
    StepForm{", SamplesPerSec=", kSamples},
    StepForm{" tps:", kTokens},
    StepForm{"throughput/device/TPS=", kTokens},
    StepForm{"train_speed(s/it)':"},
    StepForm{"train_speed(iter/s)':", kSteps},
};

// 0 where the rate's size is not known.
double seconds_of(const StepForm& form, double number, const StepSize& size) {
  switch (form.quantity) {
    case kSeconds:
      return form.scale * number;
    case kSteps:
      return 1 / number;
    case kSamples:
      return size.samples / number;
    case kTokens:
      return size.tokens_per_gpu / number;
  }
  return 0;
}

// The line of `text` that has the place.
std::string_view line_at(std::string_view text, size_t at) {
  constexpr const char* kEnds = "\n\r";
  const size_t before = text.find_last_of(kEnds, at);
  const size_t from = before == std::string_view::npos ? 0 : before + 1;
  return text.substr(from, std::min(text.find_first_of(kEnds, at), text.size()) - from);
}

// The rest of the text from the number that ends at the place.
std::string_view number_before(std::string_view text, size_t at) {
  const size_t other = text.substr(0, at).find_last_not_of("0123456789.");
  return text.substr(other == std::string_view::npos ? 0 : other + 1);
}

// The global batch size that a line says beside its time.
std::optional<double> batch_in(std::string_view line) {
  for (const std::string_view key : {"global batch size:", "global_batch_size:"}) {
    const size_t at = line.find(key);
    if (at != std::string_view::npos) return logged_number(line.substr(at + key.size()));
  }
  return std::nullopt;
}

std::string step_forms() {
  std::string text;
  for (const StepForm& form : kStepForms) {
    text += fmt::format("{}'{}'", text.empty() ? "" : ", ", form.key);
  }
  return text;
}

// The log without a terminal's colours, which torchtitan writes between its numbers.
std::string without_colours(std::string_view log) {
  std::string text;
  text.reserve(log.size());
  for (size_t at = 0; at < log.size();) {
    const size_t end = log.substr(at).starts_with("\x1b[")
                           ? log.find_first_not_of("0123456789;", at + 2)
                           : std::string_view::npos;
    if (end != std::string_view::npos && log[end] == 'm') {
      at = end + 1;
    } else {
      text += log[at++];
    }
  }
  return text;
}

StepSize step_size(const Scenario& scenario) {
  const Batch& batch = scenario.batch;
  StepSize size;
  size.samples =
      1.0 * batch.microbatches * batch.micro_batch_size.value_or(0) * scenario.parallel.data;
  size.tokens_per_gpu =
      size.samples * batch.seq_length.value_or(0) / static_cast<double>(gpus_of(scenario.parallel));
  return size;
}

}  // namespace

std::optional<double> logged_number(std::string_view text, std::string_view* rest) {
  const size_t from = std::min(text.find_first_not_of(' '), text.size());
  const size_t end = std::min(text.find_first_not_of("0123456789.,eE+-", from), text.size());
  std::string digits(text.substr(from, end - from));
  std::erase(digits, ',');
  double value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (read.ec != std::errc() || value <= 0) return std::nullopt;
  constexpr std::array kThousands{std::pair('K', 1e3), std::pair('M', 1e6), std::pair('B', 1e9),
                                  std::pair('G', 1e9)};
  for (const auto& [letter, factor] : kThousands) {
    const bool ends = end + 1 >= text.size() || text[end + 1] == ' ' || text[end + 1] == '\n';
    if (end < text.size() && text[end] == letter && ends) value *= factor;
  }
  if (rest != nullptr) *rest = text.substr(end);
  return value;
}

void for_each_place(std::string_view log, std::string_view key,
                    const std::function<void(std::string_view behind, size_t at)>& call) {
  for (size_t at = log.find(key); at != std::string_view::npos; at = log.find(key, at + 1)) {
    call(log.substr(at + key.size()), at);
  }
}

LoggedSteps steps_of_log(std::string_view log, const StepSize& size) {
  constexpr std::size_t kWarmUp = 3;
  const std::string text = without_colours(log);
  LoggedSteps steps;
  std::vector<double> all;
  for (const StepForm& form : kStepForms) {
    if (!all.empty()) break;
    for_each_place(text, form.key, [&](std::string_view behind, size_t at) {
      const std::string_view from = form.before ? number_before(text, at) : behind;
      const double seconds = seconds_of(form, logged_number(from).value_or(0), size);
      if (!(seconds > 0 && seconds < 1e9)) return;
      const auto batch = size.samples > 0 ? batch_in(line_at(text, at)) : std::nullopt;
      if (batch && *batch != size.samples) {
        steps.other_batch = batch;
      } else {
        all.push_back(seconds);
      }
    });
  }
  steps.dropped = std::min(kWarmUp, all.size() / 2);
  steps.lines = all.size() - steps.dropped;
  if (steps.lines == 0) return steps;
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(steps.dropped);
  std::sort(first, all.end());
  const auto middle = first + static_cast<std::ptrdiff_t>(steps.lines / 2);
  steps.median = Seconds(steps.lines % 2 == 1 ? *middle : (*middle + *(middle - 1)) / 2);
  return steps;
}

LoggedSteps steps_of_log(std::string_view log, const Scenario& scenario, const Location& where) {
  const StepSize size = step_size(scenario);
  const LoggedSteps steps = steps_of_log(log, size);
  if (steps.lines > 0) return steps;
  if (steps.other_batch) {
    throw InputError(where, fmt::format("steps of the log have a global batch size of {}, those of "
                                        "the scenario one of {}",
                                        *steps.other_batch, size.samples));
  }
  throw InputError(where, fmt::format("no line of the log says how long a step takes: expected {}",
                                      step_forms()));
}

}  // namespace pipesim
