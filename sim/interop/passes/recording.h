// Passes of a pipeline as somebody's run recorded them: when each began and ended on its rank.
//
// Times are seconds on the clock of each rank, which need not be another's. A chunk, stage or
// microbatch that a format does not say is -1, and is counted out from the order later
// (recorded_run.h).
#pragma once

#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/pipeline/pass.h"

namespace pipesim {

struct RecordedPass {
  PassKind kind = PassKind::kF;
  int chunk = -1;  // of the rank, in the order of the framework
  int stage = -1;  // of the model, in forward order
  int microbatch = -1;
  double start = 0;
  double end = 0;

  [[nodiscard]] double seconds() const { return end - start; }
};

struct RecordedIteration {
  int number = 0;
  std::vector<std::vector<RecordedPass>> ranks = {};  // in order of their starts
};

struct Recording {
  std::string format;
  Location where;  // of the file, for what is wrong with it as a whole
  int ranks = 0;
  int chunks = 1;
  bool timed = true;  // false: durations alone, one after the other
  std::vector<RecordedIteration> iterations = {};
  std::vector<double> memory = {};  // GiB that each rank reserved at most; empty: not said
  std::vector<std::string> notes = {};
};

// How passes are found among the named ranges of a profiler: `template_` is a name in which
// {stage}, {chunk} and {microbatch} stand for numbers.
struct RangePattern {
  PassKind kind;
  std::string template_;
};

// PyTorch's pipelining runtime ("PP:2F0", "Forward 0"), and names that scripts commonly give.
const std::vector<RangePattern>& default_patterns();

// Reads passes of Primus (--dump_pp_data: a folder with config.json and pp_rank_*.json), tasks of
// Megatron-LM's pull request 3138 (finished_tasks.json, or its folder), or our own CSV. The files
// tell which. InputError with the place of the error.
Recording read_passes(const std::string& path, const Location& asked);

// One trace, or a folder of one trace for each rank.
Recording read_kineto(const std::string& path, const Location& asked,
                      const std::vector<RangePattern>& patterns);

// The readers of one format each.
Recording read_primus(const std::string& folder, const Location& asked);
Recording read_tasks(const std::string& path, const Location& asked);
Recording read_passes_csv(const std::string& path, const std::string& text);

// The last step of every reader: passes in order of their starts.
void sort_by_start(Recording& recording);

inline constexpr long kMostRanks = 1 << 12;
inline constexpr long kMostOfPass = 1 << 20;  // of chunks, stages and microbatches

}  // namespace pipesim
