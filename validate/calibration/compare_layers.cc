#include "validate/calibration/compare_layers.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <stdexcept>

#include "models/layer_cost.h"
#include "models/layer_work.h"

namespace pipesim::calibration {
namespace {

std::int64_t stated(const Point& point, std::string_view name) {
  const std::string text = point.parameter(name);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > 1 << 24) {
    throw std::invalid_argument(fmt::format("{} is '{}', expected a number", name, text));
  }
  return value;
}

LayerShape shape_of(const Point& point) {
  const std::string name = point.parameter("layer");
  if (point.parameter("hidden").empty()) return layer_named(name);
  return {.name = name,
          .hidden = stated(point, "hidden"),
          .feed_forward = stated(point, "feed_forward"),
          .heads = stated(point, "heads"),
          .kv_heads = stated(point, "kv_heads"),
          .head_dim = stated(point, "head_dim"),
          .vocabulary = 0,
          .gated = stated(point, "gated") != 0,
          .rms_norm = stated(point, "rms_norm") != 0,
          .dropout = stated(point, "dropout") != 0};
}

PassKind kind_of(char pass) {
  if (pass == 'F') return PassKind::kF;
  if (pass == 'B') return PassKind::kB;
  if (pass == 'W') return PassKind::kW;
  throw std::invalid_argument(fmt::format("'{}' is no pass", pass));
}

// std::invalid_argument for a layer that no model can have.
CostSetting setting_of(const LayerSlice& slice, bool fused) {
  CostSetting setting;
  setting.context.micro_batch_size = static_cast<int>(slice.micro_batch);
  setting.context.seq_length = static_cast<int>(slice.sequence);
  setting.context.tensor = static_cast<int>(slice.tensor_parallel);
  setting.context.dropout = slice.shape.dropout;
  setting.context.flash_attention = fused;
  if (slice.micro_batch < 1 || slice.sequence < 1 || slice.tensor_parallel < 1) {
    throw std::invalid_argument("a layer of no tokens");
  }
  const Transformer model = transformer_of(slice.shape);
  for (const std::string& fault : {fault_of(model), fault_of(model, setting.context)}) {
    if (!fault.empty()) throw std::invalid_argument(fault);
  }
  return setting;
}

}  // namespace

bool is_fused(const Measurements& measured) {
  return measured.fact("attention") != kUnfusedAttention;
}

LayerSlice slice_of(const Point& point) {
  return {.shape = shape_of(point),
          .tensor_parallel = stated(point, "tensor_parallel"),
          .micro_batch = stated(point, "micro_batch"),
          .sequence = stated(point, "sequence")};
}

Transformer transformer_of(const LayerShape& shape) {
  Transformer model;
  model.name = shape.name;
  model.num_layers = 1;
  model.hidden_size = static_cast<int>(shape.hidden);
  model.num_attention_heads = static_cast<int>(shape.heads);
  model.num_query_groups = static_cast<int>(shape.kv_heads);
  model.kv_channels = static_cast<int>(shape.head_dim);
  model.ffn_hidden_size = static_cast<int>(shape.feed_forward);
  model.vocab_size = 1 << 15;  // of no effect on a layer
  model.max_position_embeddings = 1;
  model.gated_mlp = shape.gated;
  model.norm = shape.rms_norm ? Norm::kRmsNorm : Norm::kLayerNorm;
  model.positions = Positions::kLearned;
  return model;
}

Seconds modelled_seconds(const LayerSlice& slice, char pass, bool fused, const Hardware& hardware) {
  const Transformer model = transformer_of(slice.shape);
  const CostSetting setting = setting_of(slice, fused);
  return pass_cost(model, LayerKind::kDense, kind_of(pass), setting, hardware).compute();
}

double operations_of(const Point& point, bool fused) {
  const LayerSlice slice = slice_of(point);
  const Transformer model = transformer_of(slice.shape);
  const CostSetting setting = setting_of(slice, fused);
  const std::string passes = point.name == "B" ? "BW" : point.name == "FB" ? "FBW" : point.name;
  double kernels = 0;
  for (const char pass : passes) {
    const Work work = layer_work(model, LayerKind::kDense, kind_of(pass), setting.context);
    kernels += static_cast<double>(work.matmuls.size() + work.attention.size() +
                                   static_cast<std::size_t>(work.kernels));
  }
  return kernels * static_cast<double>(std::max<std::int64_t>(1, stated(point, "layers")));
}

LayerComparison compare_layers(const Measurements& measured, const Hardware& hardware) {
  LayerComparison comparison;
  for (const Point& point : measured.points) {
    if (point.group != "layer") continue;
    try {
      const char pass = point.name.size() == 1 ? point.name[0] : '?';
      const Seconds modelled =
          modelled_seconds(slice_of(point), pass, is_fused(measured), hardware);
      const Seconds seconds(point.time_us.median * 1e-6);
      comparison.rows.push_back(
          {point.key(), seconds, point.time_us.spread(), modelled / seconds - 1});
    } catch (const std::invalid_argument& error) {
      comparison.not_compared.push_back({point.key(), error.what()});
    }
  }
  return comparison;
}

}  // namespace pipesim::calibration
