#include "validate/calibration/compose.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace pipesim::calibration {
namespace {

MatmulPass matmul_pass(char pass) {
  switch (pass) {
    case 'F':
      return MatmulPass::kForward;
    case 'B':
      return MatmulPass::kInputGradient;
    case 'W':
      return MatmulPass::kWeightGradient;
    default:
      throw std::invalid_argument(std::string("unknown pass '") + pass + "'");
  }
}

void append_matmuls(std::vector<std::string>& keys, const std::vector<MatmulSpec>& matmuls,
                    char pass) {
  for (const MatmulSpec& spec : matmuls) {
    if (spec.pass == matmul_pass(pass)) keys.push_back(point_of(spec).key());
  }
}

Composition compose(const Measurements& measured, Point point,
                    const std::vector<std::string>& keys) {
  Composition result{std::move(point), {}};
  Point& total = result.point;
  for (const std::string& key : keys) {
    const Point* part = measured.find(key);
    if (part == nullptr) {
      result.missing.push_back(key);
      continue;
    }
    total.flops += part->flops;
    total.time_us.median += part->time_us.median;
    total.time_us.p10 += part->time_us.p10;
    total.time_us.p90 += part->time_us.p90;
    total.time_us.minimum += part->time_us.minimum;
    total.time_us.repetitions =
        total.time_us.repetitions == 0
            ? part->time_us.repetitions
            : std::min(total.time_us.repetitions, part->time_us.repetitions);
  }
  return result;
}

}  // namespace

std::vector<std::string> layer_parts(const LayerSlice& slice, char pass) {
  std::vector<std::string> keys;
  append_matmuls(keys, layer_matmuls(slice, Precision::kBf16), pass);
  if (pass == 'F') keys.push_back(point_of(slice.attention(), false).key());
  if (pass == 'B') keys.push_back(point_of(slice.attention(), true).key());
  for (const KernelSpec& spec : layer_kernels(slice, pass)) keys.push_back(point_of(spec).key());
  return keys;
}

std::vector<std::string> vocabulary_parts(const LayerSlice& slice, char pass) {
  std::vector<std::string> keys;
  append_matmuls(keys, vocabulary_matmuls(slice, Precision::kBf16), pass);
  const auto loss = [&](Kernel kernel) {
    keys.push_back(point_of(KernelSpec{kernel, slice.tokens(), slice.vocabulary_out()}).key());
  };
  if (pass == 'F') loss(Kernel::kCrossEntropyForward);
  if (pass == 'B') loss(Kernel::kCrossEntropyBackward);
  return keys;
}

Composition compose_layer(const Measurements& measured, const LayerSlice& slice, char pass) {
  return compose(measured, point_of(slice, "layer_composed", pass), layer_parts(slice, pass));
}

Composition compose_vocabulary(const Measurements& measured, const LayerSlice& slice, char pass) {
  return compose(measured, point_of(slice, "vocabulary_composed", pass),
                 vocabulary_parts(slice, pass));
}

}  // namespace pipesim::calibration
