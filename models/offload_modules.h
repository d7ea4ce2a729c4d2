// Which tensors of a layer wait on the host from F to B: Megatron-Core's --offload-modules
// (--fine-grained-activation-offloading, megatron/core/transformer/transformer_config.py).
//
// A module offloads its input. Which kept tensor that is says models/layer_memory.cc. Pure values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace pipesim {

enum class OffloadModule : std::uint8_t {
  kAttentionNorm,
  kQkvLinear,      // queries, keys and values, or what latent attention compresses
  kCoreAttention,  // queries, keys and values themselves
  kAttentionProjection,
  kMlpNorm,
  kExpertFc1,  // of the routed experts
  kMoeActivation
};
// In the order of the enumeration.
inline constexpr std::array<std::string_view, 7> kOffloadModules{
    "attn_norm", "qkv_linear", "core_attn", "attn_proj", "mlp_norm", "expert_fc1", "moe_act"};

class OffloadModules {
 public:
  constexpr OffloadModules() = default;
  constexpr OffloadModules(OffloadModule module)  // NOLINT(google-explicit-constructor)
      : bits_(static_cast<std::uint8_t>(1U << static_cast<unsigned>(module))) {}

  [[nodiscard]] constexpr bool any() const { return bits_ != 0; }
  [[nodiscard]] constexpr bool any(OffloadModules of) const { return (bits_ & of.bits_) != 0; }

  friend constexpr OffloadModules operator|(OffloadModules a, OffloadModules b) {
    OffloadModules both;
    both.bits_ = static_cast<std::uint8_t>(a.bits_ | b.bits_);
    return both;
  }
  friend constexpr bool operator==(OffloadModules, OffloadModules) = default;

 private:
  std::uint8_t bits_ = 0;
};

constexpr OffloadModules operator|(OffloadModule a, OffloadModule b) {
  return OffloadModules(a) | OffloadModules(b);
}

// Names in the order of the enumeration, joined by `between`.
inline std::string to_text(OffloadModules modules, std::string_view between) {
  std::string text;
  for (size_t i = 0; i < kOffloadModules.size(); ++i) {
    if (!modules.any(static_cast<OffloadModule>(i))) continue;
    if (!text.empty()) text += between;
    text += kOffloadModules[i];
  }
  return text;
}

}  // namespace pipesim
