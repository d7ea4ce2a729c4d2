#include "sim/report/json/gpus.h"

#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "sim/report/json/schema.h"

namespace pipesim {
namespace {

using OrderedJson = nlohmann::ordered_json;

}  // namespace

void write_gpus(std::ostream& out, std::span<const GpuEntry> gpus) {
  OrderedJson document{{"schema", kJsonSchema}, {"gpus", OrderedJson::array()}};
  for (const GpuEntry& entry : gpus) {
    OrderedJson gpu{{"name", entry.gpu.name}, {"title", entry.title}};
    if (!entry.gpu.like.empty()) {
      gpu["like"] = entry.gpu.like;
      gpu["spread"] = entry.gpu.spread;
    }
    gpu["numbers"] = OrderedJson::array();
    for (const Sourced& number : entry.numbers) {
      OrderedJson one{{"key", number.key}, {"value", number.value}, {"source", number.source}};
      if (number.source.starts_with("assumed")) one["assumed"] = true;
      gpu["numbers"].push_back(std::move(one));
    }
    document["gpus"].push_back(std::move(gpu));
  }
  out << document.dump(2) << '\n';
}

}  // namespace pipesim
