// Recomputation on every registered schedule, wherever its vocabulary stands and whatever it
// offloads.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/case/simulate.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim::recompute_everywhere_test {
namespace {

struct Case {
  std::string schedule;
  VocabularyPlacement vocabulary = VocabularyPlacement::kFirstLast;
  bool offload = false;  // of a schedule that does not by itself

  [[nodiscard]] std::string text() const {
    return fmt::format("{} {}{}", schedule, to_text(vocabulary), offload ? " offload" : "");
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string& name : schedule_names()) {
    const Schedule* const schedule = find_schedule(name);
    all.push_back({.schedule = schedule->name});
    for (const VocabularySupport& support : schedule->vocabulary) {
      all.push_back({schedule->name, support.placement});
    }
    if (!schedule->offloads() && !schedule->versions) {
      all.push_back({.schedule = schedule->name, .offload = true});
    }
  }
  return all;
}

// Attention makes its scores, which is what selective recomputation leaves out.
Result run(const Case& of, int microbatches, const std::string& recompute) {
  const int chunks = find_schedule(of.schedule)->default_chunks;
  const std::string virtual_size =
      chunks > 1 ? fmt::format(", virtual_pipeline_model_parallel_size: {}", chunks) : "";
  const std::string text = fmt::format(
      "model: {{base: zb-1.5b, num_layers: 16}}\n"
      "cluster: {{name: a100-roce, gpu: {{copy_share: 0}}}}\n"
      "schedule: {}\n"
      "parallel: {{pipeline_model_parallel_size: 4{}}}\n"
      "batch: {{num_microbatches: {}, micro_batch_size: 1, seq_length: 1024}}\n"
      "memory: {{kind: model, flash_attention: false}}\n"
      "vocabulary: {}\n"
      "recompute: {}\n{}",
      of.schedule, virtual_size, microbatches, to_text(of.vocabulary), recompute,
      of.offload                               ? "offload: true\n"
      : find_schedule(of.schedule)->offloads() ? "offload: {plan: best}\n"  // takes R, too
                                               : "");
  const Scenario scenario = read_scenario(YamlSource("recompute.yaml", text));
  return simulate(prepare_first(scenario));
}

// Every unit of every stage is run again once, after its F and before its backward.
void expect_every_r(const Program& program) {
  const Placement& place = program.placement();
  size_t found = 0;
  for (int device = 0; device < place.devices(); ++device) {
    std::map<std::pair<int, int>, int> state;  // by chunk and unit: 1 after F, 2 after R
    const auto forward = [&](const Pass& pass) { state[{pass.chunk, pass.microbatch}] = 1; };
    const auto backward = [&](const Pass& pass) {
      EXPECT_EQ((state[{pass.chunk, pass.microbatch}]), 2) << program.text(device, pass);
    };
    for (const Pass& pass : program.passes(device)) {
      if (pass.kind == PassKind::kF) forward(pass);
      if (pass.kind == PassKind::kB || pass.kind == PassKind::kBW) backward(pass);
      if (pass.kind == PassKind::kFB) {
        forward(program.pair(pass).forward);
        backward(program.pair(pass).backward);
      }
      if (pass.kind != PassKind::kR) continue;
      EXPECT_EQ((state[{pass.chunk, pass.microbatch}]), 1) << program.text(device, pass);
      state[{pass.chunk, pass.microbatch}] = 2;
      ++found;
    }
  }
  const auto units = static_cast<size_t>(program.shape().units());
  EXPECT_EQ(found, units * static_cast<size_t>(place.model_stages()));
}

// Where W are put off (zb-2p), what they wait for is the peak, and recomputation lowers nothing.
TEST(RecomputeEverywhere, FullRunsEveryForwardAgainAndKeepsNoMore) {
  for (const Case& of : cases()) {
    for (const int microbatches : {12, 16}) {
      SCOPED_TRACE(fmt::format("{} m={}", of.text(), microbatches));
      const Result plain = run(of, microbatches, "none");
      const Result full = run(of, microbatches, "full");
      expect_every_r(*full.program);
      EXPECT_LE(full.report.peak_activation, plain.report.peak_activation);
      for (size_t device = 0; device < full.report.devices.size(); ++device) {
        const DeviceReport& with = full.report.devices[device];
        const DeviceReport& without = plain.report.devices[device];
        EXPECT_GT(with.recompute, Seconds(0));
        EXPECT_NEAR((with.busy - with.recompute) / without.busy, 1, 1e-9);
      }
    }
  }
}

TEST(RecomputeEverywhere, SelectiveKeepsLessInTheSameOrderOfPasses) {
  for (const Case& of : cases()) {
    SCOPED_TRACE(of.text());
    const Result plain = run(of, 12, "none");
    const Result selective = run(of, 12, "selective");
    EXPECT_LT(selective.report.peak_activation, plain.report.peak_activation);
    EXPECT_GT(selective.report.iteration, plain.report.iteration);
    EXPECT_EQ(selective.program->size(), plain.program->size());
  }
}

}  // namespace
}  // namespace pipesim::recompute_everywhere_test
