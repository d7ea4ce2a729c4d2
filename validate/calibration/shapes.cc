#include "validate/calibration/shapes.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <stdexcept>
#include <utility>

namespace pipesim::calibration {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kMiB = 1024 * kKiB;

double product(int64_t a, int64_t b) { return static_cast<double>(a) * static_cast<double>(b); }

// Bytes per element, and per row besides, that a kernel moves.
struct Traffic {
  Kernel kernel;
  std::string_view name;
  double per_element;
  double per_row;
};

// bf16 counts 2, fp32 4, a dropout mask 1. The sums spell out reads, then writes.
constexpr std::array<Traffic, 18> kTraffic{{
    {Kernel::kCopy, "copy", 2 + 2, 0},
    {Kernel::kResidualAdd, "residual_add", 2 + 2 + 2, 0},
    {Kernel::kDropoutAddForward, "dropout_add_forward", 2 + 2 + 2 + 1, 0},
    {Kernel::kDropoutBackward, "dropout_backward", 2 + 1 + 2, 0},
    {Kernel::kRmsNormForward, "rms_norm_forward", 2 + 2, 4},
    {Kernel::kRmsNormBackward, "rms_norm_backward", 2 + 2 + 2, 4},
    {Kernel::kLayerNormForward, "layer_norm_forward", 2 + 2, 8},
    {Kernel::kLayerNormBackward, "layer_norm_backward", 2 + 2 + 2, 8},
    {Kernel::kNormWeightGradient, "norm_weight_gradient", 2 + 2, 8},
    {Kernel::kGeluForward, "gelu_forward", 2 + 2, 0},
    {Kernel::kGeluBackward, "gelu_backward", 2 + 2 + 2, 0},
    {Kernel::kSwigluForward, "swiglu_forward", 2 + 2 + 2, 0},
    {Kernel::kSwigluBackward, "swiglu_backward", 2 + 2 + 2 + 2 + 2, 0},
    {Kernel::kSoftmaxForward, "softmax_forward", 2 + 2, 0},
    {Kernel::kSoftmaxBackward, "softmax_backward", 2 + 2 + 2, 0},
    {Kernel::kCrossEntropyForward, "cross_entropy_forward", 2, 4 + 4 + 4},
    {Kernel::kCrossEntropyBackward, "cross_entropy_backward", 2 + 2, 4 + 4},
    {Kernel::kAdamStep, "adam_step", 4 + 4 + 4 + 4 + 4 + 4 + 4 + 2, 0},
}};

const Traffic& traffic_of(Kernel kernel) {
  return *std::ranges::find(kTraffic, kernel, &Traffic::kernel);
}

int64_t divided(int64_t value, int64_t by, std::string_view what) {
  if (by < 1 || value % by != 0) {
    throw std::invalid_argument(std::string(what) + " " + std::to_string(value) +
                                " does not divide by " + std::to_string(by));
  }
  return value / by;
}

void add_linear(std::vector<MatmulSpec>& to, Precision precision, int64_t tokens, int64_t in,
                int64_t out) {
  for (const MatmulPass pass :
       {MatmulPass::kForward, MatmulPass::kInputGradient, MatmulPass::kWeightGradient}) {
    to.push_back({pass, precision, tokens, in, out});
  }
}

// Keeps the first of equal values, in order.
template <class T>
void keep_unique(std::vector<T>& values) {
  std::set<T> seen;
  std::erase_if(values, [&](const T& value) { return !seen.insert(value).second; });
}

bool divides(const LayerShape& shape, int64_t tensor_parallel) {
  return shape.heads % tensor_parallel == 0 && shape.kv_heads % tensor_parallel == 0;
}

// The shapes of a mode: every combination of these.
struct Coverage {
  std::vector<std::string_view> layers;
  std::vector<int64_t> tokens;
  std::vector<int64_t> tensor_parallel;
  std::vector<std::pair<std::string_view, int64_t>> vocabularies;  // layer, tensor parallel
  int64_t sequence;
};

// A fused engine is compiled for each attention shape, which costs more than timing it: only the
// smallest and largest of a range are taken.
bool at_an_end(const std::vector<int64_t>& values, int64_t value) {
  return value == values.front() || value == values.back();
}

void cover_layers(Plan& plan, const Coverage& coverage, const LayerShape& shape,
                  int64_t tensor_parallel, Precision precision) {
  for (const int64_t tokens : coverage.tokens) {
    const LayerSlice slice{shape, tensor_parallel, tokens / coverage.sequence, coverage.sequence};
    std::ranges::copy(layer_matmuls(slice, precision), std::back_inserter(plan.matmuls));
    if (precision != Precision::kBf16) continue;
    if (at_an_end(coverage.tokens, tokens) &&
        at_an_end(coverage.tensor_parallel, tensor_parallel)) {
      plan.attention.push_back(slice.attention());
    }
    for (const char pass : {'F', 'B', 'W'}) {
      std::ranges::copy(layer_kernels(slice, pass), std::back_inserter(plan.kernels));
    }
  }
}

void cover(Plan& plan, const Coverage& coverage) {
  for (const Precision precision : {Precision::kBf16, Precision::kFp8}) {
    for (const auto& name : coverage.layers) {
      for (const int64_t tensor_parallel : coverage.tensor_parallel) {
        const LayerShape& shape = layer_named(name);
        if (!divides(shape, tensor_parallel)) continue;
        cover_layers(plan, coverage, shape, tensor_parallel, precision);
      }
    }
    for (const auto& [name, tensor_parallel] : coverage.vocabularies) {
      const LayerSlice slice{layer_named(name), tensor_parallel, 1, 4096};
      std::ranges::copy(vocabulary_matmuls(slice, precision), std::back_inserter(plan.matmuls));
    }
  }
}

}  // namespace

