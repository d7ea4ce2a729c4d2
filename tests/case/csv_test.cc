// A CSV of any schedule runs as that schedule.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sstream>

#include "sim/case/program.h"
#include "sim/case/simulate.h"
#include "sim/interop/torch/csv_writer.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "tests/folder.h"

namespace pipesim::csv_test {
namespace {

Case case_of_csv(const std::string& schedule, const std::string& more) {
  return prepare_first(
      read_scenario(YamlSource("s.yaml", "schedule: " + schedule +
                                             "\nparallel: {pipeline_model_parallel_size: 4}\n"
                                             "batch: {num_microbatches: 12}\n" +
                                             more)));
}

std::string costs(const std::string& more) {
  return "cost: {kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms, "
         "transfer: 1 ms" +
         more + "}\n";
}

std::string csv_of(const Case& made) {
  const auto path = testing::test_folder() / "s.csv";
  std::ostringstream out;
  write_csv(out, *make_program(made));
  testing::write_file(path, out.str());
  return "{csv: " + path.string() + "}";
}

TEST(CsvCase, TakesAsLongAsTheScheduleThatItWasWrittenOf) {
  const std::string shared = costs(
      ", output_forward: 2 ms, output_backward: 3 ms, input_forward: 1 ms, input_backward: "
      "1 ms, collective: 1 ms");
  const std::string copies = costs(", copy_out: 9 ms, copy_in: 9 ms, copy_solo_factor: 0.6");
  for (const auto& [schedule, more] :
       {std::pair{std::string("1f1b"), "vocabulary: vocab-1\n" + shared},
        {"1f1b", "vocabulary: vocab-2\n" + shared},
        {"1f1b", "vocabulary: interlaced\n" + shared},
        {"v-half", "vocabulary: vocab-2\n" + shared},
        {"seq-1f1b", costs("")},
        {"terapipe", costs("")},
        {"dualpipe", costs(", overlapped: 25 ms")},
        {"{name: zb-h1, recompute: full}", costs(", recompute: 9 ms")},
        {"{name: 1f1b, offload: {devices_per_link: 1}}", copies},
        {"{name: po-h, offload: {devices_per_link: 1, plan: best}}", copies}}) {
    const Case made = case_of_csv(schedule, more);
    const Case again = case_of_csv(csv_of(made), more);
    EXPECT_EQ(simulate(again).report.iteration, simulate(made).report.iteration) << schedule;
  }
}

void expect_same(const Case& a, const Case& b) {
  const Result one = simulate(a);
  const Result other = simulate(b);
  EXPECT_EQ(one.report.iteration, other.report.iteration);
  EXPECT_EQ(one.report.peak_activation, other.report.peak_activation);
  EXPECT_EQ(one.throughput->hfu, other.throughput->hfu);
}

std::string modelled(const std::string& schedule) {
  return "schedule: " + schedule + R"(
model: llama3-70b
cluster: dgx-h100
parallel: {pipeline_model_parallel_size: 4, tensor_model_parallel_size: 8, sequence_parallel: true}
batch: {num_microbatches: 12, micro_batch_size: 1, seq_length: 8192}
)";
}

// W of a backward in one pass hides a collective, W keeps more than F, and R makes one layer's
// activations at a time.
TEST(CsvCase, TakesAndHoldsAsMuchWithAModel) {
  for (const char* const schedule :
       {"1f1b", "gpipe", "interleaved-1f1b", "hanayo", "zb-h1", "v-half",
        "{name: 1f1b, recompute: full}", "{name: zb-h1, recompute: full}",
        "{name: v-half, recompute: {granularity: full, chunks: 1}}"}) {
    SCOPED_TRACE(schedule);
    const Case made = prepare_first(read_scenario(YamlSource("s.yaml", modelled(schedule))));
    expect_same(made, prepare_first(read_scenario(YamlSource("s.yaml", modelled(csv_of(made))))));
  }
}

TEST(CsvCase, IsWithAModelAsADescriptionIs) {
  const auto path = testing::test_folder() / "again.yaml";
  testing::write_file(path,
                      "placement: linear\n"
                      "rules:\n"
                      "  - {passes: [F], repeat: p - 1 - d}\n"
                      "  - {passes: [F, R, BW]}\n"
                      "  - {passes: [R, BW]}\n");
  const std::string described = std::string(PIPESIM_SOURCE_DIR) + "/schedules/descriptions/";
  for (const auto& [name, file] :
       {std::pair<std::string, std::string>{"1f1b", described + "1f1b.yaml"},
        {"zb-h1", described + "zb-h1.yaml"},
        {"{name: 1f1b, recompute: full}", path.string()}}) {
    SCOPED_TRACE(name);
    expect_same(
        prepare_first(read_scenario(YamlSource("s.yaml", modelled(name)))),
        prepare_first(read_scenario(YamlSource("s.yaml", modelled("{file: " + file + "}")))));
  }
}

TEST(CsvCase, RefusesWhatTheScenarioDoesNotHave) {
  const auto refusal_of = [](const std::string& schedule, const std::string& more) {
    try {
      (void)make_program(case_of_csv(schedule, more));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string shared =
      "vocabulary: vocab-1\n" +
      costs(
          ", output_forward: 2 ms, output_backward: 3 ms, input_forward: 1 ms, input_backward: "
          "1 ms");
  const std::string vocabulary = csv_of(case_of_csv("1f1b", shared));
  EXPECT_NE(refusal_of(vocabulary, costs(""))
                .find("has passes of a vocabulary that all devices "
                      "share: expected 'vocabulary: vocab-1'"),
            std::string::npos);
  const std::string plain = csv_of(case_of_csv("1f1b", costs("")));
  EXPECT_NE(refusal_of(plain, shared).find("has no passes of a vocabulary that all devices share"),
            std::string::npos);
  const std::string copies = csv_of(case_of_csv("{name: 1f1b, offload: {devices_per_link: 1}}",
                                                costs(", copy_out: 9 ms, copy_in: 9 ms")));
  EXPECT_NE(refusal_of(copies, costs("")).find("cost.copy_out and cost.copy_in must say"),
            std::string::npos);
  EXPECT_THROW((void)csv_of(case_of_csv("{name: 1f1b, offload: {devices_per_link: 2}}",
                                        costs(", copy_out: 9 ms, copy_in: 9 ms"))),
               InfeasibleError);
}

}  // namespace
}  // namespace pipesim::csv_test
