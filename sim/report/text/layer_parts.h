// The parts of a layer's pass, kernel by kernel and collective by collective, each timed
// alone (models/layer_cost.h's sum, taken apart).
#pragma once

#include <string>
#include <vector>

#include "models/layer_cost.h"

namespace pipesim {

const char* name_of(LayerKind kind);  // "dense layer"

struct CostPart {
  std::string name;   // "queries, keys, values"
  std::string shape;  // "4096 x 3072 x 4096", "17 kernels", "2 ranks, 2 a node"
  Flops flops;        // of matmuls and attention
  Bytes bytes;        // of all others; attention has both
  double share = 0;   // of the peak, or of the memory bandwidth; 0: of neither
  Seconds seconds;    // launches included
  std::string curve;  // the groups of the catalogue's numbers that it is timed by
};

// The one that is taken: the ring's within a node, the switch's where that is faster, and the
// network across nodes.
std::string curve_of(const Interconnect& interconnect, const Collective& collective,
                     GroupShape group);

CostPart part_of(const Collective& collective, const std::string& among, GroupShape group,
                 const Interconnect& interconnect);
std::vector<CostPart> parts_of(const Work& work, const CostSetting& setting,
                               const Hardware& hardware);

// Their seconds less PassCost::hidden are PassCost::total().
std::vector<CostPart> parts_of(const Transformer& model, LayerKind kind, PassKind pass,
                               const CostSetting& setting, const Hardware& hardware);

}  // namespace pipesim