std::string_view name_of(Precision precision) {
  return precision == Precision::kBf16 ? "bf16" : "fp8";
}

std::string_view name_of(MatmulPass pass) {
  switch (pass) {
    case MatmulPass::kForward:
      return "fprop";
    case MatmulPass::kInputGradient:
      return "dgrad";
    case MatmulPass::kWeightGradient:
      return "wgrad";
  }
  throw std::invalid_argument("unknown matmul pass");
}

std::string_view name_of(Kernel kernel) { return traffic_of(kernel).name; }

const std::vector<Kernel>& all_kernels() {
  static const std::vector<Kernel> kKernels = [] {
    std::vector<Kernel> result;
    for (const Traffic& traffic : kTraffic) result.push_back(traffic.kernel);
    return result;
  }();
  return kKernels;
}

Matmul MatmulSpec::matmul() const {
  switch (pass) {
    case MatmulPass::kForward:
      return {.m = tokens, .n = out, .k = in, .precision = precision};
    case MatmulPass::kInputGradient:
      return {.m = tokens, .n = in, .k = out, .precision = precision};
    case MatmulPass::kWeightGradient:
      return {.m = in, .n = out, .k = tokens, .precision = precision, .result_bytes = 8};
  }
  throw std::invalid_argument("unknown matmul pass");
}

double MatmulSpec::bytes() const {
  const Matmul all = matmul();
  const double operand = precision == Precision::kBf16 ? 2 : 1;
  return operand * (product(all.m, all.k) + product(all.k, all.n)) +
         all.result_bytes * product(all.m, all.n);
}

Attention AttentionShape::attention(bool backward) const {
  const double matmuls = backward ? 5 : 2;
  const double square = product(batch, heads) * product(sequence, sequence);
  const double rows = product(batch, sequence) * static_cast<double>(2 * heads + 2 * kv_heads);
  const auto size = static_cast<double>(head_dim);
  return {.flops = Flops(matmuls * square * size),
          .moved = Bytes((backward ? 4 : 2) * rows * size),
          .head_size = static_cast<int>(head_dim),
          .backward = backward,
          .rows = product(batch * heads, sequence)};
}

double KernelSpec::bytes() const {
  const Traffic& traffic = traffic_of(kernel);
  return traffic.per_element * product(rows, columns) + traffic.per_row * static_cast<double>(rows);
}

void LayerSlice::require_divisible() const {
  divided(shape.heads, tensor_parallel, "heads");
  divided(shape.kv_heads, tensor_parallel, "kv heads");
  divided(shape.feed_forward, tensor_parallel, "feed-forward size");
  divided(shape.heads, shape.kv_heads, "heads");
}

