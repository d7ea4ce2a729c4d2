#include "sim/report/text/utilization.h"

#include <fmt/format.h>

#include "sim/report/text/band.h"

namespace pipesim {

std::string impossible_rate(const std::string& name, double mfu, double causal, double peak) {
  if (mfu <= 1) return "";
  const char* why = causal > 1
                        ? "the seconds are not of this model on this GPU"
                        : "it counts all of attention, of which a causal model computes half";
  return fmt::format("{}: an MFU of {}% is over 100%: {} TFLOP/s a GPU exceeds the card's {}; {}\n",
                     name, significant(100 * mfu, 4), significant(mfu * peak / 1e12, 4),
                     significant(peak / 1e12, 4), why);
}

}  // namespace pipesim
