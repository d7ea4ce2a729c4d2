// DualPipe's and DualPipeV's messages against the authors' public code (data/batches): the calls in
// which devices exchange them, and how long the program takes when these hold the devices. And what
// one of the two is to the other.
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/engine/engine.h"
#include "sim/execution/comm_batches.h"
#include "sim/execution/evaluate.h"
#include "sim/graph/build.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::dualpipe_test {
namespace {

using nlohmann::json;

Problem make_problem(const std::string& schedule, int devices, int microbatches) {
  const Shape shape{devices, 2, microbatches, 1};
  return testing::make_problem(shape, find_schedule(schedule)->place(devices, 2));
}

// With two directions the data counts the microbatches of each from 0.
std::string number(const Placement& place, int vs, std::uint32_t unit, int units) {
  return fmt::format("{}.{}", static_cast<int>(unit) - place.first_unit(vs, units),
                     place.chunk(vs));
}

std::string written(const Program& program, int device, const Pass& pass) {
  if (pass.kind == PassKind::kFB) {
    const OverlappedPair& pair = program.pair(pass);
    return written(program, device, pair.forward) + "&" + written(program, device, pair.backward);
  }
  const Placement& place = program.placement();
  return fmt::format("{}{}", to_text(pass.kind),
                     number(place, place.virtual_stage(device, pass.chunk), pass.microbatch,
                            program.shape().units()));
}

// "SF0.0" at the sender, "RF0.1" at the receiver: each by its own chunk; sorted, "{RF0.1,SF0.0}".
std::string written(const Program& program, const CommBatches& batches, int device,
                    const CommBatch& batch) {
  const Placement& place = program.placement();
  std::vector<std::string> words;
  for (const MessageId id : batches.messages(device, batch)) {
    const Message message = batches.message(id);
    const bool sends = place.device(message.from) == device;
    words.push_back(fmt::format(
        "{}{}{}", sends ? 'S' : 'R', message.forward ? 'F' : 'B',
        number(place, sends ? message.from : message.to, message.unit, program.shape().units())));
  }
  std::ranges::sort(words);
  return fmt::format("{{{}}}", fmt::join(words, ","));
}

std::vector<std::string> written(const Program& program, const CommBatches& batches, int device) {
  std::vector<std::string> words;
  const auto passes = program.passes(device);
  size_t next = 0;
  const auto all = batches.batches(device);
  for (std::uint32_t at = 0; at <= passes.size(); ++at) {
    for (; next < all.size() && all[next].before == at; ++next) {
      words.push_back(written(program, batches, device, all[next]));
    }
    if (at < passes.size()) words.push_back(written(program, device, passes[at]));
  }
  return words;
}

// The data's words, those in braces sorted.
std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) {
    if (word.front() == '{') {
      std::vector<std::string> messages;
      std::istringstream inner(word.substr(1, word.size() - 2));
      for (std::string message; std::getline(inner, message, ',');) messages.push_back(message);
      std::ranges::sort(messages);
      word = fmt::format("{{{}}}", fmt::join(messages, ","));
    }
    words.push_back(word);
  }
  return words;
}

void set_times(Problem& problem, const json& times) {
  for (StageCost& cost : problem.stages) {
    cost.forward = Seconds(times.at("TF").get<double>());
    cost.backward_input = Seconds(times.at("TB").get<double>());
    cost.backward_weight = Seconds(times.at("TW").get<double>());
    cost.overlapped = Seconds(times.at("TFB").get<double>());
  }
  testing::set_transfers(problem, times.at("Tcomm").get<double>());
}

double blocking_makespan(const std::shared_ptr<const Program>& program, const Problem& problem) {
  BuildOptions options;
  options.blocking = CallGroups::kDualPipe;
  const TaskGraph graph = build_task_graph(program, problem, options);
  return std::ranges::max(make_replay_engine()->run(graph, {}, {}).end);
}

TEST(DualPipeBatches, AreThoseOfTheReferenceAndTakeItsTimes) {
  json data;
  std::ifstream(PIPESIM_SOURCE_DIR "/tests/golden/data/batches/dualpipe.json") >> data;
  int times = 0;
  int orders = 0;
  for (const json& each : data.at("cases")) {
    const Schedule& schedule = *find_schedule(each.at("schedule").get<std::string>());
    Problem problem = make_problem(schedule.name, each.at("p").get<int>(), each.at("m").get<int>());
    SCOPED_TRACE(fmt::format("{} p {} m {}", schedule.name, problem.shape.devices,
                             problem.shape.microbatches));
    const auto program = std::make_shared<const Program>(schedule.plan(problem));
    EXPECT_EQ(schedule.calls, CallGroups::kDualPipe);
    const CommBatches batches(*program, CallGroups::kDualPipe);
    if (each.contains("devices")) {
      const auto devices = each.at("devices").get<std::vector<std::string>>();
      ASSERT_EQ(static_cast<int>(devices.size()), problem.shape.devices);
      for (size_t d = 0; d < devices.size(); ++d) {
        EXPECT_EQ(written(*program, batches, static_cast<int>(d)), words_of(devices[d]))
            << "device " << d;
      }
      ++orders;
    }
    for (const json& wanted : each.at("evals")) {
      set_times(problem, wanted);
      EXPECT_EQ(evaluate(*program, problem).makespan.value(),
                wanted.at("makespan_dataflow").get<double>());
      EXPECT_EQ(blocking_makespan(program, problem), wanted.at("makespan_blocking").get<double>());
      ++times;
    }
  }
  EXPECT_EQ(times, 40);
  EXPECT_EQ(orders, 6);
}

