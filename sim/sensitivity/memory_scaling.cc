#include "sim/sensitivity/memory_scaling.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <memory>
#include <set>
#include <utility>

#include "sim/case/simulate.h"
#include "sim/core/csv.h"
#include "sim/core/error.h"
#include "sim/prepare/prepare.h"
#include "sim/report/metrics/row.h"
#include "sim/report/text/aligned.h"
#include "sim/scenario/gpus.h"

namespace pipesim {
namespace {

constexpr int kLargest = 64;

struct Axis {
  std::string_view key;
  int ParallelSizes::*size;  // none: of experts
};
constexpr std::array<Axis, 5> kAxes{{{"data_parallel_size", &ParallelSizes::data},
                                     {"tensor_model_parallel_size", &ParallelSizes::tensor},
                                     {"context_parallel_size", &ParallelSizes::context},
                                     {"pipeline_model_parallel_size", &ParallelSizes::pipeline},
                                     {"expert_model_parallel_size", nullptr}}};

bool applies(const Axis& axis, const Scenario& scenario) {
  return axis.size != nullptr || scenario.modelled->model.experts.has_value();
}

int size_of(const Axis& axis, const Scenario& scenario) {
  return axis.size != nullptr ? scenario.parallel.*axis.size : scenario.modelled->context.expert;
}

std::set<int> sizes_of(const Axis& axis, const Scenario& scenario) {
  std::set<int> sizes{size_of(axis, scenario)};
  for (int size = 1; size <= kLargest; size *= 2) sizes.insert(size);
  return sizes;
}

EnumArray<HeldPart, Bytes> held_by(const Case& made) {
  EnumArray<HeldPart, Bytes> held{};
  const auto raise = [&held](HeldPart part, Bytes to) { held[part] = std::max(held[part], to); };
  for (const DeviceMemory& device : made.memory->devices) {
    raise(HeldPart::kWeights, device.weights);
    raise(HeldPart::kGradients, device.gradients);
    raise(HeldPart::kOptimizer, device.optimizer);
    raise(HeldPart::kVocabulary, device.vocabulary);
  }
  raise(HeldPart::kMicrobatch, made.problem.device_activation());
  const Report report = simulate(made).report;
  held[HeldPart::kActivation] = report.peak_activation;
  held[HeldPart::kMemory] = report.peak_memory.value_or(Bytes(0));
  return held;
}

ScaledMemory at_size(const Axis& axis, int size, size_t choice, const ScenarioAt& at) {
  ScaledMemory scaled{.axis = axis.key, .size = size};
  try {
    Scenario scenario = at(axis.key, size);
    scenario.engine = EngineKind::kReplay;
    scenario.perturb = {};
    scaled.gpus = static_cast<int>(gpus_of(scenario.parallel));
    const auto shared = std::make_shared<const Scenario>(std::move(scenario));
    scaled.held = held_by(prepare(shared, shared->schedules.at(choice)));
  } catch (const InputError& error) {
    scaled.refusal = error.message();
  } catch (const InfeasibleError& error) {
    scaled.refusal = error.what();
  }
  return scaled;
}

std::string gib(Bytes bytes) { return fmt::format("{:.2f}", bytes.value() / kGiB.value()); }

Row row_of(const ScaledMemory& scaled) {
  Row row{std::string(scaled.axis), std::to_string(scaled.size), std::to_string(scaled.gpus)};
  for (const Bytes part : *scaled.held) row.push_back(gib(part));
  return row;
}

std::vector<std::string_view> axes_of(const MemoryScaling& scaling) {
  std::vector<std::string_view> axes;
  for (const ScaledMemory& scaled : scaling.sizes) {
    if (axes.empty() || axes.back() != scaled.axis) axes.push_back(scaled.axis);
  }
  return axes;
}

Row head(std::vector<std::string> first) {
  for (const std::string_view part : kHeldParts) {
    std::string name(part);
    std::ranges::replace(name, '_', ' ');
    first.push_back(std::move(name));
  }
  return first;
}

}  // namespace

MemoryScaling memory_scaling(const Scenario& scenario, size_t choice, const ScenarioAt& at) {
  const ScheduleChoice& chosen = scenario.schedules.at(choice);
  if (!scenario.modelled) {
    throw InputError(chosen.where, "what GPUs hold at other sizes needs a 'model'");
  }
  MemoryScaling scaling{label_of(chosen), columns_of(chosen), {}};
  for (const Axis& axis : kAxes) {
    if (!applies(axis, scenario)) continue;
    for (const int size : sizes_of(axis, scenario)) {
      scaling.sizes.push_back(at_size(axis, size, choice, at));
    }
  }
  return scaling;
}

std::optional<double> exponent(const MemoryScaling& scaling, std::string_view axis, HeldPart part) {
  const ScaledMemory* first = nullptr;
  const ScaledMemory* last = nullptr;
  for (const ScaledMemory& scaled : scaling.sizes) {
    if (scaled.axis != axis || !scaled.held) continue;
    if (first == nullptr) first = &scaled;
    last = &scaled;
  }
  if (first == last || (*first->held)[part] == Bytes(0) || (*last->held)[part] == Bytes(0)) {
    return std::nullopt;
  }
  return std::log((*first->held)[part] / (*last->held)[part]) /
         std::log(1.0 * last->size / first->size);
}

std::string memory_scaling_table(const MemoryScaling& scaling) {
  std::vector<Row> rows{head({"GiB a GPU at", "size", "GPUs"})};
  for (const ScaledMemory& scaled : scaling.sizes) {
    if (scaled.held) rows.push_back(row_of(scaled));
  }
  std::vector<Row> powers{head({"~ size^-k, k:"})};
  for (const std::string_view axis : axes_of(scaling)) {
    Row& row = powers.emplace_back();
    row.emplace_back(axis);
    for (size_t part = 0; part < kHeldParts.size(); ++part) {
      const auto power = exponent(scaling, axis, static_cast<HeldPart>(part));
      row.push_back(power ? fmt::format("{:.2f}", *power) : "-");
    }
  }
  std::string text = fmt::format("{}\n{}\n{}", scaling.schedule, aligned(rows), aligned(powers));
  for (const ScaledMemory& scaled : scaling.sizes) {
    if (scaled.held) continue;
    text += fmt::format("left out: {} {}: {}\n", scaled.axis, scaled.size, scaled.refusal);
  }
  return text;
}

std::string memory_scaling_csv(std::span<const MemoryScaling> all) {
  std::string text = choice_header() + ",axis,size,gpus";
  for (const std::string_view part : kHeldParts) text += fmt::format(",{}_bytes", part);
  text += ",refusal\n";
  for (const MemoryScaling& scaling : all) {
    for (const ScaledMemory& scaled : scaling.sizes) {
      text += fmt::format("{},{},{},{}", choice_fields(scaling.choice), scaled.axis, scaled.size,
                          scaled.gpus);
      for (size_t part = 0; part < kHeldParts.size(); ++part) {
        text += scaled.held ? fmt::format(",{}", (*scaled.held)[part].value()) : ",";
      }
      text += fmt::format(",{}\n", csv_field(scaled.refusal));
    }
  }
  return text;
}

}  // namespace pipesim
