// Exchanges of context ranks for attention, as in Transformer Engine
// (attention/dot_product_attention/context_parallel.py): AttnFuncWithCPAndKVAllGather,
// AttnFuncWithCPAndKVP2P and AttnFuncWithCPAndQKVOA2A.
#include "models/work_builder.h"

namespace pipesim {

using enum RecomputeModule;

WorkBuilder::HeadBytes WorkBuilder::head_bytes() const {
  const double one = tokens_ / ranks_ * element_;
  const Heads heads = attending_heads(model_, mixer_, context_);
  return {one * heads.queries * heads.qk, one * heads.queries * heads.v,
          one * heads.groups * heads.qk, one * heads.groups * heads.v};
}

void WorkBuilder::exchange_context() {
  if (context_.context == 1 || pass_ == PassKind::kW) return;
  if (context_.exchange == ContextExchange::kAllGather) {
    gather_keys();
    return;
  }
  const bool backward = pass_ == PassKind::kB;
  const bool again = backward && context_.recompute.any(kCoreAttention);
  if (again) {
    divide_heads(false);
    pass_keys_on(false, 0);
  }
  divide_heads(backward);
  pass_keys_on(backward, again ? 1 : 0);
}

void WorkBuilder::gather_keys() {
  const HeadBytes of = head_bytes();
  const double bytes = context_.context * (of.keys + of.values);
  collective(CollectiveKind::kAllGather, Group::kContext, bytes);
  if (pass_ == PassKind::kB) collective(CollectiveKind::kReduceScatter, Group::kContext, bytes);
}

// Keys and values are read once and written for every query head, their gradients added up.
void WorkBuilder::repeat_keys(const HeadBytes& repeated) {
  const Heads heads = heads_of(model_, mixer_ == Mixer::kSharedKeys ? Mixer::kAttention : mixer_);
  if (heads.groups == heads.queries) return;
  const double read = heads.groups / heads.queries;
  stream(pass_, (1 + read) * (repeated.keys + repeated.values), 2);
}

// An all-to-all for every tensor, which is laid out anew before and after. Backward the output goes
// with its gradient: what F kept of it is what the next matmul reads, by sequence.
void WorkBuilder::divide_heads(bool backward) {
  if (head_ranks(context_) == 1) return;
  const HeadBytes of = head_bytes();
  if (context_.repeats_keys) repeat_keys(of);
  const auto exchange = [&](double bytes) {
    collective(CollectiveKind::kAllToAll, Group::kContextHeads, bytes);
    stream(pass_, 4 * bytes, 2);
  };
  for (const double bytes : {of.queries, of.keys, of.values, of.outputs}) exchange(bytes);
  if (backward) exchange(of.outputs);
}

// Each of n ranks passes keys and values on n - 1 times, beside a part of attention each. In
// backward their gradients follow a part behind: the first step has none, the last nothing else.
// Each part's result is added to that of the parts before it.
void WorkBuilder::pass_keys_on(bool backward, int kernel) {
  const int ranks = ring_ranks(context_);
  if (ranks == 1) return;
  const HeadBytes of = head_bytes();
  const double block = of.keys + of.values;
  const auto send = [&](double bytes, int steps) {
    if (steps == 0) return;
    collective(CollectiveKind::kSendReceive, Group::kContext, bytes);
    work_.collectives.back().steps = steps;
    work_.collectives.back().beside = kernel;
  };
  const int more = ranks - 1;
  if (backward) {
    send(block, 2);
    send(2 * block, ranks - 2);
    stream(pass_, 3 * more * (of.queries + block), 3 * more);
  } else {
    send(block, more);
    stream(pass_, 3 * more * of.outputs, 2 * more);
  }
}

}  // namespace pipesim
