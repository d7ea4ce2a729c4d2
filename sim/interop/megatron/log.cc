#include "sim/interop/megatron/log.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace pipesim {

LoggedSteps steps_of_log(std::string_view log) {
  constexpr std::string_view kKey = "elapsed time per iteration (ms):";
  constexpr std::size_t kWarmUp = 3;
  std::vector<double> all;
  for (std::size_t at = log.find(kKey); at != std::string_view::npos; at = log.find(kKey, at + 1)) {
    std::size_t from = at + kKey.size();
    while (from < log.size() && log[from] == ' ') ++from;
    double milliseconds = 0;
    const auto read = std::from_chars(log.data() + from, log.data() + log.size(), milliseconds);
    if (read.ec == std::errc() && milliseconds > 0) all.push_back(milliseconds / 1e3);
  }
  LoggedSteps steps;
  steps.dropped = std::min(kWarmUp, all.size() / 2);
  steps.lines = all.size() - steps.dropped;
  if (steps.lines == 0) return steps;
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(steps.dropped);
  std::sort(first, all.end());
  const auto middle = first + static_cast<std::ptrdiff_t>(steps.lines / 2);
  steps.median = Seconds(steps.lines % 2 == 1 ? *middle : (*middle + *(middle - 1)) / 2);
  return steps;
}

}  // namespace pipesim
