// The parts of a layer that are computed again for the backward: Megatron-LM's
// --recompute-granularity and --recompute-modules
// (megatron/core/transformer/transformer_config.py), and other frameworks' names for them.
//
// A module keeps its input from F on, and B runs its kernels again. The modules layernorm,
// mla_up_proj and the activations drop only their output. models/layer_memory.cc lists the tensors
// of each module, models/work_builder.cc the kernels that run again. Pure values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pipesim {

enum class RecomputeModule : std::uint8_t {
  kCoreAttention,  // attention between queries, keys, values and its output
  kMlp,            // a dense layer's MLP, from the output of its norm
  kMoe,            // router, exchange, experts and shared experts, from the output of the norm
  kMoeActivation,  // of the routed experts
  kLayerNorm,      // in front of attention and MLP
  kLatentUp,       // queries, keys and values from what latent attention compressed
  kSharedExperts,
  kMlpActivation,  // of MLP and shared experts (Kwai's --kaimm-recompute-mlp-activation-func)
  kLatentNorm,     // norms of what latent attention compressed
  kDropout,        // masks
  kMoeDispatch     // tokens go to the experts again (MindSpeed's --moe-zero-memory level0)
};
// In the order of the enumeration; the first kMegatronModules are Megatron-LM's.
inline constexpr std::array<std::string_view, 11> kRecomputeModules{
    "core_attn",      "mlp",     "moe",      "moe_act", "layernorm",   "mla_up_proj",
    "shared_experts", "mlp_act", "mla_norm", "dropout", "moe_dispatch"};
inline constexpr size_t kMegatronModules = 7;

// A set of modules, or the whole layer from its input (pass R).
class RecomputeGranularity {
 public:
  constexpr RecomputeGranularity() = default;
  constexpr RecomputeGranularity(RecomputeModule module)  // NOLINT(google-explicit-constructor)
      : bits_(static_cast<std::uint16_t>(1U << static_cast<unsigned>(module))) {}

  static const RecomputeGranularity kNone;
  static const RecomputeGranularity kSelective;  // core_attn
  // Parts without a matmul: the outputs of norms, activations and dropouts (PipeOffload, arXiv
  // 2503.01328, section 4.4).
  static const RecomputeGranularity kPointwise;
  static const RecomputeGranularity kFull;

  // True if some part is in both.
  [[nodiscard]] constexpr bool any(RecomputeGranularity of) const {
    return (bits_ & of.bits_) != 0;
  }
  // True if B runs modules again; false for kFull alone, whose passes are R.
  [[nodiscard]] constexpr bool of_modules() const { return (bits_ & ~kWhole) != 0; }

  friend constexpr RecomputeGranularity operator|(RecomputeGranularity a, RecomputeGranularity b) {
    return RecomputeGranularity(static_cast<std::uint16_t>(a.bits_ | b.bits_));
  }
  friend constexpr auto operator<=>(RecomputeGranularity, RecomputeGranularity) = default;

 private:
  static constexpr std::uint16_t kWhole = 1U << 15U;
  explicit constexpr RecomputeGranularity(std::uint16_t bits) : bits_(bits) {}
  static constexpr RecomputeGranularity whole() { return RecomputeGranularity(kWhole); }

  std::uint16_t bits_ = 0;
};

inline constexpr RecomputeGranularity RecomputeGranularity::kNone = {};
inline constexpr RecomputeGranularity RecomputeGranularity::kSelective =
    RecomputeModule::kCoreAttention;
inline constexpr RecomputeGranularity RecomputeGranularity::kPointwise =
    RecomputeGranularity(RecomputeModule::kLayerNorm) | RecomputeModule::kMlpActivation |
    RecomputeModule::kMoeActivation | RecomputeModule::kLatentNorm | RecomputeModule::kDropout;
inline constexpr RecomputeGranularity RecomputeGranularity::kFull = RecomputeGranularity::whole();

constexpr RecomputeGranularity operator|(RecomputeModule a, RecomputeModule b) {
  return RecomputeGranularity(a) | b;
}

// Which of a stage's layers are computed again; under kFull also from how many inputs.
struct RecomputedLayers {
  int first = 0;  // so many of each stage, from its first on (Megatron-LM's `block`); 0: all
  int every = 1;  // of these the last of every so many (torchtitan's selective option `2`)
  int group = 1;  // so many keep one input together, and are made again together (`uniform`)
  RecomputeGranularity others = {};  // modules that the other layers make again
  bool decoder = true;               // false: none but the encoder's
  std::optional<bool> encoder = {};  // its layers: all or none; without it as the others

  // True where the stage's layer of this number, from 0, is one of them.
  [[nodiscard]] constexpr bool has(int layer) const {
    return decoder && (first == 0 || layer < first) && (layer + 1) % every == 0;
  }
  // True where all behind the encoder are, MTP modules too.
  [[nodiscard]] constexpr bool all_behind() const { return decoder && first == 0 && every == 1; }
  [[nodiscard]] constexpr bool of_encoder() const { return encoder.value_or(all_behind()); }
  [[nodiscard]] constexpr bool all() const { return all_behind() && of_encoder(); }
  friend constexpr auto operator<=>(const RecomputedLayers&, const RecomputedLayers&) = default;
};

// The words for the granularities that have one.
inline constexpr std::array<std::string_view, 4> kRecomputeGranularities{"none", "selective",
                                                                         "pointwise", "full"};

// One of these words, or names of modules joined by '+', in the order of the enumeration.
std::string to_text(RecomputeGranularity granularity);
// Reads the text of to_text, modules in any order; nothing where a word is none.
std::optional<RecomputeGranularity> recompute_from(std::string_view text);

}  // namespace pipesim
