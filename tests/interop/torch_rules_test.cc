#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

#include "sim/core/error.h"
#include "sim/interop/torch/csv_reader.h"
#include "sim/interop/torch/csv_writer.h"
#include "sim/interop/torch/rules.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"
#include "tests/sanitized.h"

namespace pipesim::torch_rules_test {
namespace {

using Rank = size_t;
using Cell = std::tuple<int, char, int>;  // stage, letter, microbatch

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

Cell plain_cell(const std::string& text) {
  std::istringstream stream(text);
  int stage = -1, microbatch = -1;
  char letter = ' ';
  stream >> stage >> letter >> microbatch;
  if (!stream || !stream.eof()) throw std::runtime_error("bad cell " + text);
  return {stage, letter, microbatch};
}

// The text's actions by rank, in order; one or two cells each, none for an idle slot.
std::vector<std::vector<std::vector<Cell>>> actions_of(const std::string& csv) {
  const std::string overlap = ")OVERLAP_F_B";
  std::vector<std::vector<std::vector<Cell>>> ranks;
  for (const std::string& row : split(csv, '\n')) {
    ranks.emplace_back();
    for (const std::string& cell : split(row, ',')) {
      std::vector<Cell> action;
      if (cell.starts_with("(")) {
        if (!cell.ends_with(overlap)) throw std::runtime_error("bad cell " + cell);
        for (const auto& part : split(cell.substr(1, cell.size() - 1 - overlap.size()), ';')) {
          action.push_back(plain_cell(part));
        }
      } else if (!cell.empty()) {
        action.push_back(plain_cell(cell));
      }
      ranks.back().push_back(action);
    }
  }
  return ranks;
}

// PyTorch's message for a CSV that it loads, written again from its rules, on the text alone.
std::string torch_says(const std::string& csv, int microbatches) {
  const auto ranks = actions_of(csv);
  std::map<int, Rank> rank_of;
  std::set<Cell> seen;
  std::map<int, int> forwards, whole, inputs, weights;
  for (Rank rank = 0; rank < ranks.size(); ++rank) {
    for (const auto& action : ranks[rank]) {
      for (const auto& [stage, letter, microbatch] : action) {
        const auto has = [&, s = stage, mb = microbatch](char kind) {
          return seen.contains({s, kind, mb});
        };
        if (!rank_of.emplace(stage, rank).second && rank_of[stage] != rank) return "two ranks";
        if (microbatch < 0 || microbatch >= microbatches) return "microbatch out of range";
        if (!seen.insert({stage, letter, microbatch}).second) return "an action is there twice";
        if (letter == 'F') ++forwards[stage];
        if (letter == 'B') ++whole[stage];
        if (letter == 'I') ++inputs[stage];
        if (letter == 'W') ++weights[stage];
        if ((letter == 'B' || letter == 'I') && !has('F')) return "a backward without a forward";
        if (letter == 'B' && (has('I') || has('W'))) return "two backwards";
        if (letter == 'W' && !has('I')) return "a weight gradient without an input gradient";
        if (std::string("FBIW").find(letter) == std::string::npos) return "unknown letter";
      }
    }
  }
  const int stages = static_cast<int>(rank_of.size());
  for (int stage = 0; stage < stages; ++stage) {
    if (!rank_of.contains(stage)) return "a stage is missing";
    if (forwards[stage] != microbatches) return "forwards are missing";
    if (inputs[stage] != weights[stage]) return "input and weight gradients differ in number";
    if (whole[stage] + inputs[stage] != microbatches) return "backwards are missing";
  }
  // Sends and receives: what each rank has computed, sent or received so far.
  std::vector<std::set<Cell>> known(ranks.size());
  std::vector<size_t> next(ranks.size(), 0);
  std::vector<int> losses;
  for (bool progress = true; progress;) {
    progress = false;
    for (Rank rank = 0; rank < ranks.size(); ++rank) {
      if (next[rank] == ranks[rank].size()) continue;
      const auto& action = ranks[rank][next[rank]];
      const bool ready = std::all_of(action.begin(), action.end(), [&](const Cell& cell) {
        const auto [stage, letter, microbatch] = cell;
        if (letter == 'F') return stage == 0 || known[rank].contains({stage - 1, 'F', microbatch});
        if (letter == 'W' || stage == stages - 1) return true;
        return known[rank].contains({stage + 1, 'I', microbatch});
      });
      if (!ready) continue;
      for (auto [stage, letter, microbatch] : action) {
        if (letter == 'F' && stage == stages - 1) losses.push_back(microbatch);
        if (letter == 'B') letter = 'I';  // either sends the same gradient
        known[rank].insert({stage, letter, microbatch});
        const int to = letter == 'F' ? stage + 1 : letter == 'I' ? stage - 1 : -1;
        if (to >= 0 && to < stages) known[rank_of[to]].insert({stage, letter, microbatch});
      }
      ++next[rank];
      progress = true;
    }
  }
  for (Rank rank = 0; rank < ranks.size(); ++rank) {
    if (next[rank] < ranks[rank].size()) return "deadlock";
  }
  return std::is_sorted(losses.begin(), losses.end()) ? "" : "losses out of order";
}

std::string csv_of(const Program& program, const std::string& name) {
  std::ostringstream out;
  write_torch_csv(out, program, name);
  return out.str();
}

// The reader learns how many microbatches there are, not the number of chunks on an idle device.
void expect_same(const Program& program, const Program& again, const std::string& name) {
  ASSERT_EQ(again.placement(), program.placement()) << name;
  EXPECT_EQ(again.shape(), program.shape()) << name;
  for (int device = 0; device < program.shape().devices; ++device) {
    ASSERT_EQ(again.passes(device).size(), program.passes(device).size()) << name;
    for (size_t i = 0; i < program.passes(device).size(); ++i) {
      EXPECT_EQ(again.text(device, again.passes(device)[i]),
                program.text(device, program.passes(device)[i]))
          << name;
    }
  }
}

struct Tally {
  int written = 0;
  int refused = 0;
};

void try_schedule(const Schedule& schedule, const Shape& shape, Tally& tally) {
  Problem problem = testing::make_problem(shape, schedule.place(shape.devices, shape.chunks));
  for (StageCost& stage : problem.stages) stage.overlapped = Seconds(2.5);
  if (schedule.refusal(problem)) return;
  const Program program = schedule.plan(problem);
  const std::string name = schedule.name + " p" + std::to_string(shape.devices) + " v" +
                           std::to_string(shape.chunks) + " m" + std::to_string(shape.microbatches);
  try {
    const std::string csv = csv_of(program, schedule.name);
    EXPECT_EQ(torch_says(csv, program.shape().microbatches), "") << name;
    expect_same(program, read_torch_csv(name, csv), name);
    ++tally.written;
  } catch (const InfeasibleError& error) {
    const std::string message = error.what();
    EXPECT_TRUE(
        message.starts_with("PyTorch's schedule CSV cannot express " + schedule.name + ": "))
        << message;
    EXPECT_GT(message.size(), schedule.name.size() + 60) << message;
    ++tally.refused;
  }
}

TEST(TorchRules, EveryScheduleIsWrittenAsPyTorchAcceptsItOrRefusedWithAReason) {
  for (const Schedule* schedule : schedules()) {
    Tally tally;
    for (const int devices : {1, 2, 3, 4, 6, 8}) {
      for (const int microbatches : {1, 2, devices, devices + 1, 2 * devices, 3 * devices + 2}) {
        for (int chunks = schedule->min_chunks;
             chunks <= std::min(schedule->max_chunks, schedule->min_chunks + 1); ++chunks) {
          try_schedule(*schedule, {devices, chunks, microbatches, 1}, tally);
        }
      }
    }
    EXPECT_GT(tally.written + tally.refused, 5) << schedule->name;
  }
}

TEST(TorchRules, RandomProgramsThatAreWrittenAreAcceptedByPyTorch) {
  testing::Random random(7);
  int written = 0;
  // Few have neither R, splits, nor forwards out of order.
  for (int i = 0; i < testing::rounds(20'000); ++i) {
    const auto drawn = testing::random_case(random);
    if (torch_objection(drawn.program)) continue;
    const std::string csv = csv_of(drawn.program, "random");
    EXPECT_EQ(torch_says(csv, drawn.program.shape().microbatches), "") << csv;
    expect_same(drawn.program, read_torch_csv("random", csv), csv);
    ++written;
  }
  EXPECT_GT(written, testing::rounds(20));
}

std::string objection_to(const std::string& csv) {
  try {
    return torch_objection(read_torch_csv("s.csv", csv)).value_or("");
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(TorchRules, SeesWhatPyTorchSees) {
  struct Case {
    const char* csv;
    const char* mine;
    const char* torch;
  };
  for (const Case& each :
       {Case{"0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", "", ""},
        Case{"0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n", "deadlock: 0B0 needs 1B0", "deadlock"},
        Case{"0F0,0W0,0I0\n", "deadlock: 0W0 needs 0I0",
             "a weight gradient without an input gradient"},
        Case{"0B0,0F0\n", "deadlock: 0B0 needs 0F0", "a backward without a forward"},
        Case{"0F0,0F1,0B0,0B1\n1F1,1F0,1B0,1B1\n",
             "the last stage runs 1F1 out of the order of microbatches", "losses out of order"},
        Case{"0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n", "", ""},
        // Both halves must be ready before the block: rank 1 has not sent the gradient of 1 yet.
        Case{"0F0,(0F1;0B1)OVERLAP_F_B,0B0\n1F0,1B0,1F1,1B1\n",
             "deadlock: 0F1&0B1 needs 1B1, which stands behind 1F1 needs 0F1", "a deadlock"}}) {
    const std::string mine = objection_to(each.csv);
    EXPECT_NE(mine.find(each.mine), std::string::npos) << each.csv << mine;
    EXPECT_EQ(mine.empty(), *each.mine == '\0') << mine;
    const std::string torch = torch_says(each.csv, each.csv[3] == ',' ? 2 : 1);
    EXPECT_EQ(torch.empty(), *each.torch == '\0') << each.csv << torch;
  }
}

TEST(TorchRules, NamesWhatWouldWaitForEver) {
  const Pass f0 = make_pass(PassKind::kF, 0), f1 = make_pass(PassKind::kF, 1),
             b0 = make_pass(PassKind::kB, 0), w0 = make_pass(PassKind::kW, 0),
             bw0 = make_pass(PassKind::kBW, 0), bw1 = make_pass(PassKind::kBW, 1);
  const auto objection = [](const Shape& shape, const PassLists& lists) {
    return torch_objection({shape, Placement::looped(shape.devices, 1), lists}).value_or("");
  };
  EXPECT_NE(objection({2, 1, 2, 1}, {{f0, bw0, f1, bw1}, {f0, f1, bw0, bw1}})
                .find("rank 0 would wait for ever before 0BW0"),
            std::string::npos);
  EXPECT_EQ(objection({1, 1, 1, 1}, {{f0, w0, b0}}), "rank 0 runs 0W0 before its input gradient");
  EXPECT_EQ(objection({1, 1, 1, 1}, {{bw0, f0}}), "rank 0 runs 0BW0 before its forward");
  const Program block({2, 1, 2, 1}, Placement::looped(2, 1),
                      {{f0, make_pass(PassKind::kFB, 0), bw0}, {f0, bw0, f1, bw1}}, {{f1, bw1}});
  EXPECT_NE(torch_objection(block)->find("would wait for ever before 0F1&0BW1"), std::string::npos);
}

TEST(TorchRules, NamesWhatNoCellCanSay) {
  const PassLists both{{make_pass(PassKind::kF, 0, 0), make_pass(PassKind::kF, 1, 1),
                        make_pass(PassKind::kBW, 1, 1), make_pass(PassKind::kBW, 0, 0)},
                       {make_pass(PassKind::kF, 1, 1), make_pass(PassKind::kF, 0, 0),
                        make_pass(PassKind::kBW, 0, 0), make_pass(PassKind::kBW, 1, 1)}};
  EXPECT_NE(torch_objection({{2, 2, 2, 1}, Placement::bidirectional(2), both})
                ->find("2 copies of the model"),
            std::string::npos);
  const PassLists splits{{make_pass(PassKind::kF, 0), make_pass(PassKind::kF, 1),
                          make_pass(PassKind::kBW, 1), make_pass(PassKind::kBW, 0)}};
  EXPECT_NE(torch_objection({{1, 1, 1, 2}, Placement::looped(1, 1), splits})
                ->find("splits a microbatch into 2"),
            std::string::npos);
  const PassLists plain{{make_pass(PassKind::kF, 0), make_pass(PassKind::kBW, 0)}};
  const Program skips({1, 1, 1, 1}, Placement::looped(1, 1), plain, {}, WrapAround::kFirstOfGroup);
  EXPECT_NE(torch_objection(skips)->find("wrap-around"), std::string::npos);
  std::ostringstream out;
  try {
    write_torch_csv(out, skips, "mine");
    FAIL() << "was written";
  } catch (const InfeasibleError& error) {
    EXPECT_NE(std::string(error.what()).find("cannot express mine: it does not wait"),
              std::string::npos);
  }
  EXPECT_TRUE(out.str().empty());
}

}  // namespace
}  // namespace pipesim::torch_rules_test
