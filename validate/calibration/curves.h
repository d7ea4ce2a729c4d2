// Measured curves as CSV, read strictly.
//
// Matmuls: columns m, n, k, latency_ms. Collectives: op (all_reduce, all_gather, reduce_scatter,
// alltoall), gpus, bytes, latency_us, sizes as nccl-tests counts them. InputError as of CsvTable,
// and for sizes and times that are not positive.
#pragma once

#include <string>
#include <vector>

#include "validate/calibration/fit.h"

namespace pipesim::calibration {

[[nodiscard]] std::vector<MatmulRow> read_matmuls(const std::string& path);
[[nodiscard]] std::vector<CollectiveRow> read_collectives(const std::string& path);

}  // namespace pipesim::calibration
