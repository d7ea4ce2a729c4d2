// Bodies of the kernels that treat a matrix element by element, a pack of eight at a time.
//
// Arithmetic is fp32. GELU is the tanh approximation that transformer frameworks fuse; SwiGLU is
// silu(gate) x up. Dropout draws from a counter-based generator, so that a mask depends on the seed
// and the element alone; it stores its mask, one byte per element. Adam is the decoupled form
// (AdamW) with fp32 master weights and a bf16 copy. Source: the operations' definitions.
#pragma once

#include <cmath>
#include <cstdint>

#include "validate/calibration/harness/bfloat16.h"
#include "validate/calibration/harness/rows.h"

namespace pipesim::calibration {

inline constexpr float kGeluRoot = 0.7978845608F;  // sqrt(2 / pi)
inline constexpr float kGeluCubic = 0.044715F;

PIPESIM_HD inline float gelu(float x) {
  return 0.5F * x * (1.0F + tanhf(kGeluRoot * (x + kGeluCubic * x * x * x)));
}

PIPESIM_HD inline float gelu_slope(float x) {
  const float t = tanhf(kGeluRoot * (x + kGeluCubic * x * x * x));
  return 0.5F * (1.0F + t) +
         0.5F * x * (1.0F - t * t) * kGeluRoot * (1.0F + 3.0F * kGeluCubic * x * x);
}

PIPESIM_HD inline float sigmoid(float x) { return 1.0F / (1.0F + exponential(-x)); }

PIPESIM_HD inline Pack add(const Pack& a, const Pack& b) {
  Pack out;
  for (int i = 0; i < kPack; ++i) out.item[i] = Bfloat16::of(a.item[i].value() + b.item[i].value());
  return out;
}

PIPESIM_HD inline Pack gelu_forward(const Pack& x) {
  Pack out;
  for (int i = 0; i < kPack; ++i) out.item[i] = Bfloat16::of(gelu(x.item[i].value()));
  return out;
}

PIPESIM_HD inline Pack gelu_backward(const Pack& x, const Pack& dy) {
  Pack out;
  for (int i = 0; i < kPack; ++i) {
    out.item[i] = Bfloat16::of(dy.item[i].value() * gelu_slope(x.item[i].value()));
  }
  return out;
}

PIPESIM_HD inline Pack swiglu_forward(const Pack& gate, const Pack& up) {
  Pack out;
  for (int i = 0; i < kPack; ++i) {
    const float g = gate.item[i].value();
    out.item[i] = Bfloat16::of(g * sigmoid(g) * up.item[i].value());
  }
  return out;
}

struct GatedGradient {
  Pack gate, up;
};

PIPESIM_HD inline GatedGradient swiglu_backward(const Pack& gate, const Pack& up, const Pack& dy) {
  GatedGradient out;
  for (int i = 0; i < kPack; ++i) {
    const float g = gate.item[i].value();
    const float s = sigmoid(g);
    const float d = dy.item[i].value();
    out.up.item[i] = Bfloat16::of(d * g * s);
    out.gate.item[i] = Bfloat16::of(d * up.item[i].value() * s * (1.0F + g * (1.0F - s)));
  }
  return out;
}

// 32 bits that depend on the seed and the counter alone: two rounds of a 64-bit mixer.
PIPESIM_HD inline uint32_t random_bits(uint64_t seed, uint64_t counter) {
  uint64_t z = seed + (counter + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return static_cast<uint32_t>((z ^ (z >> 31)) >> 32);
}

struct alignas(8) MaskPack {
  uint8_t keep[kPack];
};

struct Dropout {
  uint64_t seed;
  float probability;

  PIPESIM_HD bool keeps(uint64_t element) const {
    return static_cast<float>(random_bits(seed, element) >> 8) * 0x1p-24F >= probability;
  }
  PIPESIM_HD float scale() const { return 1.0F / (1.0F - probability); }
};

// y = dropout(x) + residual.
PIPESIM_HD inline Pack dropout_add_forward(const Dropout& dropout, const Pack& x,
                                           const Pack& residual, uint64_t first_element,
                                           MaskPack& mask) {
  Pack out;
  for (int i = 0; i < kPack; ++i) {
    const bool keep = dropout.keeps(first_element + static_cast<uint64_t>(i));
    mask.keep[i] = keep ? 1 : 0;
    const float dropped = keep ? x.item[i].value() * dropout.scale() : 0.0F;
    out.item[i] = Bfloat16::of(dropped + residual.item[i].value());
  }
  return out;
}

PIPESIM_HD inline Pack dropout_backward(const Dropout& dropout, const Pack& dy,
                                        const MaskPack& mask) {
  Pack out;
  for (int i = 0; i < kPack; ++i) {
    out.item[i] = Bfloat16::of(mask.keep[i] != 0 ? dy.item[i].value() * dropout.scale() : 0.0F);
  }
  return out;
}

struct AdamSettings {
  float rate = 1e-4F;
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float epsilon = 1e-8F;
  float decay = 0.1F;
  float correction1 = 1.0F;  // 1 - beta1^step
  float correction2 = 1.0F;  // 1 - beta2^step
};

struct AdamState {
  float weight, first, second;
};

PIPESIM_HD inline AdamState adam_step(const AdamSettings& settings, AdamState state,
                                      float gradient) {
  state.first = settings.beta1 * state.first + (1.0F - settings.beta1) * gradient;
  state.second = settings.beta2 * state.second + (1.0F - settings.beta2) * gradient * gradient;
  const float step = (state.first / settings.correction1) /
                     (sqrtf(state.second / settings.correction2) + settings.epsilon);
  state.weight -= settings.rate * (step + settings.decay * state.weight);
  return state;
}

}  // namespace pipesim::calibration
