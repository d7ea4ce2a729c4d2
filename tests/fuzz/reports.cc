// Inputs of a report beside scenarios.
#include <string>

#include "sim/core/data_folder.h"
#include "sim/read/sweep_text.h"
#include "sim/report/html/html.h"
#include "tests/fuzz/target.h"

namespace pipesim::fuzz {
namespace {

const Register kReport{{"report", Form::kText, [](const std::string& text) {
                          HtmlReport report("fuzz");
                          report.add_document({"fuzz.json", text});
                        }}};

constexpr const char* kSwept =
    "schedule: 1f1b\nparallel: {pipeline_model_parallel_size: 4}\nbatch: {num_microbatches: 8}\n"
    "cost: {kind: given, forward: 1 ms}\n";

const Register kSweepTable{{"sweep_table", Form::kText, [](const std::string& text) {
                              HtmlReport report("fuzz");
                              report.add_sweep({"fuzz",
                                                {"results.csv", text},
                                                {"failed.csv", "point,schedule,reason\n"},
                                                {"sweep.yaml", kSwept}});
                            }}};

const Register kSweepText{{"sweep_text", Form::kYaml, [](const std::string& text) {
                             (void)read_sweep_text("fuzz.yaml", text);
                           }}};

}  // namespace
}  // namespace pipesim::fuzz
