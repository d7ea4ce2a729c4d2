// Scenarios, what sweeps make of them, and schedules that files describe.
#include <string>

#include "sim/case/program.h"
#include "sim/read/scenario.h"
#include "sim/sweep/point.h"
#include "sim/sweep/sweep.h"
#include "tests/case/cases.h"
#include "tests/fuzz/target.h"

namespace pipesim::fuzz {
namespace {

// An accepted scenario must also become a program; large ones take time, not correctness.
void plan(const Scenario& scenario) {
  constexpr long kMostPasses = 4096;
  for (const ScheduleChoice& choice : scenario.schedules) {
    const long stages = static_cast<long>(scenario.parallel.pipeline) * chunks_of(choice);
    if (stages * scenario.batch.microbatches > kMostPasses) continue;
    (void)make_program(choice, case_of(scenario, choice).problem);
  }
}

const Register kScenario{{"scenario", Form::kYaml, [](const std::string& text) {
                            plan(read_scenario(YamlSource("fuzz.yaml", text)));
                          }}};

const Register kSweep{{"sweep", Form::kYaml, [](const std::string& text) {
                         const Sweep sweep("fuzz.yaml", text);
                         for (const std::uint32_t setting : {0U, sweep.settings() - 1}) {
                           (void)sweep.values(setting);
                           (void)sweep.weight(setting);
                           (void)sweep.key(sweep.source(setting), 0);
                         }
                       }}};

const Register kDescription{
    {"description", Form::kYaml, [](const std::string& text) {
       const std::string path = file_with("described.yaml", text);
       plan(read_scenario(
           YamlSource("fuzz.yaml", "schedule: {file: " + path +
                                       "}\nparallel: {pipeline_model_parallel_size: 4}\n"
                                       "batch: {num_microbatches: 8}\ncost: {kind: given, forward: "
                                       "1 ms, backward_input: 1 ms, backward_weight: 1 ms}\n")));
     }}};

}  // namespace
}  // namespace pipesim::fuzz
