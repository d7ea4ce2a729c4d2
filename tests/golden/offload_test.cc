// Offload plans of PipeOffload's public generator, instance by instance (data/offload/*.json): the
// order of passes, the cost and the peaks per device. Instances that it refuses have no peaks: ours
// must offload there as well.
#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/execution/evaluate.h"
#include "sim/planning/schedule.h"
#include "tests/golden/data.h"
#include "tests/pipeline/problems.h"

namespace pipesim {
namespace {

using golden::data_files;
using golden::read_json;
using nlohmann::json;

Problem problem_of(const json& params) {
  const auto number = [&params](const char* key) { return params.at(key).get<double>(); };
  const auto integer = [&params](const char* key) { return params.at(key).get<int>(); };
  Problem problem =
      testing::make_problem({integer("p"), integer("v"), integer("m"), 1},
                            {number("TF"), number("TB"), number("TW"), number("Tcomm")});
  for (StageCost& cost : problem.stages) {
    cost.copy_out = cost.copy_in = Seconds(number("T_copy_parallel"));
  }
  problem.copy_alone_factor = number("T_copy_solo") / number("T_copy_parallel");
  problem.devices_per_host_link = 2;
  // Groups of one are what po-h has when it is not told otherwise.
  if (integer("group_size") > 1) {
    problem.options["group_size"] = static_cast<long>(integer("group_size"));
  }
  problem.options["offload_chunks"] = static_cast<long>(integer("offload_chunks"));
  return problem;
}

std::string written(const Program& program, int device) {
  std::string text;
  for (const Pass& pass : program.passes(device)) {
    text += fmt::format("{}{}{}.{}", text.empty() ? "" : " ", to_text(pass.kind), pass.microbatch,
                        pass.chunk);
  }
  return text;
}

class OffloadGolden : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(OffloadGolden, PeaksNoHigherAtNoHigherCost) {
  const json data = read_json(GetParam());
  const Problem problem = problem_of(data.at("params"));
  const Program program = find_schedule("po-h")->plan(problem);
  const Evaluation ours = evaluate(program, problem);
  Problem plain = problem;
  plain.options["group_size"] = problem.option<long>("group_size").value_or(1);
  const Evaluation kept = evaluate(find_schedule("gis")->plan(plain), plain);
  EXPECT_LE(ours.cost.value(), kept.cost.value() * (1 + 1e-12)) << "copies must not cost time";
  EXPECT_LT(ours.peak_activation(), kept.peak_activation());
  if (!data.contains("peak")) return;
  EXPECT_LE(ours.makespan.value(), data.at("makespan").get<double>() * (1 + 1e-12));
  for (size_t device = 0; device < ours.devices.size(); ++device) {
    EXPECT_LE(ours.devices[device].peak_activation.value(), data.at("peak")[device].get<double>())
        << "device " << device;
    EXPECT_EQ(written(program, static_cast<int>(device)), data.at("order")[device])
        << "device " << device;
  }
}

INSTANTIATE_TEST_SUITE_P(Instances, OffloadGolden, ::testing::ValuesIn(data_files("offload")),
                         [](const auto& info) { return info.param.stem().string(); });

}  // namespace
}  // namespace pipesim
