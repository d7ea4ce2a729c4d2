// Costs of units that are not alike (docs/reference/model.md, "Unequal microbatches"). They are
// microbatches of other documents or other factors, and slices of a sequence, whose attention grows
// with their position.
#pragma once

#include <span>
#include <vector>

#include "models/layer_context.h"
#include "sim/case/case.h"

namespace pipesim {

// The context of a microbatch that is packed of these documents as one sequence, padded to what its
// ranks can divide. It refers to `documents`.
LayerContext packed_microbatch(LayerContext context, std::span<const int> documents);

// The context with the tokens of the longest microbatch and the most images of any, by which
// buffers are sized. It stays where all are alike.
LayerContext largest_microbatch(LayerContext context, const Batch& batch);

// Tokens, or other equal parts, `begin` to `end` - 1 of a sequence of `of`.
struct Slice {
  long begin = 0;
  long end = 1;
  long of = 1;
};

// Costs of one unit on every virtual stage, a slice of the sequence that the problem's stages are
// for. InputError at the schedule where the slice has no tokens that its ranks could divide, or is
// beside an encoder.
std::vector<StageCost> slice_costs(const Case& made, const Slice& slice);

// Work of F of a slice, to others' of the same sequence: FLOPs of a model, or the given seconds
// without what is fixed. Monotone in the slice's end. O(kinds of layers), given costs O(stages).
double forward_work(const Case& made, const Slice& slice);

// Tokens of a sequence that the ranks of a model can divide are multiples of these.
int token_step(const LayerContext& context);

// Adds their kinds to the case's problem; nothing where all units cost alike.
// O(different microbatches x splits x stages).
void add_unequal_units(Case& made);

}  // namespace pipesim
