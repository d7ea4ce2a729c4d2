#include "sim/layouts/layer_splits.h"

namespace pipesim {

BalancedLayouts::Key BalancedLayouts::key(int stages, const LayerSeconds& seconds) {
  return {static_cast<double>(stages), seconds.embedding.value(), seconds.dense.value(),
          seconds.moe.value(),         seconds.mtp.value(),       seconds.output.value()};
}

const Layout& BalancedLayouts::Entry::layout() const {
  if (failure_) std::rethrow_exception(failure_);
  return layout_;
}

BalancedLayouts::Sought BalancedLayouts::at(const Key& key) {
  const auto [known, is_new] = known_.try_emplace(key);
  return {&known->second, is_new};
}

void BalancedLayouts::find(const Key& key, Entry& entry) const {
  const auto [stages, embedding, dense, moe, mtp, output] = key;
  try {
    entry.layout_ =
        balance(model_, static_cast<int>(stages),
                {Seconds(embedding), Seconds(dense), Seconds(moe), Seconds(mtp), Seconds(output)});
  } catch (...) {
    entry.failure_ = std::current_exception();
  }
}

}  // namespace pipesim
