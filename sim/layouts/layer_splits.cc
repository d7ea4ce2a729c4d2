#include "sim/layouts/layer_splits.h"

namespace pipesim {

const Layout& BalancedLayouts::of(int stages, const LayerSeconds& seconds) {
  const Key key{static_cast<double>(stages), seconds.embedding.value(), seconds.dense.value(),
                seconds.moe.value(),         seconds.mtp.value(),       seconds.output.value()};
  Entry* entry = nullptr;
  {
    const std::lock_guard lock(mutex_);
    entry = &known_[key];
  }
  std::call_once(entry->once, [&] { entry->layout = balance(model_, stages, seconds); });
  return entry->layout;
}

}  // namespace pipesim
