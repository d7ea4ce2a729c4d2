// Copies to the host as a case has them: their seconds, and the ways that they share.
#pragma once

#include <optional>
#include <vector>

#include "models/cluster.h"
#include "sim/case/case.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// Adds the seconds of copies where they are not given. They follow from the bytes that F acquires
// and the host links of a cluster by name (docs/reference/model.md, "Offload"). For make_case, once
// bytes are known. O(stages).
void add_host_links(Case& made);

// The case's problem with passes lengthened by the compute that the program's copies take
// (Cluster::copy_share), spread over the microbatches of a stage. Nothing where they take none, or
// where SimGrid's GPUs lose their share while a copy flows.
std::optional<Problem> beside_copies(const Case& made, const Program& program);

// The peaks of devices where a plan holds by the order of passes, as of po-h and po-f
// (peaks_by_order); empty for other cases.
std::vector<Bytes> ordered_peaks(const Case& made, const Program& program);

// The way of a rank's copies where they contend. Without a cluster by name copies only have the
// share of their links in common, whatever their bandwidth, and messages have another way.
HostWay host_way(const Case& made);

}  // namespace pipesim
