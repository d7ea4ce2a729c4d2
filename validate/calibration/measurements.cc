#include "validate/calibration/measurements.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace pipesim::calibration {
namespace {

std::string text(int64_t value) { return std::to_string(value); }

std::string value_of(const Parameters& parameters, std::string_view wanted) {
  const auto found =
      std::ranges::find_if(parameters, [&](const auto& entry) { return entry.first == wanted; });
  return found == parameters.end() ? std::string() : found->second;
}

}  // namespace

std::string make_key(std::string_view group, std::string_view name, const Parameters& parameters) {
  std::string key = fmt::format("{}/{}", group, name);
  for (const auto& [parameter, value] : parameters) key += fmt::format("/{}={}", parameter, value);
  return key;
}

std::string Point::key() const { return make_key(group, name, parameters); }

std::string Point::parameter(std::string_view wanted) const { return value_of(parameters, wanted); }

std::string Measurements::fact(std::string_view wanted) const { return value_of(facts, wanted); }

Point point_of(const MatmulSpec& spec) {
  Point point;
  point.group = "matmul";
  point.name = name_of(spec.pass);
  point.parameters = {{"dtype", std::string(name_of(spec.precision))},
                      {"tokens", text(spec.tokens)},
                      {"in", text(spec.in)},
                      {"out", text(spec.out)}};
  point.flops = spec.flops();
  point.bytes = spec.bytes();
  return point;
}

Point point_of(const KernelSpec& spec) {
  Point point;
  point.group = "kernel";
  point.name = name_of(spec.kernel);
  point.parameters = {{"rows", text(spec.rows)}, {"columns", text(spec.columns)}};
  point.bytes = spec.bytes();
  return point;
}

Point point_of(const AttentionShape& shape, bool backward) {
  const Attention attention = shape.attention(backward);
  Point point;
  point.group = "attention";
  point.name = backward ? "backward" : "forward";
  point.parameters = {{"batch", text(shape.batch)},
                      {"heads", text(shape.heads)},
                      {"kv_heads", text(shape.kv_heads)},
                      {"sequence", text(shape.sequence)},
                      {"head_dim", text(shape.head_dim)}};
  point.flops = attention.flops.value();
  point.bytes = attention.moved.value();
  return point;
}

Point point_of(const LayerSlice& slice, std::string_view what, char pass) {
  Point point;
  point.group = what;
  point.name = std::string(1, pass);
  point.parameters = {{"layer", slice.shape.name},
                      {"tensor_parallel", text(slice.tensor_parallel)},
                      {"micro_batch", text(slice.micro_batch)},
                      {"sequence", text(slice.sequence)}};
  return point;
}

Point point_with_shape(const LayerSlice& slice, char pass) {
  Point point = point_of(slice, "layer", pass);
  const LayerShape& shape = slice.shape;
  const Parameters more{{"hidden", text(shape.hidden)},
                        {"feed_forward", text(shape.feed_forward)},
                        {"heads", text(shape.heads)},
                        {"kv_heads", text(shape.kv_heads)},
                        {"head_dim", text(shape.head_dim)},
                        {"gated", shape.gated ? "1" : "0"},
                        {"rms_norm", shape.rms_norm ? "1" : "0"},
                        {"dropout", shape.dropout ? "1" : "0"}};
  point.parameters.insert(point.parameters.end(), more.begin(), more.end());
  return point;
}

Point disturbed_point_of(const MatmulSpec& spec, const Parameters& where,
                         const std::string& during) {
  const Point identity = point_of(spec);
  Point point;
  point.group = "interference";
  point.name = "matmul";
  point.parameters = {{"pass", identity.name}};
  for (const Parameters& more : {identity.parameters, where}) {
    point.parameters.insert(point.parameters.end(), more.begin(), more.end());
  }
  point.parameters.emplace_back("during", during);
  point.flops = spec.flops();
  return point;
}

const Point* Measurements::find(const std::string& key) const {
  const auto found = std::ranges::find_if(points, [&](const Point& p) { return p.key() == key; });
  return found == points.end() ? nullptr : &*found;
}

Parameters conditions(const std::vector<Point>& points) {
  using Member = double CardState::*;
  static const std::array<std::pair<const char*, Member>, 4> kMembers{
      {{"sm_clock_mhz", &CardState::sm_clock_mhz},
       {"memory_clock_mhz", &CardState::memory_clock_mhz},
       {"temperature_c", &CardState::temperature_c},
       {"power_w", &CardState::power_w}}};
  Parameters ranges;
  for (const auto& [name, member] : kMembers) {
    std::vector<double> values;
    for (const Point& point : points) {
      if (point.state) values.push_back((*point.state).*member);
    }
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    ranges.emplace_back(name, fmt::format("{:.0f} to {:.0f}, median {:.0f}", values.front(),
                                          values.back(), quantile(values, 0.5)));
  }
  return ranges;
}

}  // namespace pipesim::calibration
