#include "sim/interop/megatron/log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "sim/interop/megatron/log_numbers.h"
#include "sim/scenario/gpus.h"
#include "sim/scenario/scenario.h"

namespace pipesim {
namespace {

// Behind `key` stand seconds times `scale`, or a rate of samples or tokens.
struct StepForm {
  enum class Quantity { kSeconds, kSamples, kTokens };
  std::string_view key;
  double scale = 1;
  Quantity quantity = Quantity::kSeconds;
};

constexpr std::array kStepForms{
    StepForm{"elapsed time per iteration (ms):", 1e-3},
    StepForm{"elapsed_time_per_iteration_ms:", 1e-3},
    StepForm{"iter time (s):", 1},
    StepForm{"train_step_timing in s:", 1},
    StepForm{"train_step_timing in s=", 1},
    StepForm{"CurrSamplesPerSec=", 1, StepForm::Quantity::kSamples},
    StepForm{" tps:", 1, StepForm::Quantity::kTokens},
};

double seconds_of(const StepForm& form, double number, const StepSize& size) {
  if (form.quantity == StepForm::Quantity::kSeconds) return form.scale * number;
  return (form.quantity == StepForm::Quantity::kSamples ? size.samples : size.tokens_per_gpu) /
         number;
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

}  // namespace

std::optional<double> logged_number(std::string_view text, std::string_view* rest) {
  const size_t from = std::min(text.find_first_not_of(' '), text.size());
  const size_t end = std::min(text.find_first_not_of("0123456789.,eE+-", from), text.size());
  std::string digits(text.substr(from, end - from));
  std::erase(digits, ',');
  double value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (read.ec != std::errc() || value <= 0) return std::nullopt;
  constexpr std::array kThousands{std::pair('K', 1e3), std::pair('M', 1e6), std::pair('B', 1e9)};
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

StepSize step_size(const Scenario& scenario) {
  const Batch& batch = scenario.batch;
  StepSize size;
  size.samples =
      1.0 * batch.microbatches * batch.micro_batch_size.value_or(0) * scenario.parallel.data;
  size.tokens_per_gpu =
      size.samples * batch.seq_length.value_or(0) / static_cast<double>(gpus_of(scenario.parallel));
  return size;
}

LoggedSteps steps_of_log(std::string_view log, const StepSize& size) {
  constexpr std::size_t kWarmUp = 3;
  const std::string text = without_colours(log);
  std::vector<double> all;
  for (const StepForm& form : kStepForms) {
    if (!all.empty()) break;
    for_each_place(text, form.key, [&](std::string_view behind, size_t) {
      const double seconds = seconds_of(form, logged_number(behind).value_or(0), size);
      if (seconds > 0 && seconds < 1e9) all.push_back(seconds);
    });
  }
  LoggedSteps steps;
  steps.dropped = std::min(kWarmUp, all.size() / 2);
  steps.lines = all.size() - steps.dropped;
  if (steps.lines == 0) return steps;
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(steps.dropped);
  std::sort(first, all.end());
  const auto middle = first + static_cast<std::ptrdiff_t>(steps.lines / 2);
  steps.median = Seconds(steps.lines % 2 == 1 ? *middle : (*middle + *(middle - 1)) / 2);
  return steps;
}

std::string step_forms() {
  std::string text;
  for (const StepForm& form : kStepForms) {
    text += (text.empty() ? "'" : ", '") + std::string(form.key) + "'";
  }
  return text;
}

}  // namespace pipesim
