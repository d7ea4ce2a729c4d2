#include "app/serve_question.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <span>

#include "sim/core/text.h"
#include "sim/interop/json/json.h"
#include "sim/layouts/space.h"
#include "sim/read/model.h"
#include "sim/read/modelled.h"
#include "sim/read/reliability.h"

namespace pipesim {
namespace {

using Json = nlohmann::ordered_json;

struct ServeNumber {
  const char* key;
  double least;
  double most;
  double first;  // what the page opens with
};
constexpr std::array kServeCounts{ServeNumber{"gpus", 1, 16384, 64},
                                  ServeNumber{"batch", 1, 1 << 20, 256},
                                  ServeNumber{"length", 1, 1 << 20, 8192}};
// Factors of what the catalogue has.
constexpr std::array kServeFactors{ServeNumber{"bandwidth", 0.125, 8, 1},
                                   ServeNumber{"memory", 0.25, 4, 1},
                                   ServeNumber{"vocabulary", 0.25, 8, 1}};
constexpr ServeNumber kServeFailures{"failures", 0, 1000, 0};

std::string chosen_name(const JsonValue& question, const char* key,
                        const std::vector<std::string>& names) {
  const JsonValue value = question.require(key, "a name");
  const std::string& name = value.text();
  if (std::ranges::count(names, name) > 0) return name;
  value.fail(fmt::format("unknown {} '{}'{}", key, name, suggestion(name, names)));
}

// A choice that may be left to the plan, with an empty name or without the key.
std::string chosen_name_or_none(const JsonValue& question, const char* key,
                                const std::vector<std::string>& names) {
  const auto value = question.find(key);
  return !value || value->is_null() || value->text().empty() ? ""
                                                             : chosen_name(question, key, names);
}

long count_of(const JsonValue& question, const ServeNumber& number) {
  return question.require(number.key, "a whole number")
      .integer(static_cast<long>(number.least), static_cast<long>(number.most));
}

double number_of(const JsonValue& question, const ServeNumber& number) {
  const auto value = question.find(number.key);
  return value ? value->number(number.least, number.most) : number.first;
}

void check_keys(const JsonValue& question) {
  std::vector<std::string> known{"model", "cluster", "precision", "schedule", kServeFailures.key};
  for (const ServeNumber& each : kServeCounts) known.emplace_back(each.key);
  for (const ServeNumber& each : kServeFactors) known.emplace_back(each.key);
  for (const JsonValue& value : question.values()) {
    if (std::ranges::count(known, value.key()) > 0) continue;
    value.fail(fmt::format("unknown key '{}'{}", value.key(), suggestion(value.key(), known)));
  }
}

double usual_failures() { return usual_reliability().failure_rate * kThousandNodeDays; }

// A factor of 1 adds nothing.
void add_factors(const JsonValue& question, const ClusterEntry& cluster, int vocabulary,
                 std::vector<std::string>& arguments) {
  const auto add = [&](const ServeNumber& number, const auto& text) {
    const double factor = number_of(question, number);
    if (factor != 1) arguments.push_back(text(factor));
  };
  add(kServeFactors[0], [&](double factor) {
    return fmt::format("cluster.network.bandwidth={:.6g} GB/s",
                       factor * cluster.card.bandwidth.value() / 1e9);
  });
  add(kServeFactors[1], [&](double factor) {
    const Bytes memory = factor * cluster.hardware.gpu.memory;
    return fmt::format("cluster.gpu.memory={:.6g} GiB", memory.value() / (1 << 30));
  });
  add(kServeFactors[2],
      [&](double factor) { return fmt::format("model.vocab_size={:.0f}", factor * vocabulary); });
}

Json number_json(const ServeNumber& number, double first) {
  return {{"key", number.key}, {"least", number.least}, {"most", number.most}, {"first", first}};
}

}  // namespace

ServeChoices::ServeChoices(const Location& asked)
    : hardware_(read_all_hardware(asked)), schedules_(schedules_to_plan()) {
  for (const Transformer& each : catalogue_models()) models_.push_back(each.name);
  for (const ClusterEntry& each : hardware_.clusters) clusters_.push_back(each.hardware.name);
}

Json ServeChoices::json() const {
  Json choices{{"schedules", schedules_}, {"precisions", precision_names()}};
  for (const Transformer& each : catalogue_models()) {
    choices["models"].push_back({{"name", each.name}, {"vocabulary", each.vocab_size}});
  }
  for (const ClusterEntry& each : hardware_.clusters) {
    choices["clusters"].push_back({{"name", each.hardware.name},
                                   {"title", each.title},
                                   {"node", each.hardware.cluster.gpus_per_node},
                                   {"bandwidth", each.card.bandwidth.value()},
                                   {"memory", each.hardware.gpu.memory.value()}});
  }
  for (const ServeNumber& each : kServeCounts)
    choices["counts"].push_back(number_json(each, each.first));
  for (const ServeNumber& each : kServeFactors) {
    choices["factors"].push_back(number_json(each, each.first));
  }
  choices["failures"] = number_json(kServeFailures, usual_failures());
  return choices;
}

ServeQuestion ServeChoices::read(const std::string& text) const {
  const JsonFile file("question", text);
  const JsonValue question = file.root();
  if (!question.is_map())
    question.fail("expected {\"model\": ..., \"cluster\": ..., \"gpus\": ...}");
  check_keys(question);
  const std::string model = chosen_name(question, "model", models_);
  const std::string cluster = chosen_name(question, "cluster", clusters_);
  ServeQuestion read{{"plan", "--model", model, "--cluster", cluster}, usual_failures()};
  constexpr std::array kOptions{"--gpus", "--global-batch-size", "--seq-length"};
  for (size_t i = 0; i < kServeCounts.size(); ++i) {
    read.arguments.emplace_back(kOptions[i]);
    read.arguments.push_back(fmt::format("{}", count_of(question, kServeCounts[i])));
  }
  const std::string precision = chosen_name_or_none(question, "precision", precision_names());
  if (!precision.empty()) read.arguments.insert(read.arguments.end(), {"--precision", precision});
  const std::string schedule = chosen_name_or_none(question, "schedule", schedules_);
  if (!schedule.empty()) read.arguments.insert(read.arguments.end(), {"--schedules", schedule});
  const auto entry = static_cast<size_t>(std::ranges::find(clusters_, cluster) - clusters_.begin());
  add_factors(question, hardware_.clusters[entry], find_model(model, {}).vocab_size,
              read.arguments);
  if (const auto failures = question.find(kServeFailures.key)) {
    read.failures_per_1000_node_days = failures->number(kServeFailures.least, kServeFailures.most);
  }
  return read;
}

}  // namespace pipesim
