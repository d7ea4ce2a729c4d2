#include "validate/papers/runs/anchored.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sim/anchor/fit.h"
#include "sim/core/error.h"
#include "sim/core/thread_team.h"
#include "sim/read/scenario.h"

namespace pipesim {
namespace {

Scenario scenario_of(const TrainingRun& run) {
  return read_scenario(YamlSource(run.id, run.scenario));
}

// The first of `runs` anchors the rest.
void anchor(const std::vector<TrainingRun*>& runs) {
  TrainingRun& first = *runs.front();
  try {
    const std::vector<MeasuredStep> measured{
        {scenario_of(first), Seconds(first.published), first.id}};
    const CostFactors factors = fit_anchor(measured).factors;
    for (TrainingRun* run : runs) {
      run->simulated = step_with(scenario_of(*run), factors).value();
    }
    first.anchor = true;
  } catch (const InfeasibleError& error) {
    for (TrainingRun* run : runs) {
      run->simulated.reset();
      run->reason = std::string("not anchored: ") + error.what();
    }
  }
}

}  // namespace

void anchor_runs(TrainingRuns& all) {
  std::map<std::tuple<std::string, std::string, std::string, std::string>,
           std::vector<TrainingRun*>>
      alike;
  for (TrainingRun& run : all.runs) {
    if (run.quantity != "seconds" || !run.simulated) continue;
    alike[{run.model, run.gpu, run.precision, run.release}].push_back(&run);
  }
  std::vector<std::vector<TrainingRun*>> groups;
  for (auto& [key, runs] : alike) {
    std::ranges::sort(runs, {},
                      [](const TrainingRun* run) { return std::tie(run->gpus, run->id); });
    groups.push_back(std::move(runs));
  }
  ThreadTeam().run(groups.size(), [&groups](size_t i) { anchor(groups[i]); });
}

}  // namespace pipesim
