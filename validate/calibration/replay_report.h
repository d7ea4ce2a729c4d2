// Measured against simulated: what a replayed row took, line by line, for people and as files.
//
// Seconds and bytes. `total` runs from the start of the first pass to the end of the last one,
// `busy` is what passes take of it. Peak memory is folded from blocks, acquired when their action
// starts and released when it ends, at equal times releases first. Overlap is the share of copy
// time during which a pass runs.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "validate/calibration/measurements.h"
#include "validate/calibration/replay_device.h"

namespace pipesim::calibration {

struct Comparison {
  struct Line {
    std::string quantity;
    std::string unit;  // s, bytes or 1
    double simulated = 0;
    double measured = 0;

    // Relative; of shares of 1, and where nothing is simulated, the difference.
    [[nodiscard]] double error() const;
  };
  std::string schedule;
  int device = 0;
  Arrivals arrivals = Arrivals::kSimulated;
  std::vector<Line> lines;

  [[nodiscard]] const Line* find(const std::string& quantity) const;
};

// With arrivals at the start, `simulated` are the row's seconds with nothing to wait for outside.
[[nodiscard]] Comparison compare(const Row& row, Arrivals arrivals, const Executed& measured);

// Replays once untimed and then `runs` times; compares the run whose total is the median.
[[nodiscard]] Comparison replay_and_compare(const Row& row, Arrivals arrivals, int runs,
                                            ReplayDevice& device);

// One document of a scenario's comparisons; `facts` say what ran them, with what and when.
struct ReplayDocument {
  std::string scenario;
  Parameters facts;
  std::vector<Comparison> comparisons;
};
[[nodiscard]] std::string described(const ReplayDocument& document);
void write_csv(const ReplayDocument& document, std::ostream& out);
void write_yaml(const ReplayDocument& document, std::ostream& out);

}  // namespace pipesim::calibration