// A pass with the chunk and the microbatch of DualPipe written as DualPipeV's: direction 0 is the
// way in, chunk 0, and direction 1 the way back, chunk 1; on the mirrored half the other way
// round. Each direction's own microbatches are DualPipeV's.
std::string as_half(const Program& dual, int device, const Pass& pass) {
  if (pass.kind == PassKind::kFB) {
    const OverlappedPair& pair = dual.pair(pass);
    return as_half(dual, device, pair.forward) + "&" + as_half(dual, device, pair.backward);
  }
  const Placement& place = dual.placement();
  const int first = place.first_unit(place.virtual_stage(device, pass.chunk), dual.shape().units());
  const bool mirrored = device >= place.devices() / 2;
  return fmt::format("{}{}.{}", to_text(pass.kind), static_cast<int>(pass.microbatch) - first,
                     mirrored ? 1 - pass.chunk : pass.chunk);
}

TEST(DualPipeV, IsDualPipeOnTwiceTheDevicesCutInHalf) {
  for (int p = 1; p <= 8; ++p) {
    for (const int m : {1, p, 2 * p - 1, 2 * p, 2 * p + 3, 4 * p}) {
      const Program half = find_schedule("dualpipev")->plan(make_problem("dualpipev", p, m));
      const Program whole = find_schedule("dualpipe")->plan(make_problem("dualpipe", 2 * p, 2 * m));
      for (int d = 0; d < p; ++d) {
        std::vector<std::string> wanted, left, right;
        for (const Pass& pass : half.passes(d)) wanted.push_back(written(half, d, pass));
        for (const Pass& pass : whole.passes(d)) left.push_back(as_half(whole, d, pass));
        const int mirror = 2 * p - 1 - d;
        for (const Pass& pass : whole.passes(mirror)) {
          right.push_back(as_half(whole, mirror, pass));
        }
        EXPECT_EQ(left, wanted) << "p " << p << " m " << m << " device " << d;
        EXPECT_EQ(right, wanted) << "p " << p << " m " << m << " device " << mirror;
      }
    }
  }
}

// Fewer microbatches than the steps need, an odd number of them included.
TEST(DualPipe, RunsWithAnyNumberOfMicrobatches) {
  for (const char* name : {"dualpipe", "dualpipev"}) {
    for (const int p : {2, 4, 6, 10}) {
      for (int m = 1; m <= 2 * p + 2; ++m) {
        for (const bool overlap : {true, false}) {
          SCOPED_TRACE(fmt::format("{} p {} m {} overlap {}", name, p, m, overlap));
          Problem problem = make_problem(name, p, m);
          for (StageCost& cost : problem.stages) cost.overlapped = Seconds(2.5);
          testing::set_transfers(problem, 0.25);
          problem.options["overlap"] = overlap;
          ASSERT_FALSE(find_schedule(name)->refusal(problem));
          const auto program = std::make_shared<const Program>(find_schedule(name)->plan(problem));
          EXPECT_GE(blocking_makespan(program, problem),
                    evaluate(*program, problem).makespan.value());
        }
      }
    }
  }
}

// A block that runs its passes one after the other still exchanges its messages as one.
TEST(DualPipeBatches, AreTheSameWithoutOverlap) {
  const auto exchanged = [](const Program& program, int device) {
    std::vector<std::string> calls;
    const CommBatches batches(program, CallGroups::kDualPipe);
    for (const CommBatch& batch : batches.batches(device)) {
      calls.push_back(written(program, batches, device, batch));
    }
    return calls;
  };
  for (const char* name : {"dualpipe", "dualpipev"}) {
    for (const int p : {2, 4, 6}) {
      Problem problem = make_problem(name, p, 3 * p);
      const Program together = find_schedule(name)->plan(problem);
      problem.options["overlap"] = false;
      const Program apart = find_schedule(name)->plan(problem);
      for (int device = 0; device < p; ++device) {
        EXPECT_EQ(exchanged(apart, device), exchanged(together, device))
            << name << " p " << p << " device " << device;
      }
    }
  }
}

}  // namespace
}  // namespace pipesim::dualpipe_test
