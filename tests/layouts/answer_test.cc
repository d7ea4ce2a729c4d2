// Answers of plans for people: a sentence, lines that fit a terminal, rows that differ in idea.
#include "sim/layouts/answer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/layouts/question.h"
#include "sim/layouts/rows.h"
#include "sim/layouts/shortlist.h"
#include "sim/layouts/simplest.h"
#include "sim/layouts/switches.h"
#include "sim/layouts/what_if.h"
#include "sim/layouts/words.h"

namespace pipesim::answer_test {
namespace {

ClusterPlan ask(const std::vector<PlanSetting>& more = {}, const char* model = "llama3-8b") {
  std::vector<PlanSetting> settings{
      {"model", model}, {"cluster", "dgx-h100"}, {"batch.seq_length", "4096"}};
  settings.insert(settings.end(), more.begin(), more.end());
  std::vector<Override> overrides;
  for (const auto& [path, value] : settings) {
    overrides.push_back({path, value, {"command line", 1, 1, ""}});
  }
  ClusterPlan plan = read_plan_question(overrides);
  plan.question.gpus = 16;
  plan.question.global_batch = 64;
  plan.question.axes.tensor = {1, 2, 4};
  plan.question.axes.micro_batch = {1, 2};
  plan.question.axes.chunks = {2, 4};
  plan.question.axes.vocabulary = {VocabularyPlacement::kFirstLast};
  plan.question.axes.schedules = {"1f1b", "interleaved-1f1b", "zb-h1"};
  return plan;
}

PlanOptions ideas(bool exhaustive = false) {
  return {.best = 0, .ideas = Framework::kMegatron, .exhaustive = exhaustive};
}

std::vector<std::pair<size_t, std::vector<PlanIdea>>> chosen(const std::vector<Planned>& rows) {
  std::vector<std::pair<size_t, std::vector<PlanIdea>>> all;
  for (const Planned& each : rows) all.emplace_back(each.id, each.ideas);
  return all;
}

TEST(PlanIdeas, AreThoseThatAnExhaustiveSearchFinds) {
  for (const char* capacity : {"70 GiB", "24 GiB"}) {
    ClusterPlan plan = ask({{"memory.capacity", capacity}});
    const PlanResult quick = pipesim::plan(plan.question, ideas());
    const PlanResult all = pipesim::plan(plan.question, ideas(true));
    EXPECT_FALSE(quick.ideas.empty()) << capacity;
    EXPECT_EQ(chosen(quick.ideas), chosen(all.ideas)) << capacity;
    EXPECT_LT(quick.counts.evaluated, all.counts.evaluated);
  }
}

// Two rows may differ in nothing else.
TEST(PlanIdeas, LeaveRoomForWhatElseALayoutHas) {
  ClusterPlan plan = ask({{"memory.capacity", "40 GiB"}});
  search_rows(plan, ideas());
  plan.result.best.front().idea =
      "fastest, a fifth free, simplest within 3%, no pipeline, and more";
  plan.result.best.front().point.recompute = RecomputeGranularity::kFull;
  const std::string answer = plan_answer(std::vector{plan}, std::nullopt, 100);
  EXPECT_NE(answer.find("1  fastest,  "), std::string::npos) << answer;
  EXPECT_NE(answer.find("\n   a fifth free,\n"), std::string::npos) << answer;
  EXPECT_NE(answer.find("full recompute"), std::string::npos) << answer;
}

TEST(PlanIdeas, AreWhatTheirNamesSay) {
  ClusterPlan plan = ask({{"memory.capacity", "40 GiB"}});
  search_rows(plan, ideas());
  const auto& rows = plan.result.best;
  ASSERT_GT(rows.size(), 1U);
  EXPECT_TRUE(rows.front().idea.starts_with("fastest"));
  EXPECT_FALSE(rows.front().runs_on.empty());
  const Seconds fastest = rows.front().iteration;
  for (const Planned& row : rows) {
    for (const PlanIdea idea : row.ideas) {
      EXPECT_EQ(idea == PlanIdea::kBeyond, row.runs_on.empty() || row.iteration < fastest);
      EXPECT_TRUE(idea != PlanIdea::kNoPipeline || row.point.pipeline == 1);
      EXPECT_TRUE(idea != PlanIdea::kRoomy || row.peak <= kRoomyShare * plan.question.limit());
      if (idea != PlanIdea::kSimplest) continue;
      EXPECT_LE(row.iteration, kNearlyAsFast * fastest);
      EXPECT_LE(mechanisms_of(row.point), mechanisms_of(rows.front().point));
    }
  }
  std::vector<std::string> names;
  for (const Planned& row : rows) names.push_back(row.idea);
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

TEST(PlanAnswer, FitsTheWidthAndBeginsWithASentence) {
  ClusterPlan plan = ask();
  plan.price = 2.5;
  search_rows(plan, ideas());
  for (const size_t width : {40U, 72U, 100U}) {
    std::istringstream lines(plan_answer({&plan, 1}, 1e12, width));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), width) << line;
  }
  // A change is said to its end, on as many lines as it takes.
  plan.what_ifs = plan_what_ifs(plan.question, {}, std::array{0.8});
  ASSERT_FALSE(plan.what_ifs.empty());
  const std::string whole = plan_answer({&plan, 1}, 1e12, 40);
  std::istringstream lines_of_changes(whole);
  for (std::string line; std::getline(lines_of_changes, line);) EXPECT_LE(line.size(), 40U) << line;
  const auto squeezed = [](std::string text) {
    std::erase_if(text, [](unsigned char each) { return std::isspace(each) != 0; });
    return text;
  };
  for (const PlanWhatIf& each : plan.what_ifs) {
    if (each.best.empty()) continue;
    const std::string layout = layout_words(each.question, each.best.front().point);
    EXPECT_NE(squeezed(whole).find(squeezed(each.change() + ": " + layout)), std::string::npos);
  }
  const std::string sentence = answer_sentence({&plan, 1}, 1e12);
  EXPECT_TRUE(sentence.starts_with("16 H100: Megatron-Bridge, ")) << sentence;
  for (const char* part :
       {" micro batch ", " days (", ", $", "; memory fits with ", " to spare."}) {
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  }
  EXPECT_NE(answer_sentence({&plan, 1}, {}).find(" s an iteration ("), std::string::npos);
  std::ostringstream json;
  write_plan_json(json, {&plan, 1}, 1e12, "test");
  const auto document = nlohmann::json::parse(json.str());
  EXPECT_EQ(document["answer"], sentence);
  const auto row = document["plans"][0]["layouts"][0];
  EXPECT_EQ(row["idea"], plan.result.best.front().idea);
  EXPECT_EQ(row["switches"]["overlap_grad_reduce"], false);
}

// Where a plainer layout stands for the fastest, and another is then the first.
TEST(PlanIdeas, LeaveNoRowWithoutOne) {
  ClusterPlan plan = ask({{"memory.lora_rank", "16"}}, "llama3-70b");
  plan.question.axes.schedules = {"interleaved-1f1b", "gis"};
  plan.question.axes.chunks = {2, 4, 5, 10, 20};
  plan.others = {plan.question};
  search_rows(plan, ideas());
  order_rows(plan.result.best);
  ASSERT_FALSE(plan.result.best.empty());
  for (const Planned& row : plan.result.best) EXPECT_NE(row.idea, "") << label_of(row.point);
}

// The sentence beside the table says what the table says.
TEST(PlanAnswer, ComparesARowThatNoFrameworkRunsByTheTimesThatItShows) {
  ClusterPlan plan = ask({{"memory.capacity", "40 GiB"}});
  search_rows(plan, ideas());
  auto& rows = plan.result.best;
  ASSERT_GT(rows.size(), 1U);
  rows.resize(2);
  rows[1].ideas = {PlanIdea::kBeyond};
  rows[1].runs_on.clear();
  rows[0].iteration = Seconds(10);
  rows[1].iteration = Seconds(8);
  const auto says = [&plan](const std::string& words) {
    const std::string answer = plan_answer(std::vector{plan}, std::nullopt, 1000);
    return answer.find(words) != std::string::npos;
  };
  EXPECT_TRUE(says("Row 2 takes 20% less"));
  rows[0].contended = Contended{Seconds(10), {}};
  EXPECT_TRUE(says("Row 2 takes 20% less")) << "another engine's time says nothing of it";
  rows[1].contended = Contended{Seconds(9), {}};
  EXPECT_TRUE(says("Row 2 takes 10% less"));
  rows[1].contended = Contended{Seconds(11), {}};
  EXPECT_FALSE(says("Row 2 takes"));
}

TEST(PlanAnswer, SaysWhenTheSimulatedTimeIsOutsideOfItsBand) {
  ClusterPlan plan = ask();
  plan.question.base.band = Band{.low = 1.1, .high = 1.7};
  search_rows(plan, ideas());
  const std::string sentence = answer_sentence({&plan, 1}, {});
  EXPECT_NE(sentence.find(" s an iteration simulated, "), std::string::npos) << sentence;
  EXPECT_NE(sentence.find(" as measured runs went"), std::string::npos) << sentence;
}

TEST(PlanAnswer, NamesTheFewestChunksOfThoseThatTakeAsLong) {
  ClusterPlan plan = ask();
  plan.question.axes.chunks = {};
  plan.question.axes.pipeline = {4};
  plan.question.axes.tensor = {2};
  plan.question.axes.micro_batch = {1};
  plan.question.axes.schedules = {"interleaved-1f1b"};
  const Planned fastest = pipesim::plan(plan.question, {.best = 1}).best.front();
  search_rows(plan, ideas());
  const Planned& first = plan.result.best.front();
  const int from = first.point.chunks;
  const int to = first.most_chunks_alike;
  EXPECT_LT(from, to);
  EXPECT_LE(first.iteration, kAlike * fastest.iteration);
  PlanQuestion one = plan.question;
  for (int chunks = 2; chunks <= to; ++chunks) {
    one.axes.chunks = {chunks};
    const Seconds own = pipesim::plan(one, {.best = 1}).best.front().iteration;
    const bool alike = own <= kAlike * fastest.iteration;
    EXPECT_TRUE(chunks < from ? chunks + 1 < from || !alike : alike) << chunks;
  }
}

TEST(PlanAnswer, NamesThePlainestSplitOfThoseThatTakeAsLong) {
  ClusterPlan plan = ask();
  plan.question.axes.pipeline = {4};
  plan.question.axes.schedules = {"1f1b"};
  search_rows(plan, ideas());
  const Planned& first = plan.result.best.front();
  PlanQuestion even = plan.question;
  even.axes.splits = {PlanSplit::kEven};
  const Seconds evenly = pipesim::plan(even, {.best = 1}).best.front().iteration;
  EXPECT_EQ(first.point.split == PlanSplit::kEven, evenly <= kAlike * first.iteration);
}

TEST(PlanSwitches, AreThoseOfTunedRecipes) {
  const auto names = [](const std::vector<PlanSetting>& settings) {
    std::vector<std::string> all;
    for (const PlanSetting& each : settings) all.push_back(each.path + "=" + each.value);
    return all;
  };
  const std::vector<std::string> common{
      "cost.overlap_grad_reduce=true", "cost.overlap_param_gather=true",
      "cost.tp_comm_overlap=true", "memory.accumulate_allreduce_grads_in_fp32=false",
      "memory.cross_entropy_loss_fusion=true"};
  const auto with = [&](const std::string& more) {
    std::vector<std::string> all = common;
    all.push_back(more);
    return all;
  };
  const auto bridge = Framework::kMegatronBridge;
  EXPECT_EQ(names(tuned_switches(bridge, ask().question, {})),
            with("memory.store_param_remainders=true"));
  const std::vector<PlanSetting> fp8{{"memory.precision", "fp8"}};
  EXPECT_EQ(names(tuned_switches(bridge, ask(fp8).question, fp8)),
            with("memory.fp8_param_gather=true"));
  const std::vector<PlanSetting> fp16{{"memory.precision", "fp16"},
                                      {"cost.tp_comm_overlap", "false"}};
  EXPECT_EQ(tuned_switches(bridge, ask(fp16).question, fp16).size(), common.size() - 1);
  EXPECT_EQ(names(tuned_switches({}, ask({}, "mixtral-8x7b").question, {})).back(),
            "cost.moe_token_dispatcher_type=flex");
  EXPECT_TRUE(tuned_switches(Framework::kTorchtitan, ask().question, {}).empty());
}

}  // namespace
}  // namespace pipesim::answer_test
