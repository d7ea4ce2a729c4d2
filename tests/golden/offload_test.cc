// Offload plans of PipeOffload's public generator. po-h and po-f make the very same plans
// (data/published_offload/plans.json); with `plan: best` they keep no more at no higher cost
// (data/offload/*.json), and offload where the generator refuses.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/core/error.h"
#include "sim/execution/evaluate.h"
#include "sim/execution/published_offload.h"
#include "sim/planning/schedule.h"
#include "tests/golden/data.h"
#include "tests/pipeline/problems.h"

namespace pipesim::offload_test {
namespace {

using golden::data_files;
using golden::read_json;
using nlohmann::json;

Problem problem_of(const json& params) {
  const auto number = [&params](const char* key) { return params.at(key).get<double>(); };
  const auto integer = [&params](const char* key) { return params.at(key).get<int>(); };
  const testing::Times times{number("TF"), number("TB"), number("TW"), number("Tcomm")};
  Problem problem = testing::make_problem({integer("p"), integer("v"), integer("m"), 1}, times);
  const double copy =
      number("offload_time") * (times.forward + times.backward_input + times.backward_weight);
  for (StageCost& cost : problem.stages) cost.copy_out = cost.copy_in = Seconds(copy);
  problem.copy_alone_factor = 0.7;
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
  Problem problem = problem_of(data.at("params"));
  problem.options["offload_plan"] = std::string("best");
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

// "microbatch.chunk:n" of every copy of a device: n passes stand before the end of the copy out, or
// before the copy in.
std::pair<std::string, std::string> written_copies(const Program& program, int device) {
  const CopyPlan& plan = *program.copies();
  const LinkCopies& link = plan.links[plan.link_of(device)];
  std::string out, in;
  const auto add = [](std::string& to, const Copy& copy, size_t n) {
    to += fmt::format("{}{}.{}:{}", to.empty() ? "" : " ", copy.unit, copy.chunk, n);
  };
  const auto& gates = plan.gates[device];
  for (std::uint32_t i = 0; i < link.out.size(); ++i) {
    if (link.out[i].device != static_cast<std::uint32_t>(device)) continue;
    const auto gate = std::ranges::lower_bound(gates, i, {}, &Gate::out);
    add(out, link.out[i], gate == gates.end() ? program.passes(device).size() : gate->position);
  }
  for (const Copy& copy : link.in) {
    if (copy.device != static_cast<std::uint32_t>(device)) continue;
    add(in, copy, copy.after == Copy::kAnyTime ? 0 : copy.after + 1);
  }
  return {out, in};
}

TEST(PublishedOffload, IsTheGeneratorsPlan) {
  const json data = read_json(golden::data_files("published_offload").front());
  int refused = 0;
  for (const json& each : data.at("instances")) {
    const Problem problem = problem_of(each);
    SCOPED_TRACE(fmt::format("p {} v {} m {} g {}, {} chunks, {}", each.at("p").get<int>(),
                             each.at("v").get<int>(), each.at("m").get<int>(),
                             each.at("group_size").get<int>(), each.at("offload_chunks").get<int>(),
                             each.at("offload_time").get<double>()));
    if (each.contains("refused")) {
      EXPECT_THROW((void)find_schedule("po-f")->plan(problem), InfeasibleError);
      ++refused;
      continue;
    }
    const Program program = find_schedule("po-f")->plan(problem);
    const std::vector<Bytes> peaks = peaks_by_order(program, problem);
    const Evaluation executed = evaluate(program, problem);
    for (size_t d = 0; d < peaks.size(); ++d) {
      EXPECT_EQ(peaks[d].value(), each.at("peak")[d].get<int>()) << "device " << d;
      // By time a copy in may start while a copy out before it in the list still runs.
      EXPECT_LE(executed.devices[d].peak_activation, peaks[d] + Bytes(1)) << "device " << d;
    }
    if (!each.contains("out")) continue;
    for (int d = 0; d < problem.shape.devices; ++d) {
      const auto [out, in] = written_copies(program, d);
      EXPECT_EQ(out, each.at("out")[d]) << "device " << d;
      EXPECT_EQ(in, each.at("in")[d]) << "device " << d;
    }
  }
  EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(Instances, OffloadGolden, ::testing::ValuesIn(data_files("offload")),
                         [](const auto& info) { return info.param.stem().string(); });

}  // namespace
}  // namespace pipesim::offload_test
