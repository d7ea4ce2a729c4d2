#include "sim/interop/frameworks/encoder_decoder.h"

#include <fmt/format.h>

namespace pipesim {
namespace {

// Stages that encode: the first that decodes, in releases from 0.9 on a size beside the others.
long encoding_stages(Settings& settings, MegatronSizes& sizes) {
  const auto first = settings.number({"pipeline_model_parallel_split_rank"});
  const auto beside = settings.number({"encoder_pipeline_model_parallel_size"});
  if (beside.value_or(0) == 0) return first.value_or(0);
  sizes.pipeline += *beside;
  return *beside;
}

std::optional<long> decoded_tokens(Settings& settings) {
  return settings.number({"decoder_seq_length", "seq_length_dec"}, 1);
}

// NeMo's choices of layers, of which one is known, and its embeddings.
void stop_at_parts(Settings& settings, Draft& draft) {
  for (const auto& [name, usual] :
       {std::pair("arch", "transformer"), {"transformer_block_type", "pre_ln"}}) {
    const std::string said = settings.text({name}).value_or(usual);
    if (said != usual) not_understood(draft, name, fmt::format("{} {}", name, said));
  }
  // Sizes of another `arch`.
  (void)settings.find({"hidden_steps", "num_self_attention_per_cross_attention"});
  if (settings.is_set({"headscale"})) not_understood(draft, "headscale", "headscale true");
  if (!settings.flag({"share_token_embeddings"}).value_or(true)) {
    not_understood(draft, "share_token_embeddings",
                   "share_token_embeddings false: what is encoded and decoded has one embedding");
  }
  (void)settings.find({"share_decoder_tokens_head_embeddings"});
  if (settings.flag({"tokens_head_bias"}).value_or(true)) {
    draft.not_modelled.emplace_back("the output's bias, a number for each of the vocabulary");
  }
}

void stop_at_interleaving(Settings& settings, Draft& draft) {
  const auto chunks = settings.number(
      {"virtual_pipeline_model_parallel_size", "num_virtual_stages_per_pipeline_rank"});
  const auto layers = settings.number({"num_layers_per_virtual_pipeline_stage"});
  if (chunks.value_or(1) <= 1 && !layers) return;
  not_understood(draft, "virtual_pipeline_model_parallel_size",
                 "several stages a device, which Megatron-LM refuses of a model that encodes and "
                 "decodes");
}

// Adds as many layers to each of the stages. Stops where they do not divide.
void add_stages(long layers, long stages, const char* part, MegatronSizes& sizes, Draft& draft) {
  if (layers % stages != 0) {
    not_understood(draft, "pipeline_model_parallel_split_rank",
                   fmt::format("{} layers of the {} in {} stages", layers, part, stages));
    return;
  }
  sizes.layers_of_stage.insert(sizes.layers_of_stage.end(), stages, layers / stages);
}

}  // namespace

bool encodes_and_decodes(const Settings& settings) {
  if (settings.has("language_model_type")) return false;  // an encoder of images
  const std::string program = settings.seen("program").value_or("");
  if (program.find("gpt") != std::string::npos) return false;
  const std::string name = settings.seen("name").value_or("");
  for (const char* const kind : {"megatron_t5", "megatron_ul2", "megatron_bart"}) {
    if (name.starts_with(kind)) return true;
  }
  const std::string split = settings.seen("pipeline_model_parallel_split_rank").value_or("0");
  return program.find("pretrain_t5") != std::string::npos || split != "0" ||
         settings.seen("decoder_num_layers") ||
         settings.seen("share_decoder_tokens_head_embeddings");
}

std::optional<long> put_encoder_decoder(Settings& settings, MegatronSizes& sizes, Draft& draft) {
  (void)settings.text({"program"});
  auto encoder = settings.number({"encoder_num_layers", "num_layers"}, 1);
  // Before 0.5 both have as many.
  const auto decoder = settings.number({"decoder_num_layers"}, 1);
  // A size that is asked for stands as 1, so that the rest is asked for as well.
  if (!encoder && (settings.asks("encoder_num_layers") || settings.asks("num_layers"))) encoder = 1;
  const auto tokens = decoded_tokens(settings);
  stop_at_parts(settings, draft);
  if (!encoder) return std::nullopt;
  sizes.encoder_layers = *encoder;
  put(draft.model, "cross_attention.encoder_layers", *encoder);
  if (!decoder) draft.notes.emplace_back("as many layers decode as encode");
  if (tokens) {
    put(draft.model, "cross_attention.decoder_seq_length", *tokens);
  } else {
    draft.missing.emplace_back("the tokens that are decoded: decoder_seq_length=N");
  }
  return *encoder + decoder.value_or(*encoder);
}

void put_decoded_tokens(Settings& settings, const Transformer& model, Draft& draft) {
  (void)settings.text({"program"});
  const auto tokens = decoded_tokens(settings);
  if (!tokens || *tokens == model.cross->decoder_seq_length) return;
  put(draft.model, "base", model.name);
  put(draft.model, "cross_attention.decoder_seq_length", *tokens);
  draft.model_name.clear();
}

void divide_stages(Settings& settings, MegatronSizes& sizes, Draft& draft) {
  if (sizes.encoder_layers == 0) return;
  const long tensor = settings.number({"encoder_tensor_model_parallel_size"}).value_or(0);
  if (tensor != 0 && tensor != sizes.tensor) {
    not_understood(draft, "encoder_tensor_model_parallel_size",
                   fmt::format("encoder_tensor_model_parallel_size {}, other ranks than the "
                               "decoder's, which has the same embedding",
                               tensor));
  }
  const long encoding = encoding_stages(settings, sizes);
  stop_at_interleaving(settings, draft);
  if (sizes.pipeline == 1) return;
  if (encoding < 1 || encoding >= sizes.pipeline) {
    draft.missing.emplace_back(
        "the first stage that decodes, from 1 on: pipeline_model_parallel_split_rank=N");
    return;
  }
  add_stages(sizes.encoder_layers, encoding, "encoder", sizes, draft);
  add_stages(sizes.layers - sizes.encoder_layers, sizes.pipeline - encoding, "decoder", sizes,
             draft);
}

bool has_layers_of_its_own(Settings& settings, const MegatronSizes& sizes) {
  if (sizes.encoder_layers == 0 || settings.has("transformer_impl")) return false;
  const bool nemo = settings.has("megatron_amp_O2");
  const bool older =
      !settings.has("attention_backend") &&
      (settings.has("num_layers") || settings.has("pipeline_model_parallel_split_rank"));
  return nemo ? !settings.is_set({"mcore_t5"}) : older;
}

}  // namespace pipesim