int64_t LayerSlice::qkv_out() const {
  return divided((shape.heads + 2 * shape.kv_heads) * shape.head_dim, tensor_parallel, "QKV size");
}

int64_t LayerSlice::attention_width() const {
  return divided(shape.heads * shape.head_dim, tensor_parallel, "attention size");
}

int64_t LayerSlice::activation_width() const {
  return divided(shape.feed_forward, tensor_parallel, "feed-forward size");
}

int64_t LayerSlice::first_out() const { return activation_width() * (shape.gated ? 2 : 1); }

int64_t LayerSlice::vocabulary_out() const {
  return divided(shape.vocabulary, tensor_parallel, "vocabulary");
}

AttentionShape LayerSlice::attention() const {
  return {micro_batch, divided(shape.heads, tensor_parallel, "heads"),
          divided(shape.kv_heads, tensor_parallel, "kv heads"), sequence, shape.head_dim};
}

std::vector<MatmulSpec> layer_matmuls(const LayerSlice& slice, Precision precision) {
  slice.require_divisible();
  std::vector<MatmulSpec> result;
  const int64_t hidden = slice.shape.hidden;
  add_linear(result, precision, slice.tokens(), hidden, slice.qkv_out());
  add_linear(result, precision, slice.tokens(), slice.attention_width(), hidden);
  add_linear(result, precision, slice.tokens(), hidden, slice.first_out());
  add_linear(result, precision, slice.tokens(), slice.activation_width(), hidden);
  return result;
}

namespace {

void add_forward(std::vector<KernelSpec>& kernels, const LayerSlice& slice, bool mlp) {
  const LayerShape& shape = slice.shape;
  const int64_t rows = slice.tokens();
  const Kernel norm = shape.rms_norm ? Kernel::kRmsNormForward : Kernel::kLayerNormForward;
  kernels.push_back({norm, rows, shape.hidden});
  if (mlp) {
    const Kernel activation = shape.gated ? Kernel::kSwigluForward : Kernel::kGeluForward;
    kernels.push_back({activation, rows, slice.activation_width()});
  }
  const Kernel end = shape.dropout ? Kernel::kDropoutAddForward : Kernel::kResidualAdd;
  kernels.push_back({end, rows, shape.hidden});
}

void add_backward(std::vector<KernelSpec>& kernels, const LayerSlice& slice, bool mlp) {
  const LayerShape& shape = slice.shape;
  const int64_t rows = slice.tokens();
  if (shape.dropout) kernels.push_back({Kernel::kDropoutBackward, rows, shape.hidden});
  if (mlp) {
    const Kernel activation = shape.gated ? Kernel::kSwigluBackward : Kernel::kGeluBackward;
    kernels.push_back({activation, rows, slice.activation_width()});
  }
  const Kernel norm = shape.rms_norm ? Kernel::kRmsNormBackward : Kernel::kLayerNormBackward;
  kernels.push_back({norm, rows, shape.hidden});
  kernels.push_back({Kernel::kResidualAdd, rows, shape.hidden});
}

}  // namespace

std::vector<KernelSpec> layer_kernels(const LayerSlice& slice, char pass) {
  std::vector<KernelSpec> result;
  for (const bool mlp : {false, true}) {  // attention, then MLP
    if (pass == 'F') {
      add_forward(result, slice, mlp);
    } else if (pass == 'B') {
      add_backward(result, slice, mlp);
    } else {
      result.push_back({Kernel::kNormWeightGradient, slice.tokens(), slice.shape.hidden});
    }
  }
  return result;
}

std::vector<MatmulSpec> vocabulary_matmuls(const LayerSlice& slice, Precision precision) {
  std::vector<MatmulSpec> result;
  add_linear(result, precision, slice.tokens(), slice.shape.hidden, slice.vocabulary_out());
  return result;
}

const std::vector<LayerShape>& layer_catalogue() {
  const auto gpt = [](std::string name, int64_t hidden, int64_t heads) {
    return LayerShape{std::move(name), hidden, 4 * hidden, heads, heads,
                      hidden / heads,  51200,  false,      false, true};
  };
  static const std::vector<LayerShape> kCatalogue{
      gpt("gpt-1.5b", 2304, 24),
      gpt("gpt-6.2b", 4096, 32),
      gpt("gpt-14.6b", 5120, 40),
      gpt("gpt-28.3b", 6144, 48),
      gpt("gpt-39b", 8192, 64),
      {"llama3-8b", 4096, 14336, 32, 8, 128, 128256, true, true, false},
      {"llama3-70b", 8192, 28672, 64, 8, 128, 128256, true, true, false},
  };
  return kCatalogue;
}

