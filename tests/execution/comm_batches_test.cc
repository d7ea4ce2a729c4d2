#include "sim/execution/comm_batches.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>

#include "sim/core/error.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::comm_batches_test {
namespace {

Program plan(const char* schedule, int devices, int chunks, int microbatches) {
  const Shape shape{devices, chunks, microbatches, 1};
  return find_schedule(schedule)->plan(
      testing::make_problem(shape, find_schedule(schedule)->place(devices, chunks)));
}

// "0F0 {>0F0} {<0F1} 0F1": > sent, < received, by the virtual stage that the message comes from.
std::string written(const Program& program, CallGroups calls, int device) {
  const CommBatches batches(program, calls);
  std::string text;
  const auto add = [&text](const std::string& word) {
    if (!text.empty()) text += ' ';
    text += word;
  };
  const auto passes = program.passes(device);
  size_t next = 0;
  for (std::uint32_t at = 0; at <= passes.size(); ++at) {
    for (; next < batches.batches(device).size(); ++next) {
      const CommBatch& batch = batches.batches(device)[next];
      if (batch.before != at) break;
      std::string inner;
      for (const MessageId id : batches.messages(device, batch)) {
        const Message message = batches.message(id);
        const bool sends = program.placement().device(message.from) == device;
        inner += fmt::format("{}{}{}{}{}", inner.empty() ? "" : " ", sends ? '>' : '<',
                             message.from, message.forward ? 'F' : 'B', message.unit);
      }
      add(fmt::format("{{{}}}", inner));
    }
    if (at < passes.size()) add(program.text(device, passes[at]));
  }
  return text;
}

TEST(CommBatches, AreMegatronsCallsAround1F1B) {
  const Program program = plan("1f1b", 3, 1, 4);
  // send_forward and recv_forward apart in warm-up, both ways at once in the steady state.
  EXPECT_EQ(written(program, CallGroups::kMegatron, 1),
            "{<0F0} 1F0 {>1F0} {<0F1} 1F1 {>1F1 <2B0} 1BW0 {<0F2 >1B0} 1F2 {>1F2 <2B1} 1BW1 "
            "{<0F3 >1B1} 1F3 {>1F3 <2B2} 1BW2 {>1B2} {<2B3} 1BW3 {>1B3}");
  EXPECT_EQ(written(program, CallGroups::kMegatron, 2),
            "{<1F0} 2F0 2BW0 {<1F1 >2B0} 2F1 2BW1 {<1F2 >2B1} 2F2 2BW2 {<1F3 >2B2} 2F3 2BW3 "
            "{>2B3}");
}

TEST(CommBatches, KeepWarmUpAndCoolDownApartWhereMegatronHasNoSteadyState) {
  EXPECT_EQ(written(plan("1f1b", 4, 1, 2), CallGroups::kMegatron, 1),
            "{<0F0} 1F0 {>1F0} {<0F1} 1F1 {>1F1} {<2B0} 1BW0 {>1B0} {<2B1} 1BW1 {>1B1}");
}

TEST(CommBatches, AreMegatronsCallsAroundInterleaving) {
  const Program program = plan("interleaved-1f1b", 2, 2, 4);
  // One call after each pass of warm-up and cool-down, none between F and BW of the steady state.
  EXPECT_EQ(written(program, CallGroups::kMegatron, 1),
            "{<0F0} 1F0 {<0F1 >1F0} 1F1 {>1F1 <2F0} 3F0 3BW0 {<2F1 >3B0} 3F1 3BW1 "
            "{<0F2 <2B0 >3B1} 1F2 1BW0 {<0F3 >1F2 >1B0 <2B1} 1F3 1BW1 {>1F3 <2F2 >1B1} 3F2 3BW2 "
            "{<2F3 >3B2} 3F3 3BW3 {<2B2 >3B3} 1BW2 {>1B2 <2B3} 1BW3 {>1B3}");
}

TEST(CommBatches, ReceiveFromTheOtherEndWhenItIsSentInLargerGroups) {
  Problem problem =
      testing::make_problem({2, 2, 6, 1}, find_schedule("interleaved-1f1b")->place(2, 2));
  problem.options["microbatch_group_size_per_vp_stage"] = 3L;
  const Program program = find_schedule("interleaved-1f1b")->plan(problem);
  // 1F0 is wanted by 2F0, the fourth forward, and received after device 0's second.
  const std::string text = written(program, CallGroups::kMegatron, 0);
  EXPECT_TRUE(text.starts_with("0F0 {>0F0} 0F1 {>0F1 <1F0} 0F2 {>0F2 <1F1} 2F0")) << text;
}

TEST(CommBatches, ComeBeforeEveryPassWhereNoFrameworkGroupsThem) {
  EXPECT_EQ(written(plan("zb-h1", 2, 1, 2), CallGroups::kEveryPass, 0),
            "0F0 {>0F0} 0F1 {>0F1 <1B0} 0B0 0W0 {<1B1} 0B1 0W1");
}

// Each end of each message in one batch, between the pass that makes it and the one that waits.
TEST(CommBatches, HoldEveryMessageOnceAtBothEnds) {
  testing::Random random(7);
  for (int i = 0; i < 300; ++i) {
    const Program program = testing::random_case(random).program;
    const Placement& place = program.placement();
    size_t messages = 0;
    for (int vs = 0; vs < place.virtual_stages(); ++vs) {
      const int down = place.downstream(vs);
      if (down < 0 || place.device(vs) == place.device(down)) continue;
      const int units = program.shape().units();
      messages += 2 * static_cast<size_t>(place.end_unit(vs, units) - place.first_unit(vs, units));
    }
    for (const CallGroups calls :
         {CallGroups::kEveryPass, CallGroups::kMegatron, CallGroups::kDualPipe}) {
      const CommBatches batches(program, calls);
      std::map<MessageId, std::vector<int>> ends;
      for (int device = 0; device < place.devices(); ++device) {
        std::uint32_t last = 0;
        for (const CommBatch& batch : batches.batches(device)) {
          EXPECT_GE(batch.before, last);
          EXPECT_GT(batch.count, 0U);
          last = batch.before;
          for (const MessageId id : batches.messages(device, batch)) ends[id].push_back(device);
        }
      }
      EXPECT_EQ(ends.size(), messages);
      for (const auto& [id, devices] : ends) {
        const Message message = batches.message(id);
        std::vector<int> wanted{place.device(message.from), place.device(message.to)};
        std::ranges::sort(wanted);
        EXPECT_EQ(devices, wanted);
      }
    }
  }
}

struct Nothing {
  static void run(int, const Pass&) {}
  static void send(const Message&) {}
  static void release(int) {}
};

// Each device sends twice before it receives: neither first send is taken.
TEST(CommBatches, NameWhatDevicesThatHoldEachOtherWaitFor) {
  const auto forward = [](int unit, int chunk) { return make_pass(PassKind::kF, unit, chunk); };
  const auto backward = [](int unit, int chunk) { return make_pass(PassKind::kBW, unit, chunk); };
  const PassLists lists{{forward(0, 0), forward(1, 0), forward(2, 1), backward(2, 1), forward(3, 1),
                         backward(3, 1), backward(0, 0), backward(1, 0)},
                        {forward(2, 1), forward(3, 1), forward(0, 0), backward(0, 0), forward(1, 0),
                         backward(1, 0), backward(2, 1), backward(3, 1)}};
  const Program program({2, 2, 4, 1}, Placement::bidirectional(2), lists);
  Nothing nothing;
  try {
    walk_batches(program, CommBatches(program, CallGroups::kEveryPass), nothing);
    FAIL() << "no deadlock";
  } catch (const InfeasibleError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("device 0 waits before 0F1 to send 0F0 to device 1"), std::string::npos)
        << message;
    EXPECT_NE(message.find("device 1 waits before 2F3 to send 2F2 to device 0"), std::string::npos)
        << message;
  }
}

TEST(CommBatches, AreNotMadeForAnOrderThatIgnoresMessages) {
  Problem problem =
      testing::make_problem({2, 2, 4, 1}, find_schedule("interleaved-1f1b")->place(2, 2));
  problem.options["zero_bubble_table5_dependencies"] = true;
  const Program program = find_schedule("interleaved-1f1b")->plan(problem);
  EXPECT_THROW(CommBatches(program, CallGroups::kMegatron), InfeasibleError);
}

}  // namespace
}  // namespace pipesim::comm_batches_test
