#include "models/layer_context.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "models/traced.h"

namespace pipesim {
namespace {

struct Division {
  const char* what;
  long size;
  const char* by;
  long ranks;
};

std::string fault_of(const Division& division) {
  if (division.size % division.ranks == 0) return "";
  return fmt::format("{} {} does not divide by {} {}", division.what, division.size, division.by,
                     division.ranks);
}

std::string fault_of_experts(const Experts& experts, const LayerContext& context) {
  if (context.tensor > 1 && !context.sequence_parallel) {
    return "mixture of experts with tensor parallelism needs sequence_parallel";
  }
  const std::array<Division, 2> divisions{{
      {"num_experts", experts.num_experts, "expert_model_parallel_size", context.expert},
      {"the experts' ffn_hidden_size", experts.ffn_hidden_size, "expert_tensor_parallel_size",
       context.expert_tensor},
  }};
  for (const Division& division : divisions) {
    if (auto fault = fault_of(division); !fault.empty()) return fault;
  }
  return "";
}

std::string fault_of_linear(const LinearAttention& linear, const LayerContext& context) {
  if (context.context > 1) {
    return linear.kind == LinearAttention::Kind::kShortConv
               ? "context parallelism of a convolution, which hands its last tokens on, is not "
                 "modelled"
               : "context parallelism of linear attention, which hands a state on, is not modelled";
  }
  const bool channels = linear.kind == LinearAttention::Kind::kMamba1;  // of one state for all
  return fault_of({channels ? "linear_attention.num_heads" : "linear_attention.key_heads",
                   channels ? linear.num_heads : linear.key_heads, "tensor_model_parallel_size",
                   context.tensor});
}

// Keys are whole on every rank.
std::string fault_of_compressed(const CompressedAttention& compressed,
                                const LayerContext& context) {
  if (context.context > 1) {
    return "context parallelism of compressed attention, whose stretches cross ranks, is not "
           "modelled";
  }
  return fault_of({"compressed_attention.output_groups", compressed.output_groups,
                   "tensor_model_parallel_size", context.tensor});
}

long key_heads(const Transformer& model) {
  const bool one = model.latent || model.compressed;  // compressed, whole on every rank
  return one ? model.num_attention_heads : model.num_query_groups;
}

// Heads of layers that exchange alike, and their keys in a scenario.
struct NamedHeads {
  long queries, keys;
  const char* name_of_queries = "num_attention_heads";
  const char* name_of_keys = "num_query_groups";
};

NamedHeads heads_of_windows(const Transformer& model) {
  if (const auto& own = model.window_heads) {
    return {own->num_attention_heads, own->num_query_groups, "window_attention.num_attention_heads",
            "window_attention.num_query_groups"};
  }
  return {model.num_attention_heads, key_heads(model)};
}

// Rules of Transformer Engine (attn_forward_func_with_cp) and, for sizes, of Megatron-LM, for
// layers that exchange alike.
std::string fault_of_exchange(const LayerContext& context, const NamedHeads& own, bool windows) {
  if (context.context == 1 || context.exchange == ContextExchange::kAllGather) return "";
  const std::string_view name = to_text(context.exchange);
  if (!context.flash_attention) {
    return fmt::format("cp_comm_type {} needs flash_attention, or cp_comm_type all_gather", name);
  }
  const auto [heads, ring] = context.hierarchy;
  if (context.exchange == ContextExchange::kHeadsAndRing && 1L * heads * ring != context.context) {
    return fmt::format(
        "hierarchical_context_parallel_sizes {} x {} do not make context_parallel_size {}", heads,
        ring, context.context);
  }
  if (ring_ranks(context) > 1 && windows) {
    return fmt::format(
        "cp_comm_type {} knows no windows and no sparse attention: use all_gather or a2a", name);
  }
  const long ranks = 1L * context.tensor * head_ranks(context);
  const char* by = "tensor x context ranks that divide heads (cp_comm_type)";
  const std::array<Division, 2> divisions{{
      {own.name_of_queries, own.queries, by, ranks},
      {own.name_of_keys, context.repeats_keys ? ranks : own.keys, by, ranks},
  }};
  for (const Division& division : divisions) {
    if (auto fault = fault_of(division); !fault.empty()) return fault;
  }
  return "";
}

std::string fault_of_exchange(const Transformer& model, const LayerContext& context) {
  const bool sparse = model.sparse.has_value();
  const bool partial = sparse || model.attention_window > 0;
  const bool one_kind = !context.window_exchange;
  const NamedHeads heads{model.num_attention_heads, key_heads(model)};
  std::string fault = fault_of_exchange(context, heads, one_kind ? partial : sparse);
  if (!fault.empty() || (one_kind && !model.window_heads)) return fault;
  const LayerContext own = context_of(LayerKind::kWindowDense, model, context);
  return fault_of_exchange(own, heads_of_windows(model), true);
}

std::string fault_of_encoder(const Transformer& model, const LayerContext& context) {
  const Encoder& encoder = *model.encoder;
  if (encoder_tokens(encoder) / encoder.merged > context.seq_length) {
    return fmt::format("{} tokens of images do not go into seq_length {}",
                       encoder_tokens(encoder) / encoder.merged, context.seq_length);
  }
  if (encoder.replicated) return "";
  const char* tensor = "tensor_model_parallel_size";
  const long parts = context.sequence_parallel ? context.tensor : 1;
  const std::array<Division, 3> divisions{{
      {"encoder.num_attention_heads", encoder.num_attention_heads, tensor, context.tensor},
      {"encoder.ffn_hidden_size", encoder.ffn_hidden_size, tensor, context.tensor},
      {"encoder.patches", encoder.patches, "tensor_model_parallel_size", parts},
  }};
  for (const Division& division : divisions) {
    if (auto fault = fault_of(division); !fault.empty()) return fault;
  }
  return "";
}

std::string fault_of_cross(const CrossAttention& cross, const LayerContext& context) {
  if (context.context > 1) return "context parallelism of cross attention is not modelled";
  if (!context.documents.empty() || context.whole > 0) {
    return "cross attention between parts of sequences is not modelled";
  }
  if (context.vocabulary_devices > 0) {
    return "two embeddings and an output leave no shares of a vocabulary to other devices";
  }
  return fault_of({"cross_attention.decoder_seq_length", cross.decoder_seq_length,
                   "tensor_model_parallel_size", context.sequence_parallel ? context.tensor : 1});
}

std::string fault_of_setting(const LayerContext& context) {
  if (context.context > 1) {
    return "context parallelism of a traced model is not modelled: its trace does not say how "
           "ranks exchange a sequence";
  }
  if (is_quantized(context.precision)) {
    return "a traced model runs in bf16, fp16 or fp32: its trace does not say which kernels would "
           "run in 8 or 4 bits";
  }
  if (context.recompute.of_modules() || context.recomputed_layers.others.of_modules()) {
    return "a traced model is recomputed in full or not at all: its trace has no modules by name";
  }
  if (context.offloaded.any()) {
    return "modules of a traced model cannot be offloaded: its trace has none by name";
  }
  if (context.adapter_rank > 0) {
    return "adapters (lora_rank) of a traced model are not modelled: trace the model with its "
           "adapters";
  }
  if (context.fp8_dispatch || context.fp8_combine_gradient) {
    return "tokens in fp8 between experts are not modelled for a traced model";
  }
  return "";
}

bool divides(int ranks, double number) { return std::fmod(number, ranks) == 0; }

// Ranks divide the constant of a side: of sequences times heads, the heads.
std::string fault_of_matmul(const TracedMatmul& matmul, const LayerContext& context) {
  if (matmul.experts && !divides(context.expert, matmul.sides.front().factor)) {
    return fmt::format("{} of {} experts does not divide by expert_model_parallel_size {}",
                       matmul.name, matmul.sides.front().factor, context.expert);
  }
  if (matmul.divided == TracedSide::kNone) return "";
  const int ranks = matmul.experts ? context.expert_tensor : context.tensor;
  const double number = matmul.sides[static_cast<size_t>(matmul.divided)].factor;
  if (divides(ranks, number)) return "";
  return fmt::format("{}, {} wide, does not divide by {} {}", matmul.name, number,
                     matmul.experts ? "expert_tensor_parallel_size" : "tensor_model_parallel_size",
                     ranks);
}

std::string fault_of_block(const TracedBlock& block, const LayerContext& context) {
  for (const TracedHeads& heads : block.heads) {
    if (divides(context.tensor, static_cast<double>(heads.number))) continue;
    return fmt::format("{} heads of {} in {} do not divide by tensor_model_parallel_size {}",
                       heads.number, heads.name, block.name, context.tensor);
  }
  for (const TracedMatmul& matmul : block.forward.matmuls) {
    if (std::string fault = fault_of_matmul(matmul, context); !fault.empty()) return fault;
  }
  return "";
}

// True if some size has the square of the sequence, as scores of attention that is not fused.
bool has_square_sizes(const Traced& traced) {
  const auto is_square = [](const TracedTensor& tensor) { return tensor.elements.seq > 1; };
  return std::ranges::any_of(traced.blocks, [&](const TracedBlock& block) {
    return std::ranges::any_of(block.forward.moved, is_square) ||
           std::ranges::any_of(block.backward_input.moved, is_square);
  });
}

std::string fault_of_lengths(const Traced& traced, const LayerContext& context) {
  const bool divided = context.whole > 0;
  const int tokens = divided ? context.whole : context.seq_length;
  if (tokens < traced.least_tokens || tokens > traced.most_tokens) {
    return fmt::format(
        "seq_length {} is outside of the {} to {} tokens that the model was traced for: trace it "
        "for sequences of this length",
        tokens, traced.least_tokens, traced.most_tokens);
  }
  return divided && has_square_sizes(traced)
             ? "its attention makes all scores: documents and slices of a sequence need a model "
               "that calls scaled_dot_product_attention"
             : "";
}

std::string fault_of_traced(const Traced& traced, const LayerContext& context) {
  for (std::string fault : {fault_of_setting(context), fault_of_lengths(traced, context)}) {
    if (!fault.empty()) return fault;
  }
  for (const TracedBlock& block : traced.blocks) {
    if (std::string fault = fault_of_block(block, context); !fault.empty()) return fault;
  }
  const bool divided = std::ranges::any_of(
      traced.blocks, [](const TracedBlock& block) { return block.parameters.tensor > 0; });
  if (context.tensor > 1 && !divided) {
    return "tensor ranks divide no matrix of the traced model: trace it with the names of those "
           "that they do";
  }
  return "";
}

std::string fault_of_parts(const Transformer& model, const LayerContext& context) {
  if (model.traced) {
    if (auto fault = fault_of_traced(*model.traced, context); !fault.empty()) return fault;
  }
  if (model.linear) {
    if (auto fault = fault_of_linear(*model.linear, context); !fault.empty()) return fault;
  }
  if (model.compressed) {
    if (auto fault = fault_of_compressed(*model.compressed, context); !fault.empty()) return fault;
  }
  if (model.cross) {
    if (auto fault = fault_of_cross(*model.cross, context); !fault.empty()) return fault;
  }
  if (auto fault = fault_of_exchange(model, context); !fault.empty()) return fault;
  return model.encoder ? fault_of_encoder(model, context) : "";
}

}  // namespace

LayerContext context_of(LayerKind kind, const Transformer& model, const LayerContext& context) {
  LayerContext own = context;
  own.window_exchange.reset();
  if (model.cross && context.encoded == 0) {
    own.encoded = context.seq_length;
    const int decoded = model.cross->decoder_seq_length;
    const bool encodes = kind == LayerKind::kBothWays || kind == LayerKind::kEmbedding;
    if (!encodes && decoded > 0) own.seq_length = decoded;
    if (kind == LayerKind::kBothWays) own.causal = false;
  }
  if (!is_layer(kind) || kind == LayerKind::kEncoder) return own;
  const LayerKind layer = kind == LayerKind::kMtp ? mtp_layer_kind(model) : kind;
  const bool sees_window = mixer_of(layer) == Mixer::kWindow;
  if (sees_window && context.window_exchange) own.exchange = *context.window_exchange;
  return own;
}

std::vector<ContextExchange> exchanges_of_layers(const Transformer& model,
                                                 const LayerContext& context) {
  std::vector<ContextExchange> exchanges;
  for (int layer = 0; layer < model.num_layers; ++layer) {
    exchanges.push_back(context_of(layer_kind(model, layer), model, context).exchange);
  }
  return exchanges;
}

int head_ranks(const LayerContext& context) {
  if (context.context == 1) return 1;
  if (context.exchange == ContextExchange::kHeads) return context.context;
  return context.exchange == ContextExchange::kHeadsAndRing ? context.hierarchy.front() : 1;
}

Heads attending_heads(const Transformer& model, Mixer mixer, const LayerContext& context) {
  Heads heads = heads_of(model, mixer == Mixer::kSharedKeys ? Mixer::kAttention : mixer);
  if (context.repeats_keys && head_ranks(context) > 1) heads.groups = heads.queries;
  return heads;
}

int ring_ranks(const LayerContext& context) {
  const bool gathers = context.exchange == ContextExchange::kAllGather;
  return gathers ? 1 : sequence_ranks(context);
}

double attended_pairs(const Transformer& model, Mixer mixer, const LayerContext& context) {
  if (mixer == Mixer::kCross) return layer_tokens(context) * context.encoded;
  if (context.documents.empty() && context.whole == 0) {
    return layer_tokens(context) * mean_keys(model, mixer, context.seq_length, context.causal);
  }
  const std::span<const int> documents =
      context.documents.empty() ? std::span(&context.whole, 1) : context.documents;
  const double begin = context.before;
  const double end = begin + context.seq_length;
  double pairs = 0;
  double before = 0;  // tokens of earlier documents
  for (const int document : documents) {
    // Pairs of a document's first tokens. Causal attention does not see the tokens behind them.
    const auto of_first = [&](double first) {
      const int most =
          static_cast<int>(std::lround(std::clamp(first - before, 0.0, 1.0 * document)));
      return most == 0
                 ? 0
                 : most * mean_keys(model, mixer, context.causal ? most : document, context.causal);
    };
    pairs += of_first(end) - of_first(begin);
    before += document;
  }
  return context.micro_batch_size * pairs / context.context;
}

int images_of(const Transformer& model, const LayerContext& context) {
  return context.images.value_or(context.micro_batch_size * model.encoder->images);
}

LayerContext encoder_context(const Transformer& model, const LayerContext& context) {
  LayerContext own = context;
  own.micro_batch_size = images_of(model, context);
  own.seq_length = model.encoder->patches;
  own.context = 1;
  own.exchange = ContextExchange::kAllGather;
  own.window_exchange.reset();
  own.expert = 1;
  own.expert_tensor = 1;
  own.causal = false;
  own.frozen = false;
  if (model.encoder->frozen) own.adapter_rank = 0;
  if (model.encoder->replicated) {
    own.tensor = 1;
    own.sequence_parallel = false;
  }
  own.documents = {};
  own.before = 0;
  own.whole = 0;
  return own;
}

namespace {

// Heads and MLPs that are not those of all layers.
std::string fault_of_sizes(const Transformer& model, const LayerContext& context) {
  const char* tensor = "tensor_model_parallel_size";
  for (const int size : model.mlp_sizes) {
    const Division division{"a size of mlp_sizes,", size, tensor, context.tensor};
    if (auto fault = fault_of(division); !fault.empty()) return fault;
  }
  const auto& own = model.window_heads;
  if (!own) return "";
  const std::array<Division, 2> of_windows{{
      {"window_attention.num_attention_heads", own->num_attention_heads, tensor, context.tensor},
      {"window_attention.num_query_groups", own->num_query_groups, tensor, context.tensor},
  }};
  for (const Division& division : of_windows) {
    if (auto fault = fault_of(division); !fault.empty()) return fault;
  }
  return "";
}

}  // namespace

std::string fault_of(const Transformer& model, const LayerContext& context) {
  const char* tensor = "tensor_model_parallel_size";
  const long groups = key_heads(model);
  // Causal attention gives each context rank a chunk from the front and one from the back.
  const long chunks = context.context > 1 ? 2L * context.context : 1;
  const long parts = context.sequence_parallel ? context.tensor : 1;
  const std::array<Division, 5> divisions{{
      {"num_attention_heads", model.num_attention_heads, tensor, context.tensor},
      {"num_query_groups", groups, tensor, context.tensor},
      {"ffn_hidden_size", model.ffn_hidden_size, tensor, context.tensor},
      {"seq_length", context.seq_length, "2 x context_parallel_size", chunks},
      {"seq_length", context.seq_length, "context x tensor parallel size", parts * context.context},
  }};
  if (std::string fault = fault_of_sizes(model, context); !fault.empty()) return fault;
  if (context.vocabulary_devices > 0 && model.mtp_layers > 0) {
    return "MTP modules make logits where they stand, so that no other device can hold a share of "
           "the vocabulary";
  }
  if (context.seq_length < 1 || context.micro_batch_size < 1) {
    return "a layer needs seq_length and micro_batch_size";
  }
  for (const Division& division : divisions) {
    if (auto fault = fault_of(division); !fault.empty()) return fault;
  }
  if (std::string fault = fault_of_parts(model, context); !fault.empty()) return fault;
  return model.experts ? fault_of_experts(*model.experts, context) : "";
}

}  // namespace pipesim
