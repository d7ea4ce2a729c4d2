#include "sim/interop/passes/clocks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace pipesim {

PassIndex::PassIndex(const Program& program, const RecordedIteration& iteration)
    : microbatches_(static_cast<size_t>(program.shape().microbatches)),
      forward_(static_cast<size_t>(program.placement().virtual_stages()) * microbatches_),
      backward_(forward_) {
  for (size_t rank = 0; rank < iteration.ranks.size(); ++rank) {
    for (const RecordedPass& pass : iteration.ranks[rank]) {
      const int vs = program.placement().virtual_stage(static_cast<int>(rank), pass.chunk);
      if (pass.kind == PassKind::kF) forward_[at(vs, pass.microbatch)] = &pass;
      if (is_backward(pass.kind)) backward_[at(vs, pass.microbatch)] = &pass;
    }
  }
}

Clocks clocks_of(const Program& program, const RecordedIteration& iteration) {
  // Least time from a sender's end to a receiver's start, on their own clocks.
  std::map<std::pair<int, int>, double> least;
  each_message(program, iteration,
               [&](const RecordedPass& from, int sender, const RecordedPass& to, int receiver) {
                 const double gap = to.start - from.end;
                 const auto [known, fresh] = least.emplace(std::pair(sender, receiver), gap);
                 if (!fresh) known->second = std::min(known->second, gap);
               });
  Clocks clocks{std::vector<double>(iteration.ranks.size(), 0), 0};
  std::vector<double> messages;
  std::vector<bool> known(iteration.ranks.size(), false);
  if (!known.empty()) known[0] = true;
  std::vector<int> open{0};
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    for (const auto& [pair, there] : least) {
      const auto back = least.find({pair.second, pair.first});
      if (pair.first != at || back == least.end()) continue;
      const int other = pair.second;
      if (known[static_cast<size_t>(other)]) continue;
      known[static_cast<size_t>(other)] = true;
      // there = message + ahead of `other` - ahead of `at`; back: the reverse.
      clocks.ahead[static_cast<size_t>(other)] =
          clocks.ahead[static_cast<size_t>(at)] + (there - back->second) / 2;
      messages.push_back((there + back->second) / 2);
      open.push_back(other);
    }
  }
  if (!messages.empty()) {
    std::ranges::sort(messages);
    clocks.message = std::max(0.0, messages[messages.size() / 2]);
  }
  return clocks;
}

}  // namespace pipesim
