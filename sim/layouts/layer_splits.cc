#include "sim/layouts/layer_splits.h"

namespace pipesim {

BalancedLayouts::Key BalancedLayouts::key(int stages, const LayerSeconds& seconds) {
  return {static_cast<double>(stages), seconds.embedding.value(), seconds.dense.value(),
          seconds.moe.value(),         seconds.mtp.value(),       seconds.output.value()};
}

const Layout& BalancedLayouts::of(const Key& key) const {
  const Found& found = known_.at(key);
  if (found.failure) std::rethrow_exception(found.failure);
  return found.layout;
}

BalancedLayouts::Found BalancedLayouts::balanced(const Key& key) const {
  const auto [stages, embedding, dense, moe, mtp, output] = key;
  const LayerSeconds seconds{Seconds(embedding), Seconds(dense), Seconds(moe), Seconds(mtp),
                             Seconds(output)};
  try {
    return {balance(model_, static_cast<int>(stages), seconds), nullptr};
  } catch (...) {
    return {{}, std::current_exception()};
  }
}

}  // namespace pipesim
