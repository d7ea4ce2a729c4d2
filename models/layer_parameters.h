// How many parameters a transformer has, and a layer of it on one GPU, in the parts that are
// divided differently.
#pragma once

#include "models/layer_context.h"
#include "models/transformer.h"

namespace pipesim {

// Over how many GPUs a layer's weights are divided.
struct WeightDivision {
  int tensor = 1;
  int expert = 1;
  int expert_tensor = 1;
};

// Parameters on one GPU. Experts stand apart: their gradients are reduced over other GPUs.
struct LayerParameters {
  double dense = 0;
  double expert = 0;
  // The part of both that matmuls read, and that fp8 copies: no norms, biases, positions or
  // embeddings.
  double matmul = 0;
  // Inputs and outputs of those matrices together, as they are divided, without the router's and
  // the ends'. An adapter of rank r (LoRA) has r times as many.
  double dense_sides = 0;
  double expert_sides = 0;
};

// Matrices are divided over the tensor ranks by columns or rows. All ranks hold norms, biases of
// row-divided matrices, the router, the compressing matrices of latent attention, and positions.
LayerParameters layer_parameters(const Transformer& model, LayerKind kind,
                                 const WeightDivision& division);

// Parameters of the embedding and of learned positions, which what is encoded and what is decoded
// share. A device that embeds both holds them once.
double shared_embedding(const Transformer& model, int tensor);

// Parameters of a layer that have gradients and states: those that it holds and that are not
// frozen. With an adapter's rank above 0 they are the adapters alone, which stand beside `held`.
LayerParameters trained_parameters(const Transformer& model, LayerKind kind,
                                   const LayerParameters& held, const LayerContext& context);

// Parameters of one layer. A tied output counts its matrix here all the same: it is used, and held
// where it is on another device than the input.
double parameters(const Transformer& model, LayerKind kind);
// The same, of the experts only those that one token passes.
double activated_parameters(const Transformer& model, LayerKind kind);

// Parameters of all layers, embedding and output, a tied matrix once. MTP modules do not count, as
// in published totals.
double total_parameters(const Transformer& model);
double total_activated_parameters(const Transformer& model);
double mtp_parameters(const Transformer& model);

}  // namespace pipesim
