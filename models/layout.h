// Which layers stand on which stage of a pipeline.
//
// The order of layers is embedding, decoder layers, MTP modules, output. A stage holds consecutive
// ones, and may hold none; a decoder layer's number gives its kind. The words are Megatron-LM's
// (megatron/training/arguments.py, megatron/core/transformer). Layers are split evenly over the
// devices; the first and last may take another number, or count the embedding and the loss as a
// layer. A list of layers per stage, or a string such as `Et*3|(tt|)*29m|L`, sets any other split.
// An impossible split is an InfeasibleError that says why. Pure values; stages are those of the
// model, in forward order (Placement::model_stage).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/recompute.h"
#include "models/transformer.h"
#include "sim/core/units.h"
#include "sim/pipeline/placement.h"

namespace pipesim {

struct StageLayers {
  int first = 0;   // number of the first decoder layer
  int layers = 0;  // decoder layers
  int mtp = 0;     // MTP modules
  bool embedding = false;
  bool output = false;

  friend bool operator==(const StageLayers&, const StageLayers&) = default;
};

struct Layout {
  std::vector<StageLayers> stages;

  friend bool operator==(const Layout&, const Layout&) = default;
};

// True where the stage's layers are the first that decode, which embed what they decode.
bool embeds_again(const Transformer& model, const StageLayers& stage);
// True where the stage hands on what it decodes, and with it the encoder's output.
bool decodes(const Transformer& model, const StageLayers& stage);
// Why the pipeline cannot run these stages; empty where it can. One that encodes and decodes has a
// stage a device, and none does both (Megatron-LM's get_model). `several`: a device has several.
std::string fault_of(const Transformer& model, const Layout& layout, bool several);

// Layers on the stage, by kind: an encoder's layers with the embedding. O(1), with a pattern
// O(layers).
KindCounts count_layers(const Transformer& model, const StageLayers& stage);

// Decoder layers and MTP modules in the order in which they run. O(layers).
std::vector<LayerKind> layer_kinds(const Transformer& model, const StageLayers& stage);

// Layers of a stage that full recomputation makes again. MTP modules are among them only where all
// layers are, the encoder's where these are or it is named. O(layers), O(1) where it makes all
// again.
KindCounts count_recomputed(const Transformer& model, const StageLayers& stage,
                            const RecomputedLayers& layers);

// Layers on a device, by chunk. O(chunks).
std::vector<StageLayers> stages_of(const Layout& layout, const Placement& placement, int device);

// True if both hold layers of the same kinds in the same order: equal times and bytes.
bool same_kinds(const Transformer& model, const StageLayers& a, const StageLayers& b);
// Likewise two devices, chunk by chunk.
bool same_kinds(const Transformer& model, const Layout& layout, const Placement& placement, int a,
                int b);

// How an even split departs from equal numbers.
struct EvenSplit {
  // decoder_first_pipeline_num_layers and decoder_last_pipeline_num_layers: of the first and of the
  // last device, shared by their chunks; the other devices share the rest.
  std::optional<int> first_device = {};
  std::optional<int> last_device = {};
  // account_for_embedding_in_pipeline_split and account_for_loss_in_pipeline_split: they count as a
  // layer.
  bool count_embedding = false;
  bool count_loss = false;
};

// MTP modules stand with the output, on the last stage.
Layout even_layout(const Transformer& model, const Placement& placement, const EvenSplit& split);

// Decoder layers of every stage in forward order.
Layout listed_layout(const Transformer& model, std::span<const int> layers_of_stage);

// `text` as pipeline_model_parallel_layout: E embedding, t decoder layer, m MTP module, L loss. `|`
// ends a stage, commas mean nothing; `x*n` repeats a letter (or a bar), `(...)*n` the text between.
// Read in forward order, as Megatron does for looped placements.
Layout parse_megatron_layout(const Transformer& model, std::string_view text);
// The same, written shortly; parse_megatron_layout reads back what was written.
std::string to_megatron_layout(const Layout& layout);

// Seconds that a microbatch takes in one layer, all its passes together. Layers of a pattern weigh
// their mean. An MTP module's include those of its own logits, the embedding's those of an encoder.
struct LayerSeconds {
  Seconds embedding = {};
  Seconds dense = {};  // layers before the first that may have experts
  Seconds moe = {};    // those from there on
  Seconds mtp = {};    // of one module
  Seconds output = {};
};
// From those of each kind, by number of the kind.
LayerSeconds layer_seconds(const Transformer& model, const EnumArray<LayerKind, Seconds>& of);
Seconds stage_seconds(const Transformer& model, const StageLayers& stage,
                      const LayerSeconds& seconds);

// True if a stage fits on its device; empty: all do.
using StageFits = std::function<bool(int stage, const StageLayers& layers)>;

// Among all splits over `stages` stages that fit, one with the least maximal stage time. Ties: the
// least sum of squared stage times. models/balance.h defines the splits, and balances several
// stages a device. A stage that has room for some layers has it for fewer.
Layout balance(const Transformer& model, int stages, const LayerSeconds& seconds,
               const StageFits& fits = {});

}  // namespace pipesim