const LayerShape& layer_named(std::string_view name) {
  const auto found = std::ranges::find(layer_catalogue(), name, &LayerShape::name);
  if (found == layer_catalogue().end()) {
    throw std::invalid_argument("no layer shape is named '" + std::string(name) + "'");
  }
  return *found;
}

Plan make_plan(Mode mode) {
  Plan plan;
  const bool full = mode == Mode::kFull;
  Coverage coverage;
  if (full) {
    coverage = {
        .layers = {"gpt-1.5b", "gpt-6.2b", "gpt-14.6b", "gpt-28.3b", "gpt-39b", "llama3-70b"},
        .tokens = {1024, 2048, 4096, 8192},
        .tensor_parallel = {1, 2, 4, 8},
        .vocabularies = {{"gpt-6.2b", 1}, {"llama3-70b", 1}, {"llama3-70b", 8}},
        .sequence = 1024};
  } else {
    coverage = {.layers = {"gpt-6.2b", "llama3-70b"},
                .tokens = {2048, 8192},
                .tensor_parallel = {1, 8},
                .vocabularies = {{"gpt-6.2b", 1}},
                .sequence = 2048};
  }
  const auto slice = [](std::string_view name, int64_t tensor_parallel, int64_t micro_batch,
                        int64_t sequence) {
    return LayerSlice{layer_named(name), tensor_parallel, micro_batch, sequence};
  };
  // The layers run first in the plan's parts, so that their composition never lacks one.
  plan.layers = {slice("gpt-6.2b", 1, 3, 1024), slice("llama3-70b", 8, 1, 8192)};
  if (full) {
    plan.layers.insert(plan.layers.end(),
                       {slice("gpt-1.5b", 1, 6, 1024), slice("gpt-14.6b", 1, 1, 1024),
                        slice("gpt-28.3b", 1, 1, 1024), slice("llama3-8b", 1, 1, 8192)});
  }
  for (const LayerSlice& layer : plan.layers) {
    std::ranges::copy(layer_matmuls(layer, Precision::kBf16), std::back_inserter(plan.matmuls));
    std::ranges::copy(vocabulary_matmuls(layer, Precision::kBf16),
                      std::back_inserter(plan.matmuls));
    plan.attention.push_back(layer.attention());
    for (const char pass : {'F', 'B', 'W'}) {
      std::ranges::copy(layer_kernels(layer, pass), std::back_inserter(plan.kernels));
    }
    for (const Kernel kernel : {Kernel::kCrossEntropyForward, Kernel::kCrossEntropyBackward}) {
      plan.kernels.push_back({kernel, layer.tokens(), layer.vocabulary_out()});
    }
  }
  cover(plan, coverage);
  for (const int64_t sequence : {int64_t{2048}, int64_t{4096}, int64_t{8192}}) {
    // Heads of two sizes tell the softmax from the matmuls.
    for (const int64_t head_dim : {int64_t{64}, int64_t{128}}) {
      plan.attention.push_back({1, 32, 32, sequence, head_dim});
    }
  }
  for (const int64_t rows : {int64_t{4096}, int64_t{65536}}) {
    for (const Kernel kernel : all_kernels()) plan.kernels.push_back({kernel, rows, 4096});
  }
  keep_unique(plan.matmuls);
  keep_unique(plan.attention);
  keep_unique(plan.kernels);
  for (int64_t bytes = full ? 64 * kKiB : kMiB; bytes <= 256 * kMiB; bytes *= full ? 2 : 4) {
    plan.copy_bytes.push_back(bytes);
    plan.message_bytes.push_back(bytes);
  }
  plan.time_limit_s = full ? 440 : 100;
  plan.burn_in_s = full ? 10 : 3;
  plan.sample_target_us = full ? 1000 : 500;
  plan.point_budget_us = full ? 40e3 : 20e3;
  plan.maximum_repetitions = full ? 25 : 15;
  return plan;
}

}  // namespace pipesim::calibration
