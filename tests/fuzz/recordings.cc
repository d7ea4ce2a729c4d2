// Schedules and recordings of other programs: what ran, when, and how long it took.
#include <algorithm>
#include <sstream>
#include <string>

#include "sim/interop/json/json.h"
#include "sim/interop/megatron/log.h"
#include "sim/interop/megatron/memory_log.h"
#include "sim/interop/passes/write.h"
#include "sim/interop/torch/csv_reader.h"
#include "sim/interop/torch/csv_writer.h"
#include "tests/fuzz/target.h"

namespace pipesim::fuzz {
namespace {

// A program survives the way out and in.
const Register kTorchCsv{{"torch_csv", Form::kText, [](const std::string& text) {
                            const Program program = read_torch_csv("fuzz.csv", text);
                            std::ostringstream out;
                            write_csv(out, program);
                            const Program again = read_torch_csv("again.csv", out.str());
                            for (int device = 0; device < program.shape().devices; ++device) {
                              must(
                                  std::ranges::equal(program.passes(device), again.passes(device)));
                            }
                          }}};

void use(Recording recording) {
  const RecordedRun run = recorded_run(std::move(recording), "", kAsked);
  const RunMeasures measured = measure(run);
  (void)summary_of(run, measured);
  (void)passes_text(run, measured);
}

const Register kPasses{{"passes", Form::kText,
                        [](const std::string& text) { use(read_passes_csv("fuzz.csv", text)); }}};

const Register kTasks{{"tasks", Form::kText, [](const std::string& text) {
                         use(read_tasks(file_with("finished_tasks.json", text), kAsked));
                       }}};

// A folder of one rank.
const Register kPrimus{{"primus", Form::kText, [](const std::string& text) {
                          static const std::string kConfig =
                              file_with("config.json", R"({"pipeline_model_parallel_size": 1})");
                          const std::string path = file_with("pp_rank_0.json", text);
                          use(read_primus(path.substr(0, path.rfind('/')), kAsked));
                        }}};

const Register kKineto{
    {"kineto", Form::kText, [](const std::string& text) {
       use(read_kineto(file_with("trace.json", text), kAsked, default_patterns()));
     }}};

const Register kJson{{"json", Form::kText, [](const std::string& text) {
                        const JsonFile file("fuzz.json", text);
                        if (file.root().is_map() || file.root().is_list()) {
                          (void)file.root().values();
                        }
                      }}};

const Register kLog{{"log", Form::kText, [](const std::string& text) {
                       const LoggedSteps steps = steps_of_log(text);
                       must(steps.lines == 0 || steps.median.value() >= 0);
                       must(memory_of_log(text).allocated.value() >= 0);
                     }}};

}  // namespace
}  // namespace pipesim::fuzz
