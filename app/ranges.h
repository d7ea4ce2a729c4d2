// Ranges of numbers that options of commands and arguments of Python's functions share.
#pragma once

#include <cstdint>

namespace pipesim {

template <class Number>
struct Range {
  Number least, most;
};

inline constexpr Range<int> kTrainingRuns{1, 100000};    // of a goodput
inline constexpr Range<double> kTrainingSteps{1, 1e18};  // checkpoints and failures of all runs
inline constexpr Range<double> kPricePerGpuHour{0, 1e9};
inline constexpr Range<int> kFrontierPoints{2, 1000};
inline constexpr Range<int> kSearchedChunks{1, 64};
inline constexpr Range<int> kSearchedSplits{1, 1024};
inline constexpr Range<double> kSearchedPasses{1, 1e15};
inline constexpr Range<double> kRefinedPasses{0, 1e12};  // the effort of a refinement
inline constexpr Range<int> kProofSeconds{1, 86400};
inline constexpr Range<int> kSweepProcesses{1, 4096};
inline constexpr Range<double> kTokens{1, 1e30};          // of a whole training
inline constexpr Range<double> kMeasuredSeconds{0, 1e9};  // of a step
inline constexpr Range<double> kSensitivityFactors{0.001, 1000};
inline constexpr Range<std::uint64_t> kSeeds{0, UINT64_MAX};

}  // namespace pipesim
