#include "models/alike.h"

namespace pipesim {
namespace {

// For each of `count`, the first one that `is_same(i, first)` holds of.
template <class IsSame>
std::vector<int> first_of_each(int count, const IsSame& is_same) {
  std::vector<int> first;
  std::vector<int> distinct;
  for (int i = 0; i < count; ++i) {
    size_t known = 0;
    while (known < distinct.size() && !is_same(i, distinct[known])) ++known;
    if (known == distinct.size()) distinct.push_back(i);
    first.push_back(distinct[known]);
  }
  return first;
}

}  // namespace

std::vector<int> first_alike(const Transformer& model, const Layout& layout) {
  return first_of_each(static_cast<int>(layout.stages.size()), [&](int a, int b) {
    return same_kinds(model, layout.stages[a], layout.stages[b]);
  });
}

std::vector<int> first_alike_devices(const Transformer& model, const Layout& layout,
                                     const Placement& placement) {
  return first_of_each(placement.devices(),
                       [&](int a, int b) { return same_kinds(model, layout, placement, a, b); });
}

}  // namespace pipesim
