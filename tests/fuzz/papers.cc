// Published tables, as `validate --data` reads and simulates them, and measurements of a GPU.
#include <string>

#include "sim/read/hardware.h"
#include "tests/fuzz/target.h"
#include "validate/calibration/curves.h"
#include "validate/calibration/fitted.h"
#include "validate/calibration/measurements_csv.h"
#include "validate/papers/expected.h"
#include "validate/papers/validation.h"

namespace pipesim::fuzz {
namespace {

// The first line is a comment that names the paper.
const Register kPapers{{"papers", Form::kYaml, [](const std::string& text) {
                          for (const Validation& validation : validations()) {
                            if (!text.starts_with("# " + validation.name + "\n")) continue;
                            const std::string file = file_with(validation.name + ".yaml", text);
                            (void)validation.compare(file.substr(0, file.rfind('/')), kAsked);
                          }
                        }}};

const Register kExpected{{"expected", Form::kYaml, [](const std::string& text) {
                            const std::string file = file_with("expected.yaml", text);
                            (void)read_expected(file.substr(0, file.rfind('/')));
                          }}};

const Register kMeasurements{
    {"measurements", Form::kText, [](const std::string& text) {
       static const HardwareCatalog kHardware = read_all_hardware(kAsked);
       const calibration::Measurements measured =
           calibration::read_measurements(file_with("measurements.csv", text));
       (void)calibration::fit_measurements(measured, kHardware.gpus.front().gpu,
                                           kHardware.gpus.front().interconnect, 0);
     }}};

const Register kCurves{{"curves", Form::kText, [](const std::string& text) {
                          const std::string file = file_with("curve.csv", text);
                          if (text.find("op,") == std::string::npos) {
                            (void)calibration::read_matmuls(file);
                          } else {
                            (void)calibration::read_collectives(file);
                          }
                        }}};

}  // namespace
}  // namespace pipesim::fuzz
