// Copies to the host as a case has them: their seconds, and the ways that they share.
#pragma once

#include "models/cluster.h"
#include "sim/case/case.h"

namespace pipesim {

// Seconds of copies, where they are not given, follow from the bytes that F acquires and the host
// links of a cluster by name (docs/reference/model.md, "Offload"). For make_case, once bytes are
// known. O(stages).
void add_host_links(Case& made);

// The way of a rank's copies where they contend. Without a cluster by name copies only have the
// share of their links in common, whatever their bandwidth, and messages have another way.
HostWay host_way(const Case& made);

}  // namespace pipesim
