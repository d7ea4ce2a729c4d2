// Models, hardware and software, and files that replace or correct what the catalogue says.
#include <string>

#include "models/transformer.h"
#include "sim/anchor/measured_runs.h"
#include "sim/band/residuals.h"
#include "sim/read/anchor.h"
#include "sim/read/calibration.h"
#include "sim/read/data_sheet.h"
#include "sim/read/hardware.h"
#include "sim/read/measured_passes.h"
#include "sim/read/model.h"
#include "sim/read/scenario.h"
#include "sim/read/software.h"
#include "tests/fuzz/target.h"

namespace pipesim::fuzz {
namespace {

constexpr const char* kRun =
    "model: llama3-8b\ncluster: dgx-h100\nschedule: 1f1b\n"
    "parallel: {pipeline_model_parallel_size: 4}\n"
    "batch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 4096}\n";

const Scenario& run() {
  static const Scenario kScenario = read_scenario(YamlSource("run.yaml", kRun));
  return kScenario;
}

const HardwareCatalog& hardware() {
  static const HardwareCatalog kAll = read_all_hardware(kAsked);
  return kAll;
}

const Register kModels{{"models", Form::kYaml, [](const std::string& text) {
                          const YamlSource source("fuzz.yaml", text);
                          for (const Transformer& model : read_models(source.root())) {
                            must(fault_of(model).empty());
                          }
                        }}};

const Register kHfConfig{{"hf_config", Form::kYaml, [](const std::string& text) {
                            const YamlSource source("fuzz.json", text);
                            must(fault_of(read_hf_config(source.root(), "fuzz")).empty());
                          }}};

const Register kHardware{{"hardware", Form::kYaml, [](const std::string& text) {
                            const YamlSource gpus("gpus.yaml", text);
                            (void)read_hardware(gpus, YamlSource("clusters.yaml", "{}"),
                                                hardware());
                          }}};

const Register kClusters{{"clusters", Form::kYaml, [](const std::string& text) {
                            const YamlSource clusters("clusters.yaml", text);
                            (void)read_hardware(YamlSource("gpus.yaml", "{}"), clusters,
                                                hardware());
                          }}};

const Register kGenerations{{"generations", Form::kYaml, [](const std::string& text) {
                               (void)read_generations(YamlSource("fuzz.yaml", text));
                             }}};

const Register kSoftware{{"software", Form::kYaml, [](const std::string& text) {
                            const YamlSource source("fuzz.yaml", text);
                            (void)read_software_catalogue(source.root());
                          }}};

const Register kCalibration{{"calibration", Form::kYaml, [](const std::string& text) {
                               Hardware changed = *run().hardware;
                               std::vector<Sourced> numbers;
                               (void)read_calibration(YamlSource("fuzz.yaml", text), changed,
                                                      numbers);
                             }}};

const Register kAnchor{{"anchor", Form::kYaml, [](const std::string& text) {
                          (void)read_anchor(YamlSource("fuzz.yaml", text), run());
                        }}};

const Register kMeasuredRuns{{"measured_runs", Form::kYaml, [](const std::string& text) {
                                static const std::string kScenario = file_with("run.yaml", kRun);
                                static const std::string kLog = file_with(
                                    "run.log", " elapsed time per iteration (ms): 1234.5 |\n");
                                (void)read_measured_runs(file_with("runs.yaml", text), kAsked, {});
                              }}};

const Register kMeasuredPasses{{"measured_passes", Form::kYaml, [](const std::string& text) {
                                  (void)read_measured_passes(YamlSource("fuzz.yaml", text), 0.5);
                                }}};

const Register kResiduals{{"residuals", Form::kText, [](const std::string& text) {
                             (void)parse_residuals(text, "fuzz.csv");
                           }}};

}  // namespace
}  // namespace pipesim::fuzz
