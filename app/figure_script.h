// The scripts of plots/, which draw with matplotlib.
#pragma once

#include <string>
#include <vector>

namespace pipesim {

// Runs the first Python that has matplotlib with these arguments, {-B, folder, kind, ...}, and the
// table of metrics: $PIPESIM_PYTHON where that is
// set, else python3 and /usr/bin/python3. Returns kDone, or kBadInput where the script refused its
// input and has said why. InfeasibleError where there is no such Python, or the script fails.
int draw_figure(std::vector<std::string> script);

}  // namespace pipesim
